"""RQ1: what the disturbances did to the scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from noisyhealth.analysis import impact
from noisyhealth.analysis.association import Association, association
from noisyhealth.analysis.inference import FACTORS
from noisyhealth.report.figures.categories import categories
from noisyhealth.report.figures.dose import dose
from noisyhealth.report.figures.heatmap import heatmap
from noisyhealth.report.outline import Section, Table
from noisyhealth.report.sections.frames import holm, p_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from noisyhealth.report.examples import Examples

_CELL = ["task", "model", "perturb", "level"]
_BASELINES = (
    "What the changes are relative to. floor: the score of a model that always gave the commonest right answer; of "
    "free answers, ROUGE-L of the model's own answers against the references of other texts (200 pairs at most). "
    "commonest_share: how often the model gave its own commonest label. A score near its floor cannot fall much, and "
    "its changes say little."
)
_CATEGORIES = (
    "Categories of the change relative to the clean score: increase (better), stable (down by less than 5 %), "
    "decrease (by 5 to 50 %), catastrophic (by half or more); undefined has a clean score of 0. n: scenarios, each a "
    "score of a cell."
)
_CHI = (
    "Pearson's chi-squared test. v is Cramér's V, 0 (none) to 1 (full association); least_expected the smallest "
    "number expected in a field: below 5, p is from 9,999 permutations. Scores of one cell come from the same "
    "replies, so p is smaller than it should be; the study counts them in the same way."
)
_EXPECTED = "The fields of those tests: how many scenarios fell there, and how many would without an association."
_CHANGES = (
    "n texts, of which as many as `independent` says share no patient or note. value, baseline and change (a fraction"
    " of the baseline) with 95 % intervals (Wilson's of accuracies, else BCa bootstrap over texts). The probabilities"
    " are shares of 4,999 paired resamples of the texts in each category: a category with less than .95 could as well"
    " be its neighbour, and where few answers flipped they are too sure, so read them with p. p: exact McNemar test "
    "for accuracy, else paired bootstrap, of no change; p_holm corrected for all rows of this table."
)
_FLIPS = (
    "What became of the answers, of n: right to wrong, wrong to right, wrong to another wrong one. For free answers: "
    "a lower ROUGE-L, a higher one, another answer with the same. unread and unread_clean: replies that hold no "
    "answer, counted as wrong. better_p: one-sided sign-flip test of the texts' changes: that the scores rose by "
    "more than chance; better_p_holm corrected for all rows."
)
_DOSE = (
    "Means over the texts: edited words, their share of all words, of the words that may be edited, of the "
    "characters; how many of the edited words are medical terms."
)


def section(
    weights: str,
    scores: pd.DataFrame,
    examples: Examples,
    doses: pd.DataFrame,
    headlines: Mapping[str, str],
    low: pd.DataFrame,
) -> Section:
    """Return the section of one set of weights; all frames are of it alone, `low` is that of `near_the_floor`."""
    changed, flips = changes(scores, examples.changes), _flips(examples.flips)
    tests = [association(scores, factor) for factor in FACTORS]
    return Section(
        title=f"How much do answers suffer? (RQ1, weights: {weights})",
        sentences=(*_floored(low), *_sentences(changed, flips)),
        figures=(*dose(changed, headlines), *heatmap(changed, headlines), *categories(scores)),
        tables=(
            Table(f"baselines_{weights}", "Answers to the clean texts", _baselines(changed, examples), _BASELINES),
            *_categories(weights, scores),
            Table(f"chi_squared_{weights}", "Categories against each dimension", _associations(tests), _CHI),
            Table(f"expected_{weights}", "Scenarios observed and expected", _expected(tests), _EXPECTED),
            Table(f"changes_{weights}", "Every scenario", changed.drop(columns=["weights", "data_hash"]), _CHANGES),
            Table(f"flips_{weights}", "Answers that changed", flips.drop(columns=["weights"]), _FLIPS),
            Table(f"doses_{weights}", "What the disturbances really were", doses.drop(columns=["weights"]), _DOSE),
        ),
    )


def changes(scores: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of scores with intervals, probabilities and p values beside each row."""
    table = scores.merge(found, on=list(impact.KEY), how="left", validate="one_to_one")
    table["p_holm"] = holm(table["p"])
    first = [*impact.KEY, "n", "baseline", "value", "change", "change_low", "change_high", "category", "p", "p_holm"]
    last = ["note", "run_id"]
    return table[[*first, *(name for name in table.columns if name not in (*first, *last)), *last]]


def _categories(weights: str, scores: pd.DataFrame) -> tuple[Table, ...]:
    groups: tuple[list[str], ...] = (
        [],
        ["model", "task"],
        ["perturb", "level"],
        ["model"],
        ["task"],
        ["perturb"],
        ["level"],
    )
    return tuple(
        Table(
            "_".join(["categories", *(["by"] if by else []), *by, weights]),
            f"Scenarios by category, {' and '.join(by) or 'all'}",
            impact.category_table(scores, ["weights", *by]).drop(columns=["weights"]),
            _CATEGORIES,
        )
        for by in groups
    )


