"""The factors of ablations: the settings that a sweep gave several values, and which value is the reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisyhealth.analysis.completeness import DIMENSIONS, NONE

if TYPE_CHECKING:
    from mlflow.entities import Run

TAG = "factors"


@dataclass(frozen=True)
class Design:
    """Cells that were swept over the same settings; `values` has those of each, the reference first."""

    values: Mapping[str, tuple[str, ...]]
    runs: tuple[Run, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The settings, in the order in which they were swept."""
        return tuple(self.values)

    def is_reference(self, run: Run) -> bool:
        """Tell whether every factor of a run is at its reference."""
        return all(self.values[name][0] == value for name, value in of(run).items())


def of(run: Run) -> dict[str, str]:
    """Return the factors of a run, each with its value; none for a cell of no ablation."""
    found: dict[str, str] = json.loads(run.data.tags.get(TAG, "{}"))
    return found


def words(run: Run) -> str:
    """Return the factors of a run in one line."""
    return ", ".join(f"{name}={value}" for name, value in of(run).items())


def designs(runs: Sequence[Run], swept: Sequence[Mapping[str, Sequence[str]]]) -> list[Design]:
    """Return the designs of a study in the order of their first run.

    `swept`: what each sweep set out to run, the earliest first: the first value that a setting had there is its
    reference, and the order is that of the tables.
    """
    found: dict[frozenset[str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.info.start_time):
        if given := of(run):
            found.setdefault(frozenset(given), []).append(run)
    return [Design(_values(names, own, swept), tuple(own)) for names, own in found.items()]


def _values(
    names: frozenset[str], runs: Sequence[Run], swept: Sequence[Mapping[str, Sequence[str]]]
) -> dict[str, tuple[str, ...]]:
    """Return the values of each setting, in the order of the sweeps."""
    own = [choices for choices in swept if choices.keys() - set(DIMENSIONS) == names]
    order = [name for choices in own for name in choices if name in names]
    values: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys([*order, *sorted(names)]):
        there = [of(run)[name] for run in runs]
        told = [value for choices in own for value in choices[name]]
        values[name] = tuple(dict.fromkeys([*told, *there]))  # also one that no run has: the reference stays it
    return values


def own(runs: Sequence[Run], designs: Sequence[Design]) -> list[Run]:
    """Return the runs that the study's own tables rest on: the cells of no ablation.

    Where none of those has disturbed texts, the cells of the first design whose factors are all at their reference.
    """
    ordinary = [run for run in runs if not of(run)]
    if any(run.data.tags["perturb"] != NONE for run in ordinary):
        return ordinary
    return [run for design in designs[:1] for run in design.runs if design.is_reference(run)] or ordinary
