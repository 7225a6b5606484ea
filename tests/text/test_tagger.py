"""Which words of a text may be disturbed: by part of speech, and by the rules that protect."""

import pytest

from noisyhealth.errors import ConfigError
from noisyhealth.records import Word
from noisyhealth.text.tagger import Tagger, package, signature
from noisyhealth.text.words import PROTECTIONS

VALID = frozenset({"ADJ", "ADV", "VERB", "NOUN"})
TEXT = "She quickly took 500 mg of metformin for severe chest pain"


def tagged(text: str, tagger: Tagger | None = None) -> list[Word]:
    (found,) = (tagger or Tagger(VALID)).tag([text])
    return found


def valid(text: str, tagger: Tagger) -> set[str]:
    return {word.text for word in tagged(text, tagger) if word.valid}


@pytest.mark.parametrize(
    ("pos", "expected"),
    [
        (VALID, {"quickly", "took", "metformin", "severe", "chest", "pain"}),
        ({"ADJ"}, {"severe"}),
        ({"PRON"}, {"She"}),
        ({"NUM"}, set()),  # a number is protected whatever its part of speech
        (set(), set()),
    ],
)
def test_a_word_is_valid_by_its_part_of_speech_unless_a_rule_protects_it(pos: set[str], expected: set[str]) -> None:
    assert valid(TEXT, Tagger(frozenset(pos))) == expected


@pytest.mark.parametrize(
    ("protect", "more"),
    [(PROTECTIONS, set()), (PROTECTIONS - {"number"}, {"mg"}), (PROTECTIONS - {"link"}, set()), (frozenset(), {"mg"})],
)
def test_what_is_protected_is_a_setting(protect: frozenset[str], more: set[str]) -> None:
    assert valid(TEXT, Tagger(VALID, protect)) == valid(TEXT, Tagger(VALID)) | more


def test_the_words_and_their_tags_do_not_depend_on_what_is_protected() -> None:
    plain = [(w.text, w.start, w.pos, w.medical) for w in tagged(TEXT)]
    assert plain == [(w.text, w.start, w.pos, w.medical) for w in tagged(TEXT, Tagger(VALID, frozenset()))]


def test_a_kind_of_protection_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"\['units'\].*`protect`.*'number'"):
        tagged(TEXT, Tagger(VALID, frozenset({"units"})))


def test_texts_come_in_their_order_the_empty_ones_too_and_each_as_if_alone() -> None:
    texts = ["", "Chest pain.", " \n", "😀", TEXT, "I can't  sleep,\r\nit hurts (badly)."]
    found = list(Tagger(VALID).tag(texts))
    assert found == [tagged(text) for text in texts]
    assert [len(words) for words in found] == [0, 2, 0, 0, 11, 6]
    assert all(text[w.start : w.end] == w.text for text, words in zip(texts, found, strict=True) for w in words)


def test_a_word_of_several_tokens_has_the_tag_of_the_longest() -> None:
    assert [(w.text, w.pos) for w in tagged("I can't sleep")] == [("I", "PRON"), ("can't", "AUX"), ("sleep", "VERB")]


def test_medical_words_are_marked() -> None:
    assert {w.text for w in tagged(TEXT) if w.medical} >= {"metformin", "pain"}


def test_the_signature_names_the_tagger_and_both_versions() -> None:
    name, version, _, spacy = signature().split()
    assert (name, version[0].isdigit(), spacy[0].isdigit()) == (package(), True, True)
