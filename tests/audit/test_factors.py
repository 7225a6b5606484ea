"""An ablation's values are checked against the settings of its runs, and are part of a cell's key."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from noisyhealth import settings, study
from noisyhealth.audit import checks
from noisyhealth.audit.finding import Verdict
from noisyhealth.cell import Cell
from noisyhealth.experiment import design_tags

Configured = Callable[..., DictConfig]


def cell(configured: Configured, **factors: str) -> Cell:
    return settings.cell(configured("model=majority", "prompt.shots=0"), factors=factors)


def found(configured: Configured, **factors: str) -> list[Verdict]:
    made = cell(configured, **factors)
    run: Any = SimpleNamespace(config=OmegaConf.to_container(OmegaConf.create(dict(made.resolved))))
    return [finding.verdict for finding in checks.factors(run, made)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("prompt.shots", "0"), ("seed", "0"), ("perturb.nested", "true"), ("perturb.levels.low", "0.1")],
)
def test_a_value_that_the_settings_have_is_no_finding_and_another_is(
    name: str, value: str, configured: Configured
) -> None:
    assert found(configured, **{name: value}) == []
    assert found(configured, **{name: "7"}) == [Verdict.DIFFERENT]


def test_a_choice_of_a_group_is_in_the_key_alone(configured: Configured) -> None:
    assert found(configured, prompt="warning") == []


def test_the_same_cell_under_two_designs_has_two_keys(configured: Configured) -> None:
    asked: Any = SimpleNamespace(clean_keys=(), disturbed_keys=(), build=SimpleNamespace(hash="h"), mitigated=None)
    own, one, other = (
        study.key(cell(configured, **factors), asked) for factors in ({}, {"seed": "0"}, {"prompt.shots": "0"})
    )
    assert len({own, one, other}) == 3
    assert study.key(cell(configured, seed="0", a="1"), asked) == study.key(cell(configured, a="1", seed="0"), asked)


def test_an_ordinary_cell_has_no_tag_of_factors(configured: Configured) -> None:
    assert "factors" not in design_tags(cell(configured))
    assert design_tags(cell(configured, seed="0"))["factors"] == '{"seed": "0"}'
