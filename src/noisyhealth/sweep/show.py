"""What a sweep prints: the plan before, a line a cell, one table at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noisyhealth.analysis import impact
from noisyhealth.dataset.attrition import Attrition
from noisyhealth.plan import Line, Range
from noisyhealth.study import DONE, FAILED, Record

if TYPE_CHECKING:
    from noisyhealth.tracking.entries import Headline


def line(record: Record, place: int, cells: int) -> str:
    """Return one cell's line: its place, name, headline score clean and disturbed, change and category."""
    count = f"[{place:{len(str(cells))}}/{cells}] {record.cell}: "
    if record.headline is None:
        return f"{count}{record.status.upper()} {record.error}"
    return count + summary(record.headline) + ("" if record.status == DONE else f"  ({record.status})")


def shortened(record: Record, reason: str) -> Record:
    """Return a record without the error that ended its whole sweep: that is told once, at the end."""
    told = bool(reason) and record.error.endswith(reason)
    return replace(record, error=f"{record.error.partition(':')[0]}, which ends the sweep") if told else record


def kept(task: str, found: Attrition, tested: int, asked: int) -> str:
    """Return how many texts of a task are kept and tested, and for each reason how many are not kept.

    `asked`: how many should be tested, at most.

    >>> print(kept("qa", Attrition(read=8, left_out=Counter({"has no text": 1}), usable=7, kept=7), 4, 4))
    qa: 7 of 8 texts kept, 4 tested; 1 has no text
    >>> print(kept("qa", Attrition(read=7, usable=7, kept=7), 3, 4))
    qa: 7 of 7 texts kept, 3 tested (of at most 4; the others are for prompts and training)
    """
    reasons = [f"{n:,} {why}" for why, n in found.left_out.items()]
    if found.out_of_reach:
        reasons.append(f"{found.out_of_reach:,} cannot reach every level")
    short = f" (of at most {asked:,}; the others are for prompts and training)" if tested < asked else ""
    told = f"{task}: {found.kept:,} of {found.read:,} texts kept, {tested:,} tested{short}"
    return f"{told}{'; ' if reasons else ''}{', '.join(reasons)}"


def attrition(task: str, found: Attrition) -> None:
    """Print how many texts were read, usable, within reach of each level, and kept."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(title=f"Texts of task {task}", title_justify="left")
    shown.add_column("texts that are ...")
    shown.add_column("number", justify="right")
    shown.add_column("others")
    for what, texts, why in found.rows():
        shown.add_row(what, f"{texts:,}", why)
    Console(width=None if sys.stdout.isatty() else 140).print(shown, markup=False)


def realised(rates: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Print for each perturbation and level what was asked and what the texts really got, as means over texts."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Dose, means over the kept texts", title_justify="left")
    for column in ("perturbation", "asked", "words", "valid words", "characters", "edit distance", "medical edits"):
        shown.add_column(column, justify="left" if column == "perturbation" else "right")
    for name, levels in rates.items():
        for level, found in levels.items():
            shares = [f"{found[part]:.2%}" for part in ("rate", "words", "valid_words", "characters")]
            shown.add_row(f"{name} {level}", *shares, f"{found['edit_distance']:.1f}", f"{found['medical']:.1%}")
    Console(width=None if sys.stdout.isatty() else 140).print(shown, markup=False)


def plan(lines: Sequence[Line]) -> None:
    """Print for each model the calls, how many replies are kept already, tokens and money of the rest."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Nothing is asked yet: plan=true", title_justify="left")
    for column in ("model", "cells", "calls", "known", "to ask", "prompt tokens", "reply tokens", "US dollars"):
        shown.add_column(column, justify="left" if column == "model" else "right")
    for line in lines:
        counts = [f"{n:,}" for n in (line.cells, line.calls, line.known, line.left)]
        shown.add_row(line.model, *counts, between(line.prompt_tokens), between(line.reply_tokens), money(line.usd))
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(shown, markup=False)
    console.print(
        "A call is a text that differs from every other, clean or disturbed; known are those whose replies are kept "
        "from before. Tokens are estimated, three to five characters each, and of the calls left to make.",
        highlight=False,
    )


def between(found: Range) -> str:
    """Return a range of whole numbers.

    >>> between(Range(1200.4, 2000))
    '1,200 to 2,000'
    """
    return f"{found.low:,.0f} to {found.high:,.0f}" if found.high else "0"


def money(found: Range | None) -> str:
    """Return a range of US dollars, or that a price is not known.

    >>> money(Range(12.5, 31.25)), money(Range(0.0005, 0.0125)), money(Range(0, 0)), money(None)
    ('12.50 to 31.25', '0.0005 to 0.0125', 'nothing', 'price not known')
    """
    if found is None:
        return "price not known"
    digits = 2 if found.high >= 1 else 4
    return f"{found.low:,.{digits}f} to {found.high:,.{digits}f}" if found.high else "nothing"


def summary(found: Headline) -> str:
    """Return a cell's headline score in words, with its n."""
    if found.baseline is None:
        return f"{found.name} {found.score:.3f} on {found.n} texts{_unread(found)}"
    change = _change(found.score, found.baseline)
    came = f"({change})" if change == found.category else f"({change}) {found.category}"
    return f"{found.name} {found.baseline:.3f} → {found.score:.3f} {came}, {found.n} texts{_unread(found)}"


def _unread(found: Headline) -> str:
    """Return how many replies hold no answer, where they are more than a few: such a score says little of texts."""
    return f"; {found.unread} of them without an answer that can be read" if found.unread > found.n / 10 else ""


def _change(score: float, baseline: float) -> str:
    relative = impact.change(score, baseline)
    return "undefined" if relative is None else f"{relative:+.1%}"


def best(found: Mapping[str, Any]) -> str:
    """Return what a search over hyperparameters found.

    >>> best({"best_params": {"model.epochs": 4}, "best_value": 0.81234})
    'Best on the validation texts: model.epochs=4 (0.8123)'
    """
    chosen = " ".join(f"{name}={value}" for name, value in found["best_params"].items())
    return f"Best on the validation texts: {chosen} ({found['best_value']:.4f})"


def table(records: Sequence[Record]) -> None:
    """Print every cell with what became of it; failed ones with why, last."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Cells of this sweep", title_justify="left")
    for column in ("cell", "status", "score", "clean", "change", "category"):
        shown.add_column(column, justify="right" if column in ("score", "clean", "change") else "left", overflow="fold")
    for record in records:
        shown.add_row(record.cell, record.status, *_numbers(record.headline))
    # Piped output has no width of its own: 80 would fold every name.
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(shown, markup=False)
    counts = Counter(r.status for r in records)
    console.print(", ".join(f"{n} {status}" for status, n in counts.items()) or "no cell was run", highlight=False)
    for record in records:
        if record.status == FAILED:
            console.print(f"FAILED {record.cell}: {record.error}", markup=False, highlight=False)


def _numbers(found: Headline | None) -> tuple[str, str, str, str]:
    if found is None:
        return "", "", "", ""
    if found.baseline is None:
        return f"{found.score:.3f}", "", "", ""
    change = _change(found.score, found.baseline)
    return f"{found.score:.3f}", f"{found.baseline:.3f}", change, found.category
