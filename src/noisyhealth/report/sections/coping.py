"""Which model copes worst: the mean change of each over all disturbances, and pairs of models on the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    "are). worst: the cell that lost most. The model that lost most stands first. A model that is near its floor on "
    "clean texts has little to lose."
)
_PAIRS = (
    "How much more the first model lost than the second (difference below 0) or less (above), on the same texts under "
    "the same disturbances; text by text, with a 95 % interval (BCa bootstrap over the texts), not corrected for the "
    "number of pairs. beyond_chance: the interval does not hold 0."
)

_ENDS = ("difference", "difference_low", "difference_high")
_PAIR = ("task", "first", "second", "cells", "n", "independent", *_ENDS, "beyond_chance", "note")


class Frames(NamedTuple):
    """A row a task and model; a row a task and pair of models."""

    models: pd.DataFrame
    pairs: pd.DataFrame


def frames(items: pd.DataFrame) -> Frames:
    """Return the mean change of each task and model, and of pairs, from the frame of answers of one weights."""
    import pandas as pd

    models, pairs = [], []
    for task, of_task in items.groupby("task", observed=True, sort=False):
        own = {str(name): part for name, part in of_task.groupby("model", observed=True, sort=False)}
        moved = pd.DataFrame([_row(str(task), *one) for one in own.items()]).sort_values("difference", kind="stable")
        order = moved["model"].tolist()
        models.append(moved)
        pairs += [_pair(str(task), (a, own[a]), (b, own[b])) for a, b in combinations(order, 2)]
    return Frames(pd.concat(models, ignore_index=True), pd.DataFrame(pairs, columns=list(_PAIR)))


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


def _row(task: str, model: str, part: pd.DataFrame) -> dict[str, object]:
    changed = part.assign(change=part["right"] - part["clean_right"])
    cells = changed.groupby(["perturb", "level"], observed=True, sort=False)["change"].mean()
    scores = {"baseline": float(part["clean_right"].mean()), "value": float(part["right"].mean())}
    worst = {"worst": " · ".join(cells.index[int(cells.argmin())]), "worst_difference": float(cells.min())}
    found = _over_texts(changed)
    return {"task": task, "model": model, "cells": len(cells), **scores, **_told(found), **worst, "note": found.note}


def _pair(task: str, first: tuple[str, pd.DataFrame], second: tuple[str, pd.DataFrame]) -> dict[str, object]:
    """Return how two models differ over the texts and the disturbances that both have seen."""
    shared = first[1].merge(second[1], on=["id", "perturb", "level"], suffixes=("", "_second"))
    row = {**dict.fromkeys(_PAIR), "task": task, "first": first[0], "second": second[0]}
    if shared.empty:
        return {**row, "cells": 0, "n": 0, "note": "no text that both were asked"}
    lost = [shared["right" + who] - shared["clean_right" + who] for who in ("", "_second")]
    found = _over_texts(shared.assign(change=lost[0] - lost[1]))
    beyond = found.interval and not found.interval.low <= 0 <= found.interval.high
    cells = len(shared[["perturb", "level"]].drop_duplicates())
    return {**row, "cells": cells, **_told(found), "beyond_chance": beyond, "note": found.note}


def _over_texts(changed: pd.DataFrame) -> MeanChange:
    """Return the mean of the column `change`, of each text averaged over its rows first."""
    texts = changed.groupby("id", observed=True).agg(change=("change", "mean"), group=("group", "first"))
    return mean_change(texts["change"].to_list(), texts["group"].astype(str).to_list())


def _told(found: MeanChange) -> dict[str, object]:
    return {
        "n": found.n,
        "independent": found.groups,
        "difference": found.mean,
        "difference_low": found.interval.low if found.interval else None,
        "difference_high": found.interval.high if found.interval else None,
    }


def _sentences(models: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Yield for each task which model lost most, which least, and how far these two are apart."""
    for task, own in models.groupby("task", sort=False):
        most, least = own.iloc[0], own.iloc[-1]
        told = f"{task}, mean change of {most['score_name']} over the disturbed cells: {_moved(most)}"
        if len(own) == 1:
            yield f"{told}."
            continue
        [both] = pairs[
            (pairs["task"] == task) & (pairs["first"] == most["model"]) & (pairs["second"] == least["model"])
        ].to_dict("records")
        within = ", within chance" if both["beyond_chance"] is False else ""
        between = f"; between the two {_points(both)}{within}" if both["n"] else ""
        yield f"{told} copes worst, {_moved(least)} best{between}."


def _moved(row: pd.Series) -> str:
    return f"{row['model']} with {_points(row)} from {row['baseline']:.3f}"


def _points(row: Mapping[str, Any] | pd.Series) -> str:
    import pandas as pd

    low, high = row["difference_low"], row["difference_high"]
    return f"{row['difference']:+.3f}" + (f" [{low:+.3f}, {high:+.3f}]" if pd.notna(low) else "")
