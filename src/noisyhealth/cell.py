"""One cell of a study: what is asked of which model on which texts, and where its run goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisyhealth.dataset.design import Design
from noisyhealth.metrics.metric import Metric
from noisyhealth.mitigations.mitigation import Mitigation
from noisyhealth.models.model import Model
from noisyhealth.tasks.task import Task
from noisyhealth.tracking.store import Store

NONE = "none"  # the choice of a group that does nothing: perturb=none, mitigate=none


@dataclass(frozen=True)
class Cell:
    """One task, one model, one perturbation, one level, and all they need.

    `rate`: fraction of all words (or of the perturbation's unit), 0 for the baseline, whose level is "none".
    `field`: what is disturbed, the text or the question on it. `mitigation`: what is done about it, None where nothing
    is. `keep_text`: whether its run may hold texts. `metrics`: the user's own, by name. `resolved` is the configuration
    as plain values, for the record. `ablation`: the settings that tell it from other cells of its sweep, beside the
    four. `factors`: the same as the analysis reads them, each with its value as text; empty for a cell of no ablation.
    """

    task: Task
    model: Model
    perturb: str
    level: str
    rate: float
    field: str
    weights: str
    prompt: str
    design: Design
    seed: int
    repeat: int
    keep_text: bool
    cache: str
    store: Store
    resolved: Mapping[str, Any]
    metrics: Mapping[str, Metric]
    ablation: str = ""
    mitigation: Mitigation | None = None
    factors: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """How the cell is called everywhere: "qa · llama(SmolLM2-135M) · redact · high"."""
        told = self.ablation.split()
        own = f"mitigate={self.mitigation.name}" if self.mitigation else ""
        named = [*told, *([own] if own and own not in told else [])]
        parts = [self.task.name, self.model.label, self.perturb, self.level if self.rate else "", " ".join(named)]
        return " · ".join(part for part in parts if part)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scores that each count as a scenario in the analysis: the task's, and all metrics of the user's own."""
        return (*self.task.scenarios, *self.metrics)