def _associations(found: Sequence[Association]) -> pd.DataFrame:
    import pandas as pd

    columns = ("factor", "n", "undefined", "chi2", "df", "p", "method", "v")
    return pd.DataFrame(
        [
            {
                **{name: getattr(one, name) for name in columns},
                "least_expected": min((number for row in one.expected for number in row), default=None),
                "note": "; ".join([*_dropped(one), *([one.note] if one.note else [])]),
            }
            for one in found
        ]
    )


def _dropped(one: Association) -> list[str]:
    levels = [f"{name} has no scenario with a defined change and is left out" for name in one.dropped_levels]
    return [*(f"no {name}" for name in one.dropped), *levels]


def _expected(found: Sequence[Association]) -> pd.DataFrame:
    """Return a row a field of each test's table."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"factor": one.factor, "level": level, "category": category, "observed": seen, "expected": mean}
            for one in found
            if one.expected
            for level, row, means in zip(one.levels, one.observed, one.expected, strict=True)
            for category, seen, mean in zip(one.categories, row, means, strict=True)
        ],
        columns=["factor", "level", "category", "observed", "expected"],
    )


def _baselines(changed: pd.DataFrame, examples: Examples) -> pd.DataFrame:
    """Return a row a task, model and score."""
    names = ["task", "model", "score_name", "n", "baseline", "baseline_low", "baseline_high", "unread_clean"]
    rows = changed[names].drop_duplicates(["task", "model", "score_name"])
    return rows.merge(examples.clean.drop(columns=["weights"]), on=["task", "model", "score_name"], how="left")


def near_the_floor(scores: pd.DataFrame, examples: Examples, headlines: Mapping[str, str]) -> pd.DataFrame:
    """Return a row a task and model whose main score on clean texts may be that of answers that ask no text."""
    table = _baselines(changes(scores, examples.changes), examples)
    main = table[(table["score_name"] == table["task"].map(dict(headlines))) & table["floor"].notna()]
    return main[main["baseline_low"].fillna(main["baseline"]).astype(float) <= main["floor"].astype(float)]


def _floored(low: pd.DataFrame) -> tuple[str, ...]:
    who = "; ".join(f"{row.task} · {row.model} ({row.baseline:.3f}, floor {row.floor:.3f})" for row in low.itertuples())
    told = "Not clearly above their floor on clean texts (within the 95 % interval), so that their changes say little: "
    return (
        (f"{told}{who}. The floor is the commonest label's share, or free answers against other texts.",) if who else ()
    )


def _flips(flips: pd.DataFrame) -> pd.DataFrame:
    at = list(flips.columns).index("better_p") + 1
    table = flips.copy()
    table.insert(at, "better_p_holm", holm(table["better_p"]))
    return table


def _sentences(changed: pd.DataFrame, flips: pd.DataFrame) -> tuple[str, ...]:
    lost = changed[changed["category"] == "catastrophic"]
    sure = int(((lost["catastrophic_probability"] >= 0.95) & (lost["p_holm"] < 0.05)).sum())
    shown = int((changed["p_holm"] < 0.05).sum())
    tested = int(changed["p"].notna().sum())
    better = flips[flips["better_p_holm"] < 0.05]
    told = [
        f"{shown} of {tested} tested scenarios changed by more than chance (p < .05 after Holm's correction; "
        f"{len(changed) - tested} could not be tested, the notes say why).",
    ]
    if len(lost):
        told.append(
            f"{len(lost)} scenarios dropped catastrophically; {sure} of them stay so in at least 95 % of the resamples "
            "of their texts, with a change beyond chance."
        )
    number = {0: "No cell", 1: "1 cell"}.get(len(better), f"{len(better)} cells")
    told.append(f"{number} got better by more than chance{': ' if len(better) else ''}{_cells(better)}.")
    return (*told, *_worst(changed))


def _worst(changed: pd.DataFrame) -> tuple[str, ...]:
    fallen = changed[changed["change"] < 0]
    if fallen.empty:
        return ()
    worst = fallen.iloc[int(fallen["change"].astype(float).argmin())]
    place = " · ".join(worst[name] for name in _CELL)
    return (
        f"The deepest drop: {worst['score_name']} of {place}, from {worst['baseline']:.3f} to {worst['value']:.3f} on "
        f"{worst['n']} texts ({worst['change']:+.1%}, {p_text(_known(worst['p_holm']))} after Holm's correction).",
    )


def _known(p: float | None) -> float | None:
    return None if p is None or math.isnan(p) else p  # NaN where a column of floats has a gap


def _cells(rows: pd.DataFrame) -> str:
    names = [" · ".join(row) for row in rows[_CELL].astype(str).itertuples(index=False, name=None)]
    return "; ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
