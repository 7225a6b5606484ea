"""Every rule of the contract: the perturbation that breaks it is told so, and one that keeps to all is not."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from noisyhealth import settings
from noisyhealth.commands.parser import main
from noisyhealth.contract import draw, rules, texts
from noisyhealth.contract.check import Found, check
from noisyhealth.contract.texts import Text
from noisyhealth.dataset.design import Design, Disturbance
from noisyhealth.perturbations.engine import OutOfReach
from noisyhealth.records import Example, Variant

CONF = Path(__file__).parent / "conf"
SHORT = ("Chest pain since Monday morning, 5 mg of warfarin did not help 😩 at all", "No fever, slept very badly again")
Composed = Callable[..., DictConfig]


@pytest.fixture
def broken(configured: Composed) -> Callable[..., Found]:
    """Check a perturbation of `broken.py` on the hard texts and two short ones."""

    def checked(name: str, *overrides: str, hash_seeds: tuple[str, ...] = (), least: float = 1.0) -> Found:
        target = f"perturb.change._target_=broken.{name}"
        cfg = configured(f"hydra.searchpath=['file://{CONF}']", "perturb=broken", target, *overrides)
        design = settings.design(cfg)
        disturbance = draw.own(design, "broken")
        on = [*texts.hard(design, disturbance), *texts_of(design, SHORT)]
        return check(plain(cfg), disturbance, on, least=least, hash_seeds=hash_seeds)

    return checked


def texts_of(design: Design, bodies: Sequence[str]) -> list[Text]:
    made = []
    for at, body in enumerate(bodies):
        words = tuple(texts._words(body, design))
        made.append(Text(design, Example(f"short {at}", body, "", body), "text", words))
    return made


def plain(cfg: DictConfig) -> Mapping[str, Any]:
    found = OmegaConf.to_container(cfg, resolve=True)
    assert isinstance(found, dict)
    return {str(name): value for name, value in found.items()}


def broken_rules(found: Found) -> set[str]:
    return {rule for rule, faults in found.faults.items() if faults}


def test_a_perturbation_that_keeps_to_the_contract_is_told_so(broken: Callable[..., Found]) -> None:
    found = broken("Kept", hash_seeds=("1", "2"))
    assert (broken_rules(found), found.holds) == (set(), True)
    assert found.changes > 50


@pytest.mark.parametrize(
    ("name", "rule", "told"),
    [
        ("Same", "identity", "a word that cannot change is None, not itself"),
        ("Wordy", "rate", "'Chest' → 'very Chest': is 2 words"),
        ("Lower", "replay", "'chest' does not stand at character 0, where the word begins"),
        ("Elsewhere", "replay", "'Chest' does not stand at character 1"),
        ("Part", "replay", "'C' is not the whole word"),
        ("Greedy", "protection", "takes 'pain' along"),
        ("Emoji", "protection", "takes '😩' along"),
        ("Counting", "determinism", "is another text the second time"),
        ("Chance", "determinism", "is another text the second time"),
        ("Worn", "determinism", "raises RuntimeError: worn out"),
        ("Choice", "determinism", "it draws from its random source by another method than random()"),
        ("Choking", "unicode", "raises KeyError: '頭'"),
        ("Torn", "unicode", "torn from its letter"),
        ("Unseen", "unicode", "the same word in another form of Unicode"),
        ("Control", "unicode", "U+0008 is no character of a text"),
        ("Line", "protection", r"takes '\n' along"),
        ("Glue", "rate", "two words become one"),
        ("Listed", "rate", "is 2 words to a reader"),
        ("Dash", "rate", "is no word; give one or nothing"),
        ("Invisible", "unicode", "U+200B is no character of a text"),
        ("Filler", "unicode", "U+3164 is no character of a text"),
        ("Selector", "unicode", "U+FE0F is no character of a text"),
        ("Seeding", "determinism", "it draws from its random source by another method than random()"),
        ("Text", "replay", "give a Change, or None"),
    ],
)
def test_a_perturbation_that_breaks_a_rule_is_told_which_and_by_what(
    name: str, rule: str, told: str, broken: Callable[..., Found]
) -> None:
    found = broken(name)
    assert not found.holds
    assert any(told in fault for fault in found.faults[rule]), found.faults
    also = {"Counting": {"nesting"}, "Chance": {"nesting"}, "Greedy": {"rate"}}.get(
        name, set()
    )  # what changes each time nests no more
    assert broken_rules(found) - also == {rule}


def test_what_depends_on_the_order_of_a_set_is_found_by_other_processes(broken: Callable[..., Found]) -> None:
    found = broken("Unordered", hash_seeds=("1", "2"))
    assert broken_rules(found) == {"determinism"}
    assert "in another process (PYTHONHASHSEED=" in found.faults["determinism"][0]


def test_levels_that_do_not_rise_do_not_nest(broken: Callable[..., Found]) -> None:
    found = broken("Kept", "perturb.levels.high=0.2")
    assert found.faults["nesting"] == ("levels.mid and levels.high are 0.2 and 0.2: they must rise",)
    assert broken_rules(found) == {"nesting"}


def test_two_levels_of_one_dose_do_not_nest(broken: Callable[..., Found]) -> None:
    found = broken("Kept", "+perturb.levels.again=0.2")
    assert found.faults["nesting"] == ("levels.mid and levels.again are one dose, 0.2",)


def test_a_perturbation_that_is_too_slow_is_told_so(broken: Callable[..., Found]) -> None:
    found = broken("Slow", least=100_000)
    assert broken_rules(found) == {"speed"}
    assert "words a second, and 100,000 are asked" in found.faults["speed"][0]


def test_levels_that_are_drawn_anew_need_not_nest(broken: Callable[..., Found]) -> None:
    assert broken("Kept", "perturb.nested=false").holds


@pytest.mark.parametrize("unit", ["valid_words", "chars"])
def test_the_rate_is_held_in_every_unit(unit: str, broken: Callable[..., Found]) -> None:
    assert broken("Kept", f"perturb.unit={unit}").holds


# What an engine that is at fault would give: the rules do not trust the one that there is.
@pytest.fixture
def drawn(configured: Composed) -> tuple[Text, Disturbance, dict[str, Variant]]:
    design = settings.design(configured("perturb=redact"))
    disturbance = draw.own(design, "redact")
    [text] = texts_of(design, ["Chest pain since Monday morning, 5 mg of warfarin did not help at all tonight"])
    found = draw.levels(text, disturbance)
    assert not any(isinstance(variant, OutOfReach) for variant in found.values())
    return text, disturbance, {level: v for level, v in found.items() if isinstance(v, Variant)}


def test_texts_as_they_should_be_break_no_rule(drawn: tuple[Text, Disturbance, dict[str, Variant]]) -> None:
    assert list(rules.of_levels(*drawn)) == []


def _fewer(found: dict[str, Variant]) -> dict[str, Any]:
    high = found["high"]
    return {**found, "high": replace(high, edits=high.edits[1:])}


FAULTS: dict[str, tuple[Callable[[dict[str, Variant]], dict[str, Any]], str]] = {
    "one edit too few": (_fewer, "rate"),
    "a text that is called too short": (lambda found: {**found, "low": OutOfReach.TOO_SHORT}, "rate"),
    "a byte changed outside the edits": (
        lambda found: {**found, "mid": replace(found["mid"], text=found["mid"].text + " ")},
        "replay",
    ),
    "an edit of what stands elsewhere": (
        lambda found: {**found, "low": replace(found["low"], edits=(found["low"].edits[0]._replace(before="xyz"),))},
        "replay",
    ),
    "a dose touched": (
        lambda found: {
            **found,
            "low": replace(found["low"], edits=(found["low"].edits[0]._replace(start=33, before="5 mg"),)),
        },
        "protection",
    ),
    "a level without the edits of the lower one": (
        lambda found: {**found, "high": replace(found["high"], edits=found["high"].edits[::-1][: -len("xx")])},
        "nesting",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_texts_that_an_engine_got_wrong_break_their_rule(
    what: str, drawn: tuple[Text, Disturbance, dict[str, Variant]]
) -> None:
    text, disturbance, found = drawn
    forge, rule = FAULTS[what]
    assert rule in {broken for broken, _ in rules.of_levels(text, disturbance, forge(found))}


def test_edits_at_rate_zero_break_identity(
    drawn: tuple[Text, Disturbance, dict[str, Variant]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, disturbance, found = drawn
    monkeypatch.setattr(rules, "levels", lambda text, asked: dict.fromkeys(asked.levels, found["low"]))
    assert "identity" in {rule for rule, _ in rules.of_levels(text, disturbance, found)}


def test_the_command_prints_a_card_and_ends_with_1_where_a_rule_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("task=sentiment", "perturb=broken", "perturb.change._target_=broken.Seldom")
    assert main(["check", "--config-dir", str(CONF), *chosen]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"rate +BROKEN .*\n +- levels\.low=0\.1: none of \d+ texts reaches it", printed)
    assert "out of reach: too few words can change" in printed
    assert "identity     holds" in printed


def test_code_that_is_not_found_is_said_to_be_looked_for_along_pythonpath(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("perturb=broken", "perturb.change._target_=nowhere.Mine")
    assert main(["check", "--config-dir", str(CONF), *chosen]) == 2
    told = "nowhere.Mine is not found: Python looks for files of yours in the folders of PYTHONPATH"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["perturb=none"], "perturb=none disturbs nothing"), (["--config-dir", "nowhere"], "nowhere: no folder there")],
)
def test_what_cannot_be_checked_ends_with_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "task=sentiment", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_level_that_no_text_reaches_breaks_the_rate() -> None:
    disturbance = Disturbance("x", {"low": 0.1, "high": 0.9}, True, None)
    [(rule, told)] = rules.of_reach(disturbance, {"low": 3, "high": 0}, 7)
    assert (rule, told) == ("rate", "levels.high=0.9: none of 7 texts reaches it")
