"""What counts as a word, and where each stands."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisyhealth.errors import ConfigError
from noisyhealth.text.words import PROTECTIONS, spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ceremony...gloomy", ["ceremony", "gloomy"]),
        ("up.,MEDICATIONS:", ["up", "MEDICATIONS"]),
        ("EXAM:,GENERAL", ["EXAM", "GENERAL"]),
        ("PLAN:,1", ["PLAN", "1"]),
        ("yes!I", ["yes", "I"]),
        ("sick,tired;cold", ["sick", "tired", "cold"]),
        ("why?because…no", ["why", "because", "no"]),
        ("98.6,The", ["98.6", "The"]),
        ("(up.),Then “no,”she", ["up", "Then", "no", "she"]),
        ("p.r.n.,ALLERGIES", ["p.r.n", "ALLERGIES"]),
        ("cafe\u0301,au", ["cafe\u0301", "au"]),
        ("see:https://a.org/b,c", ["see", "https://a.org/b,c"]),
        ("good:D lol;P ily&lt;3", ["good", "D", "lol", "P", "ily", "3"]),
        ("&quot;no&quot; &amp; &lt;b", ["no", "b"]),
        ("units--were", ["units", "were"]),
        ("pain—then JOE----WTF", ["pain", "then", "JOE", "WTF"]),
        ("MEN)--either CA 19-9--were said--“no”", ["MEN", "either", "CA", "19-9", "were", "said", "no"]),
        ("@jo--please", ["jo", "please"]),
        # one word each
        ("1,000 2,5 8:30 1:10", ["1,000", "2,5", "8:30", "1:10"]),
        ("a.m. e.g. day.I", ["a.m", "e.g", "day.I"]),
        ("follow-up pain/swelling don't Yahoo!'s don;t", ["follow-up", "pain/swelling", "don't", "Yahoo!'s", "don;t"]),
        ("N,N-dimethyl t(4;11)(q21;q23) 46,XX", ["N,N-dimethyl", "t(4;11)(q21;q23", "46,XX"]),
        ("a,b@c.org AT&amp;T", ["a", "b@c.org", "AT&amp;T"]),
        (";D ;-P", ["D", "P"]),
        (
            "bl***y Ca(++)-induced 3-5 3–5 3--5 pain–free",
            ["bl***y", "Ca(++)-induced", "3-5", "3–5", "3--5", "pain–free"],
        ),
        ("PATIENTS--22 http://a.org/b--c", ["PATIENTS--22", "http://a.org/b--c"]),
    ],
)
def test_punctuation_ends_a_word_only_where_a_blank_was_forgotten(text: str, words: list[str]) -> None:
    assert [s.text for s in spans(text)] == words


def test_an_unknown_kind_is_an_error_that_says_which_would_do() -> None:
    with pytest.raises(ConfigError, match=r"\['names'\].*`protect`.*'name'"):
        spans("x", frozenset({"names", "tag"}))


@pytest.mark.parametrize(
    "text",
    [
        "BP 120/80, T 37.2 °C; HR 96.\n\n\tPlan: rest",
        "  leading and trailing  \r\n",
        "“quoted” (bracketed) …dots… 😩emoji😩",
        "café " + unicodedata.normalize("NFD", "café señora"),
        "दवा 頭痛 x",
    ],
)
def test_every_word_stands_in_the_text_exactly_where_it_says(text: str) -> None:
    found = spans(text)
    assert len(found) == sum(any(c.isalnum() for c in chunk) for chunk in text.split())  # no blank was forgotten
    assert all(text[s.start : s.start + len(s.text)] == s.text for s in found)
    assert all(a.start + len(a.text) <= b.start for a, b in pairwise(found))


@pytest.mark.parametrize("word", ["café", "naïve", "Núñez", "crème", "fiancé"])
def test_a_word_is_the_same_word_composed_and_decomposed(word: str) -> None:
    for form in ("NFC", "NFD"):
        shaped = unicodedata.normalize(form, word)  # type: ignore[arg-type]
        assert [s.text for s in spans(f"({shaped}),")] == [shaped]


def test_bp_keeps_its_place_before_its_numbers() -> None:
    assert [(s.text, s.start, s.protection) for s in spans("BP 120/80")] == [("BP", 0, ""), ("120/80", 3, "number")]


# Unicode at large, and texts built of what the rules look at.
PIECES = "im mg May per in 8:30 pm bid warfarin x.org http:// www. &amp; &lt; 😀 \u0301"
anything = st.text(max_size=200) | st.lists(
    st.sampled_from([*".,;:!?…'-@#&/()<=_ \n5½aD", *PIECES.split()]), max_size=40
).map("".join)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(anything)
def test_the_words_of_any_text_are_in_order_whole_and_apart(text: str) -> None:
    found = spans(text)
    assert all(text[s.start : s.start + len(s.text)] == s.text and not any(map(str.isspace, s.text)) for s in found)
    assert all(a.start + len(a.text) <= b.start for a, b in pairwise(found))
    assert all(any(map(str.isalnum, s.text)) for s in found)
    assert all(s.protection for s in found if any(c.isdigit() for c in s.text))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(anything, st.frozensets(st.sampled_from(sorted(PROTECTIONS))))
def test_only_kinds_that_are_on_protect_and_none_changes_what_a_word_is(text: str, protect: frozenset[str]) -> None:
    found = spans(text, protect)
    assert {s.protection for s in found} <= {"", *protect}
    assert [(s.text, s.start) for s in found] == [(s.text, s.start) for s in spans(text)]
    assert not any(s.protection for s in spans(text, frozenset()))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet=st.characters(categories=["L", "M", "N", "Z", "Pd"]), max_size=100))
def test_without_marks_there_are_as_many_words_as_a_reader_counts(text: str) -> None:
    assert len(spans(text)) == sum(any(c.isalnum() for c in chunk) for chunk in text.split())


@pytest.mark.parametrize("unit", ["mg ", "a-", "5 ", "bid ", "a@", "a.", ",a", ":D", "&lt;3", "in "])
def test_a_long_text_is_read_to_its_end(unit: str) -> None:
    text = unit * 20_000
    assert spans(text)[-1].start > len(text) - 10 or " " not in unit
