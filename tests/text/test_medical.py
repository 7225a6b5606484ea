"""Medical terms, on sentences labelled by hand before the marking was tuned.

`tests/data/medical_sentences.jsonl`: 94 sentences written for this test, health and other, a word
labelled medical if it is or is part of the name of a disease, symptom, injury, body part, body
substance, organism, drug, procedure, place of care, carer or patient. Tags are spaCy's
(en_core_web_sm 3.8.0), X for all but the six open ones. Only the mistakes in the half
`set: tune` were looked at while the rules were chosen. One label was changed after the first run ("of" in
"shortness of breath", since a term of several words marks all of them), and the roots for tests and attacks
were added after "biopsies" and "heart attacks" failed below; "biopsy" also stands in the other half, whose
recall was .817 before that.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from noisyhealth.text.medical import MedicalTerms, has_affix

SENTENCES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "medical_sentences.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def _counts(chosen: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Count the words marked rightly, marked wrongly and missed."""
    terms = MedicalTerms.load()
    pairs = [pair for s in chosen for pair in zip(s["medical"], terms.mark(s["words"], s["tags"]), strict=True)]
    return pairs.count((True, True)), pairs.count((False, True)), pairs.count((True, False))


@pytest.mark.parametrize("half", ["tune", "held"])
def test_marking_is_precise_and_complete_on_labelled_sentences(half: str) -> None:
    right, wrong, missed = _counts([s for s in SENTENCES if s["set"] == half])
    assert right / (right + wrong) >= 0.80
    assert right / (right + missed) >= 0.80


@pytest.mark.parametrize(
    ("words", "tags", "expected"),
    [
        (["chest", "pain"], ["NOUN", "NOUN"], [True, True]),
        (["shortness", "of", "breath"], ["NOUN", "X", "NOUN"], [True, True, True]),
        (["heart", "attacks"], ["NOUN", "NOUN"], [True, True]),
        (["Arteries", "and", "biopsies"], ["NOUN", "X", "NOUN"], [True, False, True]),
        (["metastases"], ["NOUN"], [True]),
        (["He", "walks", "home"], ["X", "VERB", "ADV"], [False, False, False]),
        (["in", "the", "kitchen"], ["X", "X", "NOUN"], [False, False, False]),
        (["we", "cut", "it"], ["X", "X", "X"], [False, False, False]),
        ([], [], []),
    ],
)
def test_terms_are_marked_by_part_of_speech_and_as_a_whole(
    words: list[str], tags: list[str], expected: list[bool]
) -> None:
    assert MedicalTerms.load().mark(words, tags) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("metformin", True),
        ("Warfarin", True),
        ("in", False),
        ("table", False),
        ("", False),
    ],
)
def test_drug_names_are_known_in_any_case_and_common_words_are_not(word: str, expected: bool) -> None:
    assert MedicalTerms.load().is_drug(word) is expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("hepatosplenomegaly", True),
        ("cholangiopathies", True),
        ("Thrombophlebitis", True),
        ("coma", False),  # shorter than six letters
        ("thomas", False),
        ("websites", False),
        ("diploma", False),
        ("analysis", False),
    ],
)
def test_affixes_mark_long_words_built_from_medical_parts(word: str, expected: bool) -> None:
    assert has_affix(word) is expected


def test_the_tables_are_read_once() -> None:
    assert MedicalTerms.load() is MedicalTerms.load()
