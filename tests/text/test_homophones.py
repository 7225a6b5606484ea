"""The offline table of sound-alikes."""

from collections.abc import Iterator
from importlib.resources import files

import pytest

from noisyhealth.text.homophones import SoundAlike, Table

# Spellings of one word (VARCON, the variant list of SCOWL) and inflections of one stem.
SAME_WORD = (
    ("judgement", "judgment"),
    ("tumour", "tumor"),
    ("colour", "color"),
    ("centre", "center"),
    ("grey", "gray"),
    ("anaemia", "anemia"),
    ("analyse", "analyze"),
    ("disease", "diseased"),
    ("patient", "patients"),
    ("treat", "treated"),
    ("show", "showed"),
    ("significant", "significance"),
    ("growth", "grow"),
    ("responsible", "responsibly"),
    ("tho", "though"),
    ("recurrent", "recurrence"),
    ("different", "difference"),
)


def _rows() -> Iterator[tuple[str, str, list[str]]]:
    table = files("noisyhealth").joinpath("data", "tables", "homophones.tsv")
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            word, grade, candidates = line.split("\t")
            yield word, grade, candidates.split(",")


@pytest.mark.parametrize(
    ("word", "expected", "grade"),
    [
        ("heal", "heel", "exact"),  # pairs of ASSETS.md and of Datamuse's recorded answers
        ("pain", "pane", "exact"),
        ("muscle", "mussel", "exact"),
        ("vein", "vain", "exact"),
        ("week", "weak", "exact"),
        ("sell", "cell", "exact"),
        ("course", "coarse", "exact"),
        ("disease", "decease", "near"),  # the study's own example
        ("patients", "patience", "near"),
        ("showed", "sewed", "near"),
        ("treated", "tweeted", "near"),
        ("liver", "lover", "near"),
    ],
)
def test_a_word_is_answered_by_its_best_sound_alike(word: str, expected: str, grade: str) -> None:
    assert Table()(word) == SoundAlike(expected, grade)


@pytest.mark.parametrize("word", ["Heal", "HEAL", "hEAL"])
def test_the_case_of_the_question_does_not_matter(word: str) -> None:
    assert Table()(word) == SoundAlike("heel", "exact")


@pytest.mark.parametrize("word", ["", "x", "blorfquint", "2.5", "naïve-ish", "体"])
def test_what_the_table_lacks_has_no_sound_alike(word: str) -> None:
    assert Table()(word) is None


def test_a_typographic_apostrophe_is_read_as_a_plain_one() -> None:
    assert Table()("don\u2019t") == Table()("don't") is not None


@pytest.mark.parametrize(("one", "other"), SAME_WORD)
def test_spellings_and_inflections_of_one_word_do_not_stand_for_each_other(one: str, other: str) -> None:
    answers = {word: candidates for word, _, candidates in _rows()}
    assert other not in answers.get(one, [])
    assert one not in answers.get(other, [])


def test_every_row_is_well_formed_and_never_answers_with_the_word_itself() -> None:
    rows = list(_rows())
    assert len({word for word, _, _ in rows}) == len(rows) > 30_000
    for word, grade, candidates in rows:
        assert word == word.lower()
        assert word.replace("'", "").isalpha()
        assert grade in ("exact", "near")
        assert 1 <= len(set(candidates)) == len(candidates) <= 3
        assert all(c.isalpha() and c.islower() and len(c) > 1 and c != word for c in candidates)


@pytest.mark.parametrize("name", ["sue", "nick", "harry", "carol", "peter", "tony", "chile", "mary", "john"])
def test_no_word_becomes_a_name(name: str) -> None:
    assert [word for word, _, candidates in _rows() if name in candidates] == []
