"""A metric of the user's own: beside the task's scores, a scenario, and refused where it is none."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from omegaconf import DictConfig

from noisyhealth import scoring, settings
from noisyhealth.cell import Cell
from noisyhealth.errors import ConfigError, DataError
from noisyhealth.records import Answer, Example, Outcome

EXAMPLES = [Example("1", "good", "positive"), Example("2", "bad", "negative"), Example("3", "worse", "negative")]
ANSWERS = [Answer(e.id, "positive", "positive", Outcome.SCORED) for e in EXAMPLES]


@pytest.fixture
def cell(workspace: Path, configured: Callable[..., DictConfig]) -> Cell:
    return settings.cell(configured("model=majority", "cache=cache"))


def share(examples: Sequence[Example], answers: Sequence[Answer]) -> float:
    return sum(answer.value == "positive" for answer in answers) / len(answers)


def test_a_metric_stands_beside_the_scores_of_the_task_and_is_a_scenario(cell: Cell) -> None:
    own = replace(cell, metrics={"share": share})
    assert scoring.scores(own, EXAMPLES, ANSWERS) == {**scoring.scores(cell, EXAMPLES, ANSWERS), "share": 1.0}
    assert own.scenarios == (*cell.scenarios, "share") == (*cell.task.scenarios, "share")


@pytest.mark.parametrize("found", [float("nan"), float("inf")])
def test_a_metric_that_gives_no_finite_number_is_an_error(found: float, cell: Cell) -> None:
    with pytest.raises(DataError, match=r"metric\.odd gave (nan|inf) on 3 answers"):
        scoring.scores(replace(cell, metrics={"odd": lambda examples, answers: found}), EXAMPLES, ANSWERS)


def test_a_metric_does_not_take_the_place_of_a_score_of_the_task(cell: Cell) -> None:
    with pytest.raises(ConfigError, match=r"metric\.accuracy: task=sentiment has a score accuracy already"):
        scoring.scores(replace(cell, metrics={"accuracy": share}), EXAMPLES, ANSWERS)


@pytest.mark.parametrize(
    "override",
    ["+metric._target_=mine.Metric", "+metric.one=3", "+metric.one={label: soon}", "+metric.one-two={_target_: a.B}"],
)
def test_a_file_that_does_not_name_its_metric_is_refused(
    override: str, workspace: Path, configured: Callable[..., DictConfig]
) -> None:
    with pytest.raises(ConfigError, match="is no metric: its file must have the metric's name"):
        settings.cell(configured("model=majority", "cache=cache", override))
