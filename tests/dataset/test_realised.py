"""What the texts really got is summed from the variants, and a perturbation that gives less is caught."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from statistics import fmean

import pytest
from given import REDACT, TYPO, Nouns, invented, made, rows

from noisyhealth.dataset.design import Disturbance
from noisyhealth.dataset.realised import Realised
from noisyhealth.errors import DataError
from noisyhealth.perturbations.engine import Change, Unit, distance, disturb, ranked, total
from noisyhealth.perturbations.redact import Redact
from noisyhealth.perturbations.typo import Typo
from noisyhealth.records import Dose, Edit, Example, Variant, Word

UNITS = ("words", "valid_words", "chars")


def edit(before: str, after: str, word: int = 0) -> Edit:
    return Edit(0, before, after, "op", "NOUN", False, word)


def variants(disturbance: Disturbance, text: str) -> Mapping[str, Variant]:
    words = next(Nouns().tag([text]))
    edits = ranked(text, words, disturbance.change, Random(text))
    return disturb(text, words, edits, rates=disturbance.levels, unit=Unit(disturbance.unit))


def filled(disturbance: Disturbance, lie: Callable[[Variant], Variant], count: int = 20) -> Realised:
    """Return what is found of variants that lie."""
    found = Realised([disturbance])
    for example in invented(count, 40):
        words = next(Nouns().tag([example.text]))
        for level, variant in variants(disturbance, example.text).items():
            found.add(disturbance, level, total(example.text, words, Unit(disturbance.unit)), lie(variant))
    return found


def honest(variant: Variant) -> Variant:
    return variant


def without_one(variant: Variant) -> Variant:
    """Return a variant that has one edit less, with a dose that says nothing of it."""
    return replace(variant, edits=variant.edits[1:])


def one_too_many(variant: Variant) -> Variant:
    return replace(variant, edits=(*variant.edits, edit("a", "b", 99)))


def one_changes_nothing(variant: Variant) -> Variant:
    first = variant.edits[0]
    return replace(variant, edits=(first._replace(after=first.before), *variant.edits[1:]))


def nothing(variant: Variant) -> Variant:
    return replace(variant, edits=())


def far(variant: Variant) -> Variant:
    """Return a variant that is a whole word further from its text than it should be."""
    size = variant.dose.edit_distance / len(variant.edits)
    return replace(variant, dose=replace(variant.dose, edit_distance=variant.dose.edit_distance + round(size) + 1))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("change", [Redact(), Typo()], ids=["redact", "typo"])
def test_what_the_engine_gives_is_within_half_a_word(unit: str, change: Redact | Typo) -> None:
    filled(Disturbance("x", {"low": 0.05, "mid": 0.1, "high": 0.2}, True, change, unit), honest).check("qa")


@pytest.mark.parametrize("unit", ["words", "valid_words"])
@pytest.mark.parametrize("lie", [without_one, one_too_many, one_changes_nothing, nothing])
def test_a_perturbation_that_gives_a_word_less_or_more_is_caught(unit: str, lie: Callable[[Variant], Variant]) -> None:
    asked = Disturbance("typo", {"low": 0.1}, True, Typo(), unit)
    with pytest.raises(
        DataError, match=rf"task 'qa': typo low gave \d\.00 {unit} a text where 4\.00 were asked"
    ) as caught:
        filled(asked, lie).check("qa")
    assert "more than half a word off. This is a fault of the perturbation" in str(caught.value)


def test_characters_are_caught_when_they_are_more_than_half_a_word_off() -> None:
    asked = Disturbance("redact", {"low": 0.3}, True, Redact(), "chars")
    with pytest.raises(DataError, match=r"redact low gave \d+\.\d\d chars a text where 84\.00 were asked"):
        filled(asked, far).check("qa")


def test_a_lie_in_few_texts_is_within_the_mean_and_shows_in_the_numbers() -> None:
    asked = Disturbance("typo", {"low": 0.1}, True, Typo())
    found = filled(asked, lambda v: without_one(v) if v.text[0] < "e" else v)
    found.check("qa")
    assert found.plain()["typo"]["low"]["edits"] < 80


def test_a_level_that_lies_is_found_among_those_that_do_not() -> None:
    asked = Disturbance("typo", {"low": 0.1, "high": 0.3}, True, Typo())
    found = filled(asked, lambda v: without_one(v) if len(v.edits) > 6 else v)
    with pytest.raises(DataError, match=r"typo high gave 11\.00 words a text where 12\.00 were asked"):
        found.check("qa")


def test_a_baseline_is_asked_for_nothing() -> None:
    none = Disturbance("none", {"none": 0.0}, True, None)
    found = Realised([none])
    found.add(none, "none", 40, Variant("1", "text", (), Dose()))
    found.check("qa")
    assert found.plain() == {
        "none": {
            "none": {"rate": 0.0, "texts": 1, "edits": 0}
            | dict.fromkeys(("words", "valid_words", "characters", "edit_distance", "medical"), 0.0)
            | {"total_words": 0.0, "total_valid_words": 0.0}
        }
    }


def test_half_a_word_is_where_it_begins() -> None:
    asked = Disturbance("x", {"low": 0.1}, True, Redact())
    for words, raises in ((15, False), (16, True)):  # one edit where 1.5 and 1.6 are asked
        found = Realised([asked])
        found.add(asked, "low", words, Variant("1", "", (edit("a", "b"),), Dose()))
        if raises:
            with pytest.raises(DataError, match=r"x low gave 1\.00 words a text where 1\.60 were asked"):
                found.check("qa")
        else:
            found.check("qa")


class Half:
    """A perturbation that says it changes a word and changes a part of the words alone."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change:
        return Change(word.start, word.text, word.text.upper(), "shout")


