"""What decides a build: wrong settings are refused, and another setting is another build."""

from collections.abc import Callable
from pathlib import Path

import pytest
from given import REDACT, design
from omegaconf import DictConfig

from noisyhealth import settings
from noisyhealth.dataset.design import Disturbance, Split
from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.redact import Redact


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((0.0, 3, 0.8), r"data\.split\.prompt=0\.0: give a share between 0 and 1"),
        ((1.2, 3, 0.8), r"data\.split\.prompt=1\.2"),
        ((0.2, 0, 0.8), r"data\.split\.test=0: give at least 1 text"),
        ((0.2, -20, 0.8), r"data\.split\.test=-20"),
        ((0.2, 3, 1.0), r"data\.split\.train=1\.0"),
        ((0.2, 3, float("nan")), r"data\.split\.train=nan"),
    ],
)
def test_a_split_that_is_none_is_refused(split: tuple[float, int, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Split(*split)


@pytest.mark.parametrize(
    ("levels", "unit", "field", "message"),
    [
        ({"low": 0.1}, "letters", "text", r"perturb=x: unit='letters' is none of words, valid_words, chars"),
        ({"low": 0.1}, "", "text", "unit=''"),
        ({"low": 0.1}, "words", "target", r"perturb=x: field='target' is none of text, question"),
        ({"low": 10}, "words", "text", r"perturb=x: levels\.low=10: give a fraction of words, 0 to 1"),
        ({"low": 0.1, "high": -0.1}, "chars", "question", r"levels\.high=-0\.1: give a fraction of chars"),
        ({"low": float("nan")}, "words", "text", r"levels\.low=nan"),
    ],
)
def test_a_disturbance_that_makes_no_sense_is_refused(
    levels: dict[str, float], unit: str, field: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Disturbance("x", levels, True, Redact(), unit, field)


@pytest.mark.parametrize("unit", ["words", "valid_words", "chars"])
@pytest.mark.parametrize("field", ["text", "question"])
def test_a_rate_of_0_and_of_1_are_rates(unit: str, field: str) -> None:
    assert Disturbance("x", {"none": 0, "all": 1}, False, None, unit, field).levels == {"none": 0, "all": 1}


@pytest.mark.parametrize(
    "found", [{"task": "qa", "seed": 1}, {"task": "qa", "keep": {"typo": {"levels": {"low": 0.2}}}}, {}], ids=str
)
def test_the_hash_changes_with_a_setting_and_not_with_their_order(found: dict[str, object]) -> None:
    assert design([], settings=found).hash != design([]).hash
    assert design([], settings=found).hash == design([], settings=dict(reversed(found.items()))).hash


@pytest.mark.parametrize(
    "override",
    [
        "task=qa",
        "seed=1",
        "draw=1",
        "data.split.prompt=0.3",
        "data.split.test=21",
        "data.split.train=0.7",
        "level.rate=0.15",
        "perturb.levels.low=0.15",
        "keep.redact.levels.mid=0.35",
        "keep.redact.nested=false",
        "keep.redact.unit=valid_words",
        "perturb.change.high_share=0.6",
        "keep.redact.change.mask=___",
        "~keep.homophone",
        "valid_pos=[NOUN]",
        "protect=[]",
        "letters=qwerty",
    ],
)
def test_every_choice_of_the_configuration_that_changes_texts_is_another_build(
    override: str, configured: Callable[..., DictConfig]
) -> None:
    assert settings.design(configured(override)).hash != settings.design(configured()).hash


def test_disturbing_the_question_and_not_the_text_is_another_build(configured: Callable[..., DictConfig]) -> None:
    asked = settings.design(configured("task=qa", "keep.redact.field=question"))
    assert asked.hash != settings.design(configured("task=qa")).hash


@pytest.mark.parametrize(
    "override", ["model=majority", "level=mid", "perturb=redact", "threads=1", "study=other", "cache=x"]
)
def test_all_cells_of_a_task_share_one_build(override: str, configured: Callable[..., DictConfig]) -> None:
    assert settings.design(configured(override)).hash == settings.design(configured()).hash


def test_the_hash_changes_with_the_users_file(tmp_path: Path, configured: Callable[..., DictConfig]) -> None:
    path = tmp_path / "notes.jsonl"
    chosen = "task=sentiment", "data=files", f"data.source.paths.sentiment={path}"
    path.write_text('{"text": "one", "target": "a"}\n')
    first = settings.design(configured(*chosen)).hash
    assert settings.design(configured(*chosen)).hash == first
    path.write_text('{"text": "two", "target": "a"}\n')
    assert settings.design(configured(*chosen)).hash != first


def test_the_hash_changes_with_the_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    first = design([], REDACT).hash
    monkeypatch.setattr("noisyhealth.text.tagger.signature", lambda: "another 1.0")
    assert design([], REDACT).hash != first
