"""A study in a few plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisyhealth.analysis.impact import Category

if TYPE_CHECKING:
    import pandas as pd

_FEW = 100  # texts a cell, below which a change of 5 % is within chance for any usual score
_WORDS = {
    Category.INCREASE: "improved",
    Category.STABLE: "stayed stable",
    Category.DECREASE: "decreased",
    Category.CATASTROPHIC: "dropped catastrophically",
    Category.UNDEFINED: "had a clean score of 0, so no change is defined",
}


def summary(scores: pd.DataFrame) -> tuple[str, ...]:
    """Return what happened to the scenarios of each weights, and what the reader should be warned of."""
    return tuple(
        sentence
        for weights, part in scores.groupby("weights", sort=False)
        for sentence in (_categories(str(weights), part), *_warnings(part))
    )


def _categories(weights: str, scores: pd.DataFrame) -> str:
    counts = scores["category"].value_counts()
    told = [f"{counts[one]} ({counts[one] / len(scores):.1%}) {_WORDS[one]}" for one in Category if counts.get(one)]
    cells = scores.drop_duplicates("run_id")
    return (
        f"Of {len(scores)} scenarios (weights: {weights}), {', '.join(told)}. They are the scores of {len(cells)} "
        f"disturbed {'cell' if len(cells) == 1 else 'cells'} "
        f"({_many(cells, 'task')}, {_many(cells, 'model')}, {_many(cells, 'perturb')}), "
        f"{_span(cells['n'])} texts a cell."
    )


def _many(cells: pd.DataFrame, name: str) -> str:
    count = cells[name].nunique()
    word = "perturbation" if name == "perturb" else name
    return f"{count} {word}{'s' if count > 1 else ''}"


def _span(n: pd.Series) -> str:
    return str(n.min()) if n.min() == n.max() else f"{n.min()} to {n.max()}"


def _warnings(scores: pd.DataFrame) -> list[str]:
    cells = scores.drop_duplicates("run_id")
    told = []
    if cells["n"].min() < _FEW:
        told.append(
            f"With fewer than {_FEW} texts a cell, many categories are a matter of chance: look at the intervals and "
            "probabilities in the table of every scenario before believing one."
        )
    unread = cells[cells[["unread", "unread_clean"]].max(axis=1) > cells["n"] / 2]
    if len(unread):
        told.append(
            f"In {len(unread)} cells more than half of the replies, to disturbed or clean texts, hold no answer "
            f"({', '.join(_who(unread))}): their "
            "scores say little about the model's knowledge."
        )
    return told


def _who(cells: pd.DataFrame) -> list[str]:
    pairs = cells[["task", "model"]].drop_duplicates()
    return [f"{task} · {model}" for task, model in pairs.itertuples(index=False, name=None)]
