"""How many texts were read, could be used, reach each level, and are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from noisyhealth.perturbations.engine import OutOfReach

Reach: TypeAlias = dict[str, dict[str, Counter[str]]]
REACHES = "reaches"


@dataclass
class Attrition:
    """Counts of texts, filled as they pass.

    `repaired`: texts by what was mended in them. `left_out`: rows that give no usable example, by reason. `reach`:
    for each perturbation and level, how many usable texts reach it, and how many do not, by reason.
    read = usable + left out; kept are the usable texts that reach every level.
    """

    read: int = 0
    repaired: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    usable: int = 0
    reach: Reach = field(default_factory=dict)
    kept: int = 0

    def met(self, name: str, levels: Mapping[str, object]) -> None:
        """Count the levels of one perturbation that one text reaches, and why it does not reach others."""
        for level, given in levels.items():
            counts = self.reach.setdefault(name, {}).setdefault(level, Counter())
            counts[str(given) if isinstance(given, OutOfReach) else REACHES] += 1

    @property
    def out_of_reach(self) -> int:
        """How many usable texts are not kept."""
        return self.usable - self.kept

    def rows(self) -> Iterator[tuple[str, int, str]]:
        """Yield the table: what, how many texts, and why others are not among them."""
        yield "read", self.read, ""
        for what, texts in self.repaired.items():
            yield f"  mended: {what}", texts, ""
        for reason, texts in self.left_out.items():
            yield f"  left out: {reason}", texts, ""
        yield "usable", self.usable, ""
        for name, levels in self.reach.items():
            for level, counts in levels.items():
                why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(counts.items()) if reason != REACHES)
                yield f"  reaches {name} {level}", counts[REACHES], why
        yield "kept: reaches every level", self.kept, ""

    def plain(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        reach = {name: {level: dict(c) for level, c in levels.items()} for name, levels in self.reach.items()}
        left = {"repaired": dict(self.repaired), "left_out": dict(self.left_out)}
        return {"read": self.read, **left, "usable": self.usable, "reach": reach, "kept": self.kept}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Attrition:
        """Return the counts from what `plain` gave."""
        reach = {n: {level: Counter(c) for level, c in levels.items()} for n, levels in plain["reach"].items()}
        counters = {name: Counter(plain[name]) for name in ("repaired", "left_out")}
        return cls(plain["read"], **counters, usable=plain["usable"], reach=reach, kept=plain["kept"])
