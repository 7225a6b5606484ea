"""The counts of what became of the texts add up and can be read."""

import json
from collections import Counter

import pytest
from given import REDACT, Nouns, invented, made

from noisyhealth.dataset.attrition import Attrition
from noisyhealth.dataset.design import Disturbance
from noisyhealth.dataset.table import Build
from noisyhealth.perturbations.redact import Redact
from noisyhealth.records import Example, Variant
from noisyhealth.sources.source import Read

PHOTO = Disturbance("photo", {"one": 0.1, "all": 1.0}, True, Redact())
ROWS = [
    *invented(14),
    Example("short", "Pain again", "yes"),
    Example("numbers", "12/80 7 8 9 10 11 12 today", "no"),
    Example("emoji", "😩😩", "yes"),
    Read(Example("unmapped", "Whatever", "7"), (), "has a target that is not mapped"),
    Read(Example("empty", "", "yes"), ("entities",), "has no text"),
    Read(
        Example("mended", "Tea & toast for breakfast again and again since my long illness began", "no"), ("entities",)
    ),
]


@pytest.fixture(scope="module")
def built() -> Build:
    return made(ROWS, REDACT, PHOTO)


def test_read_is_usable_and_left_out_and_usable_is_kept_and_out_of_reach(built: Build) -> None:
    found = built.attrition
    assert (found.read, found.usable, found.kept, found.out_of_reach) == (20, 18, 15, 3)
    assert found.read == found.usable + found.left_out.total()
    assert found.kept == len(built.examples)


def test_for_each_level_the_texts_that_reach_it_and_those_that_do_not_are_the_usable_ones(built: Build) -> None:
    reach = built.attrition.reach
    assert {(name, level) for name, levels in reach.items() for level in levels} == {
        ("redact", "low"),
        ("redact", "high"),
        ("photo", "one"),
        ("photo", "all"),
    }
    assert {counts.total() for levels in reach.values() for counts in levels.values()} == {18}


def test_a_text_too_short_for_a_rate_is_told_from_one_with_too_few_words_that_can_change(built: Build) -> None:
    reach = built.attrition.reach
    # 2 words x .1 and 0 words ask for nothing; 8 words x .3 asks for 2, x 1 for 8, of the 1 that is no number.
    assert reach["redact"]["low"] == {"reaches": 16, "too short": 2}
    assert reach["redact"]["high"] == {"reaches": 16, "too few words can change": 1, "too short": 1}
    assert reach["photo"]["all"] == {"reaches": 16, "too few words can change": 1, "too short": 1}


def test_what_was_mended_is_counted_whether_the_text_is_used_or_not(built: Build) -> None:
    assert built.attrition.repaired == {"entities": 2}


def test_the_table_goes_from_read_to_kept() -> None:
    found = Attrition(20, Counter(entities=2), Counter({"has no text": 2}), usable=18, kept=15)
    found.reach = {"redact": {"low": Counter({"reaches": 1500, "too short": 1234, "too few words can change": 1})}}
    assert list(found.rows()) == [
        ("read", 20, ""),
        ("  mended: entities", 2, ""),
        ("  left out: has no text", 2, ""),
        ("usable", 18, ""),
        ("  reaches redact low", 1500, "1 too few words can change, 1,234 too short"),
        ("kept: reaches every level", 15, ""),
    ]


def test_a_level_that_no_text_reaches_has_a_row_with_nought() -> None:
    found = Attrition(usable=1, reach={"redact": {"low": Counter({"too short": 1})}})
    assert ("  reaches redact low", 0, "1 too short") in list(found.rows())


def test_the_counts_come_back_from_json(built: Build) -> None:
    for found in (built.attrition, Attrition()):
        back = Attrition.of(json.loads(json.dumps(found.plain())))
        assert back == found
        assert list(back.rows()) == list(found.rows())


def test_a_text_is_met_once_a_perturbation_with_all_its_levels() -> None:
    [example] = invented(1)
    words = next(Nouns().tag([example.text]))
    found = Attrition()
    found.met("none", {"low": Variant("", example.text, (), None), "high": words})  # anything but a reason reaches
    assert found.reach == {"none": {"low": {"reaches": 1}, "high": {"reaches": 1}}}
