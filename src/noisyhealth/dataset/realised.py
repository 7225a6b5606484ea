"""What the disturbances of a build really were, against what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from noisyhealth.dataset.design import Disturbance
from noisyhealth.errors import DataError
from noisyhealth.perturbations.engine import Unit
from noisyhealth.records import Dose, Variant


@dataclass
class _Sum:
    """Sums over the texts of one level."""

    texts: int = 0
    edits: int = 0
    asked: float = 0.0  # units
    given: float = 0.0  # units
    dose: dict[str, float] = field(default_factory=lambda: dict.fromkeys((f.name for f in fields(Dose)), 0.0))


class Realised:
    """Sums of doses over the kept texts of each disturbance and level."""

    def __init__(self, disturbances: Sequence[Disturbance]) -> None:
        self._of = {d.name: d for d in disturbances}
        self._sums = {(d.name, level): _Sum() for d in disturbances for level in d.levels}

    def add(self, disturbance: Disturbance, level: str, whole: int, variant: Variant) -> None:
        """Count one variant of a text of `whole` units. What changed is counted from its edits anew."""
        found = self._sums[disturbance.name, level]
        changed = [edit for edit in variant.edits if edit.before != edit.after]
        found.texts += 1
        found.edits += len(changed)
        found.asked += whole * disturbance.levels[level]
        found.given += variant.dose.edit_distance if disturbance.unit == Unit.CHARS else len(changed)
        for name, value in asdict(variant.dose).items():
            found.dose[name] += value

    def check(self, task: str) -> None:
        """Raise DataError where the mean dose is more than half a word off."""
        for (name, level), found in self._sums.items():
            unit = self._of[name].unit
            half = found.given / found.edits / 2 if unit == Unit.CHARS and found.edits else 0.5
            off = (found.given - found.asked) / max(found.texts, 1)
            if abs(off) > half + 1e-9:
                raise DataError(
                    f"task {task!r}: {name} {level} gave {found.given / found.texts:.2f} {unit} a text where "
                    f"{found.asked / found.texts:.2f} were asked: more than half a word off. This is a fault of "
                    "the perturbation: it must change the word it is given, and nothing else"
                )

    def plain(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return for each disturbance and level its rate and the mean dose, as JSON can hold them."""
        result: dict[str, dict[str, dict[str, Any]]] = {}
        for (name, level), found in self._sums.items():
            means = {part: summed / found.texts for part, summed in found.dose.items()}
            levels = result.setdefault(name, {})
            levels[level] = {"rate": self._of[name].levels[level], "texts": found.texts, "edits": found.edits, **means}
        return result
