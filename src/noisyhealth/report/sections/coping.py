"""Which model copes worst: the mean change of each over all disturbances, and pairs of models on the same texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from noisyhealth.analysis.mean_change import MeanChange, mean_change
from noisyhealth.report.outline import Section, Table

if TYPE_CHECKING:
    import pandas as pd

_COPING = (
    "The main score of each task, in points (0 to 1), not relative to the clean score. value: the mean of the score "
    "over the disturbed cells; difference: how much it is above the baseline, with a 95 % interval (BCa bootstrap over "
    "the texts, each averaged over the cells first; of texts that share a patient or note, as many as `independent` "
    "are). worst: the cell that lost most. near_floor: not clearly above its floor on clean texts, so that it has "
    "little to lose. The model that lost most stands first."
)
_PAIRS = (
    "difference: the mean change of the first model less that of the second, on the same texts under the same "
    "disturbances; below 0 the first lost more. Text by text, with a 95 % interval (BCa bootstrap over the texts), not "
    "corrected for the number of pairs. beyond_chance: the interval does not hold 0. Of more than six models each "
    "stands against the one that lost least, of those clearly above their floor where there are any."
)

_MANY = 6  # models of which all pairs are compared: of forty they would be 780 a task
_ENDS = ("difference", "difference_low", "difference_high")
_PAIR = ("task", "first", "second", "cells", "n", "independent", *_ENDS, "beyond_chance", "note")


class Frames(NamedTuple):
    """A row a task and model; a row a task and pair of models."""

    models: pd.DataFrame
    pairs: pd.DataFrame


def frames(items: pd.DataFrame, low: Collection[tuple[str, str]]) -> Frames:
    """Return the mean change of each task and model, and of pairs, from the frame of answers of one weights.

    `low`: tasks with models that are near their floor on clean texts.
    """
    import pandas as pd

    models, pairs = [], []
    for task, part in items.groupby("task", observed=True, sort=False):
        changed = part.assign(change=part["right"] - part["clean_right"])
        groups = part.groupby("id", observed=True)["group"].first().astype(str)
        # A row a text and disturbance, a column a model: gaps where a model was not asked.
        wide = changed.set_index(["id", "perturb", "level", "model"])["change"].unstack("model")
        rows = [_row(str(task), str(name), own, groups) for name, own in changed.groupby("model", observed=True)]
        moved = pd.DataFrame(rows).sort_values("difference", kind="stable")
        moved.insert(3, "near_floor", [(task, name) in low for name in moved["model"]])
        models.append(moved)
        order, sound = moved["model"].tolist(), moved["model"][~moved["near_floor"]].tolist()
        best = (sound or order)[-1]
        pairs += [_pair(str(task), a, b, wide[a] - wide[b], groups) for a, b in _compared(order, best)]
    return Frames(pd.concat(models, ignore_index=True), pd.DataFrame(pairs, columns=list(_PAIR)))


def _compared(order: Sequence[str], best: str) -> Iterator[tuple[str, str]]:
    """Return the pairs that are compared: all, and of many models each with the best; the earlier one stands first."""
    return (pair for pair in combinations(order, 2) if len(order) <= _MANY or best in pair)


def section(weights: str, found: Frames, headlines: Mapping[str, str]) -> Section:
    """Return the section of one set of weights; `headlines` is the main score of each task."""
    models = found.models.copy()
    models.insert(2, "score_name", models["task"].map(dict(headlines)))
    paired = (Table(f"model_pairs_{weights}", "Models against each other", found.pairs, _PAIRS),)
    return Section(
        title=f"Which model copes worst? (weights: {weights})",
        sentences=tuple(_sentences(models, found.pairs)),
        tables=(
            Table(f"mean_change_{weights}", "Mean change of each model", models, _COPING),
            *(paired if len(found.pairs) else ()),
        ),
    )


def _row(task: str, model: str, own: pd.DataFrame, groups: pd.Series) -> dict[str, object]:
    cells = own.groupby(["perturb", "level"], observed=True, sort=False)["change"].mean()
    scores = {"baseline": float(own["clean_right"].mean()), "value": float(own["right"].mean())}
    worst = {"worst": " · ".join(cells.index[int(cells.argmin())]), "worst_difference": float(cells.min())}
    found = _over_texts(own.set_index("id")["change"], groups)
    return {"task": task, "model": model, "cells": len(cells), **scores, **_told(found), **worst, "note": found.note}


def _pair(task: str, first: str, second: str, lost: pd.Series, groups: pd.Series) -> dict[str, object]:
    """Return how two models differ over the texts and the disturbances that both have seen."""
    shared = lost.dropna()
    row = {**dict.fromkeys(_PAIR), "task": task, "first": first, "second": second}
    if shared.empty:
        return {**row, "cells": 0, "n": 0, "note": "no text that both were asked"}
    found = _over_texts(shared, groups)
    beyond = found.interval and not found.interval.low <= 0 <= found.interval.high
    cells = len(shared.groupby(["perturb", "level"], observed=True))
    return {**row, "cells": cells, **_told(found), "beyond_chance": beyond, "note": found.note}


def _over_texts(changes: pd.Series, groups: pd.Series) -> MeanChange:
    """Return the mean of changes, of each text (the index `id`) averaged over its rows first."""
    texts = changes.groupby(level="id", observed=True).mean()
    return mean_change(texts.tolist(), groups[texts.index].tolist())


def _told(found: MeanChange) -> dict[str, object]:
    return {
        "n": found.n,
        "independent": found.groups,
        "difference": found.mean,
        "difference_low": found.interval.low if found.interval else None,
        "difference_high": found.interval.high if found.interval else None,
    }


def _sentences(models: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Yield for each task which model lost most, which least, and how far these two are apart.

    Models near their floor have little to lose and are named apart.
    """
    for task, all_of in models.groupby("task", sort=False):
        own, low = all_of[~all_of["near_floor"]], all_of[all_of["near_floor"]]
        parts = [_verdict(own, pairs[pairs["task"] == task])] if len(own) else []
        if len(low):
            told = ", ".join(_moved(row) for _, row in low.iterrows())
            parts.append(
                f"with little to lose, since near their floor: {told}" if len(own) else f"near the floor: {told}"
            )
        if len(all_of) > 1 and len(own) < 2:
            parts.append("which model copes worst cannot be told")
        yield f"{task}, mean change of {all_of['score_name'].iloc[0]} over the disturbed cells: {'; '.join(parts)}."


def _verdict(own: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Return how the models that have something to lose stand, the most harmed first."""
    most, least = own.iloc[0], own.iloc[-1]
    if len(own) == 1:
        return _moved(most)
    [both] = pairs[(pairs["first"] == most["model"]) & (pairs["second"] == least["model"])].to_dict("records")
    within = ", within chance" if both["beyond_chance"] is False else ""
    between = f"; between the two {_points(both)}{within}" if both["n"] else ""
    return f"{_moved(most)} copes worst, {_moved(least)} best{between}"


def _moved(row: pd.Series) -> str:
    return f"{row['model']} with {_points(row)} from {row['baseline']:.3f}"


def _points(row: Mapping[str, Any] | pd.Series) -> str:
    import pandas as pd

    low, high = row["difference_low"], row["difference_high"]
    return f"{row['difference']:+.3f}" + (f" [{low:+.3f}, {high:+.3f}]" if pd.notna(low) else "")