def test_words_that_a_perturbation_leaves_as_they_are_do_not_count_as_changed() -> None:
    asked = Disturbance("shout", {"low": 0.1}, True, Half())
    texts = [Example(e.id, e.text.upper() if n % 2 else e.text, "t") for n, e in enumerate(invented(20))]
    assert made(texts, asked).attrition.reach["shout"]["low"] == {"reaches": 10, "too few words can change": 10}


def test_the_means_are_those_of_the_variants() -> None:
    build = made(invented(30, 25), REDACT, TYPO)
    means = build.facts["realised"]
    for asked in (REDACT, TYPO):
        for level, rate in asked.levels.items():
            doses, found = [], means[asked.name][level]
            for row in rows(build):
                edits = [Edit(**edit) for edit in row[f"{asked.name}_{level}_edits"]]
                far = sum(map(distance, edits))
                doses.append((len(edits) / 25, far / len(row["text"]), far))
            assert found["rate"] == rate
            assert found["texts"] == 30
            assert found["edits"] == sum(round(words * 25) for words, _, _ in doses)
            assert found["words"] == found["valid_words"] == pytest.approx(fmean(d[0] for d in doses))
            assert found["characters"] == pytest.approx(fmean(d[1] for d in doses))
            assert found["edit_distance"] == pytest.approx(fmean(d[2] for d in doses))


@pytest.mark.parametrize("rate", [0.1, 0.05, 0.3])
@pytest.mark.parametrize("length", [2, 4, 6])
def test_a_short_text_whose_first_word_is_more_than_twice_what_is_asked_is_too_short(rate: float, length: int) -> None:
    """Of characters a level is the nearest number of whole words: where none is nearer than one, it is not reached."""
    asked = Disturbance("redact", {"low": rate}, True, Redact(), "chars")
    texts = [Example(str(n), e.text, "t") for n, e in enumerate([*invented(20, 80), *invented(40, length)])]
    build = made(texts, asked)
    assert len(build.examples) >= 20
    for row in rows(build):
        sizes = [len(edit["before"]) for edit in row["redact_low_edits"]]
        assert abs(sum(sizes) - rate * len(row["text"])) <= max(sizes) / 2 + 0.5  # half a character for rounding
