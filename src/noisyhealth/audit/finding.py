"""What a check says: the same, different, or that it cannot be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum


class Verdict(IntEnum):
    """What a check says; as an exit code, the gravest of them."""

    SAME = 0
    DIFFERENT = 1
    UNKNOWN = 2


@dataclass(frozen=True)
class Finding:
    """What is not as it should be, or cannot be told, in words; with SAME, what is good to know beside."""

    verdict: Verdict
    what: str


@dataclass(frozen=True)
class Checked:
    """What a check of a run found; `counts` says how much was looked at."""

    run: str
    name: str
    findings: tuple[Finding, ...]
    counts: Mapping[str, int]

    @property
    def verdict(self) -> Verdict:
        """The gravest: different before unknown before the same."""
        return gravest(finding.verdict for finding in self.findings)


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return different where one is, else unknown where one is, else the same.

    >>> gravest([Verdict.UNKNOWN, Verdict.DIFFERENT]).name, gravest([]).name
    ('DIFFERENT', 'SAME')
    """
    found = set(verdicts)
    return next((one for one in (Verdict.DIFFERENT, Verdict.UNKNOWN) if one in found), Verdict.SAME)
