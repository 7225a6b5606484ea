"""What counts as a word, and what no perturbation may touch."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisyhealth.text.words import spans


def parted(text: str) -> tuple[list[str], list[str]]:
    """Return the free and the protected words."""
    found = spans(text)
    return [s.text for s in found if not s.protected], [s.text for s in found if s.protected]


@pytest.mark.parametrize(
    ("text", "free", "protected"),
    [
        # numbers and their units
        ("took 2.5 mg today", ["took", "today"], ["2.5", "mg"]),
        ("took 2.5mg today", ["took", "today"], ["2.5mg"]),
        ("500 MG daily", ["daily"], ["500", "MG"]),
        ("20mg tablets twice", ["twice"], ["20mg", "tablets"]),
        ("dopamine 5 µg/kg/min", ["dopamine"], ["5", "µg/kg/min"]),
        ("potassium 3.4 mmol/L, low", ["potassium", "low"], ["3.4", "mmol/L"]),
        ("lipase 900 IU/L", ["lipase"], ["900", "IU/L"]),
        ("thyroxine 75 micrograms nightly", ["thyroxine", "nightly"], ["75", "micrograms"]),
        ("lost 4 kilos", ["lost"], ["4", "kilos"]),
        ("T 38.5 °C", ["T"], ["38.5", "C"]),
        ("BP 120/80", ["BP"], ["120/80"]),
        ("BP 120/80 mmHg, HR 96 bpm", ["BP", "HR"], ["120/80", "mmHg", "96", "bpm"]),
        ("½ tablet", [], ["½", "tablet"]),
        ("38% (p<0.001)", [], ["38", "p<0.001"]),
        ("1.5×10^9/L", [], ["1.5×10^9/L"]),
        ("3 weeks", [], ["3", "weeks"]),
        ("three weeks", ["three", "weeks"], []),
        ("weeks later", ["weeks", "later"], []),
        ("a 45 year-old man", ["a", "man"], ["45", "year-old"]),
        ("HbA1c SpO2 B12 T1D", [], ["HbA1c", "SpO2", "B12", "T1D"]),
        # doses
        ("metformin b.i.d. with food", ["metformin", "with", "food"], ["b.i.d"]),
        (
            "BID tid QID qd qhs prn p.r.n. po p.o. IV im sc",
            [],
            ["BID", "tid", "QID", "qd", "qhs", "prn", "p.r.n", "po", "p.o", "IV", "im", "sc"],
        ),
        ("q6h q8", [], ["q6h", "q8"]),
        (
            "apixaban 5 bd, tds, qds, od, nocte, mane, stat",
            ["apixaban"],
            ["5", "bd", "tds", "qds", "od", "nocte", "mane", "stat"],
        ),
        ("bidding on a stative model", ["bidding", "on", "a", "stative", "model"], []),
        # times
        ("at 8:30", ["at"], ["8:30"]),
        ("at 8:30 am, not 10 p.m.", ["at", "not"], ["8:30", "am", "10", "p.m"]),
        ("by 10.30pm", ["by"], ["10.30pm"]),
        ("at 8 o'clock or 9 o’clock", ["at", "or"], ["8", "o'clock", "9", "o’clock"]),
        ("am I ill", ["am", "I", "ill"], []),
        # dates
        ("on 12/03/2024", ["on"], ["12/03/2024"]),
        ("since 2024-03-12.", ["since"], ["2024-03-12"]),
        ("14 March", [], ["14", "March"]),
        ("the 14th March", ["the"], ["14th", "March"]),
        ("March 14, Sept. 3rd", [], ["March", "14", "Sept", "3rd"]),
        ("it may help in march", ["it", "may", "help", "in", "march"], []),
        # links and addresses
        ("see https://example.org/a?b=c#d, www.nhs.uk", ["see"], ["https://example.org/a?b=c#d", "www.nhs.uk"]),
        ("(http://t.co/abc)", [], ["http://t.co/abc"]),
        ("bit.ly/abc example.org nhs.uk", [], ["bit.ly/abc", "example.org", "nhs.uk"]),
        ("mail dr.lee+clinic@mail.example.org!", ["mail"], ["dr.lee+clinic@mail.example.org"]),
        ("sore.Then better", ["sore.Then", "better"], []),  # a missing space is no link
        # names and tags
        ("@nurse_jo thanks", ["thanks"], ["nurse_jo"]),
        (".@nurse (@doc) “@ward”", [], ["nurse", "doc", "ward"]),
        ("#type1 #hope (#tag)", [], ["type1", "hope", "tag"]),
        ("relief @ last", ["relief", "last"], []),
        # words
        ("Heel, (heel) “heel” heel… heel!", ["Heel", "heel", "heel", "heel", "heel"], []),
        ("can't I’m well-being O'Brien and/or", ["can't", "I’m", "well-being", "O'Brien", "and/or"], []),
        ("*sore* _sore_ ~sore~", ["sore", "sore", "sore"], []),
        ("😩 — … & ! \t\r\n", [], []),
        ("pain😩 😩pain", ["pain", "pain"], []),
        ("頭痛 боль άλγος दवा", ["頭痛", "боль", "άλγος", "दवा"], []),
        ("", [], []),
        ("HEADING:,  text", ["HEADING", "text"], []),
        ("one\u00a0two\u2003three\nfour", ["one", "two", "three", "four"], []),
    ],
)
def test_numbers_units_doses_times_dates_links_and_names_are_protected(
    text: str, free: list[str], protected: list[str]
) -> None:
    assert parted(text) == (free, protected)


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
    assert len(found) == sum(any(c.isalnum() for c in chunk) for chunk in text.split())
    assert all(text[s.start : s.start + len(s.text)] == s.text for s in found)
    assert all(a.start + len(a.text) <= b.start for a, b in pairwise(found))


@pytest.mark.parametrize("word", ["café", "naïve", "Núñez", "crème", "fiancé"])
def test_a_word_is_the_same_word_composed_and_decomposed(word: str) -> None:
    for form in ("NFC", "NFD"):
        shaped = unicodedata.normalize(form, word)  # type: ignore[arg-type]
        assert [s.text for s in spans(f"({shaped}),")] == [shaped]


def test_bp_keeps_its_place_before_its_numbers() -> None:
    assert [(s.text, s.start, s.protected) for s in spans("BP 120/80")] == [("BP", 0, False), ("120/80", 3, True)]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=200))
def test_the_words_of_any_text_are_in_order_whole_and_as_many_as_a_reader_counts(text: str) -> None:
    found = spans(text)
    assert len(found) == sum(any(c.isalnum() for c in chunk) for chunk in text.split())
    assert all(text[s.start : s.start + len(s.text)] == s.text and not any(map(str.isspace, s.text)) for s in found)
    assert all(a.start + len(a.text) < b.start for a, b in pairwise(found))
    assert all(s.protected for s in found if any(c.isdigit() for c in s.text))
