"""RQ2: which dimension of the study matters, and by which of its levels."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from noisyhealth.analysis import trend
from noisyhealth.analysis.anova import AnovaResult, PairedT, anova
from noisyhealth.analysis.inference import FACTORS, FriedmanResult, Pair, friedman
from noisyhealth.analysis.within import Term, WithinResult, anova_within
from noisyhealth.report.figures.drops import drops
from noisyhealth.report.outline import Section, Table
from noisyhealth.report.sections.frames import holm, p_text, pairs, rows

if TYPE_CHECKING:
    import pandas as pd

_NAMED = 7  # combinations that a sentence names
_WORDS = {"perturb": "perturbations", "model": "models", "task": "tasks", "level": "levels"}
_NOTHING: Mapping[str, FriedmanResult] = MappingProxyType({})
_FRIEDMAN = (
    "Friedman's test of the relative change. A block is one combination of every other dimension and the score (over "
    "tasks the scores of a task are averaged first); incomplete blocks lack a value and are left out. q: chi-squared "
    "with df; w: Kendall's W, 0 (no agreement of the blocks) to 1; size, its word: none below .1, small below .3, "
    "medium below .5, else large."
)
_ALONE = (
    "Accuracy, or ROUGE-L, alone. The scores of one cell come from the same answers: as four blocks, which is how the"
    " study counts them, they make the p values above too small. These do not have that fault."
)
_WITHOUT = (
    "Each task left out in turn, one score a cell: what a test says only with one of the tasks rests on that task. "
    "Read it where a task's scores are near their floor on clean texts, and its changes little more than noise."
)
_PAIRS_ALONE = (
    "Conover's test of each pair after Friedman's with one score a cell, p with Bonferroni's correction; columns as in "
    "the table of all scores, without their fault."
)
_CONOVER = (
    "Conover's test of each pair after Friedman's, p with Bonferroni's correction. difference: mean rank of the first"
    " less that of the second; a higher rank is less harm. effect: r of the contrast, t / sqrt(t² + df); size by the "
    "rule above (Cohen). The scores of one cell are no independent blocks, so p is too small."
)
_ANOVA = (
    "Repeated-measures ANOVA of the relative change over the same blocks. p is Greenhouse-Geisser's where Mauchly's "
    "test rejects sphericity (or cannot be made), p_by says which; eta: generalised eta squared. Scores are hardly "
    "normal: Friedman's test does not ask for that. The scores of one cell are no independent blocks, so p is too "
    "small."
)
_PAIRED = (
    "Paired t tests over the blocks, p with Bonferroni's correction; d: Cohen's d_z. The scores of one cell are no "
    "independent blocks, so p is too small."
)
_WITHIN = (
    "All dimensions at once: a subject is one score of one task, and of one task all scores come from the same "
    "answers, so p is too small. eta: partial eta squared. The p values are not corrected where sphericity fails."
)
_TREND = (
    "Page's test within texts (of a group, its mean) over clean, low, mid, high: p is two-sided, p_falls one-sided "
    "for a falling score; constant: texts that score alike at all levels and say nothing. p_falls_holm corrected for "
    "all rows."
)


def section(weights: str, scores: pd.DataFrame, trends: pd.DataFrame, headlines: Mapping[str, str]) -> Section:
    """Return the section of one set of weights; its scenarios, its `trends`, and the main score of each task."""
    tests = [friedman(scores, factor) for factor in FACTORS]
    head = scores[scores["score_name"] == scores["task"].map(dict(headlines))]
    alone = [friedman(head, factor) for factor in FACTORS]
    without = {str(task): _without(head, str(task)) for task in head["task"].unique()}
    variances = [anova(scores, factor) for factor in FACTORS]
    within = anova_within(scores)
    return Section(
        title=f"What matters: disturbance, level, model or task? (RQ2, weights: {weights})",
        sentences=(*_dose(trends), *_verdicts(tests, alone, without), *_rates(scores)),
        figures=drops(scores),
        tables=(
            Table(f"friedman_{weights}", "Friedman's test over each dimension", _friedman(tests), _FRIEDMAN),
            Table(f"friedman_headline_{weights}", "The same with one score a cell", _friedman(alone), _ALONE),
            Table(f"conover_headline_{weights}", "Pairs with one score a cell", _pairs(alone, Pair), _PAIRS_ALONE),
            *_left_out(weights, without),
            Table(f"conover_{weights}", "Pairs after Friedman's test", _pairs(tests, Pair), _CONOVER),
            Table(f"anova_{weights}", "Repeated-measures ANOVA over each dimension", _anova(variances), _ANOVA),
            Table(f"t_tests_{weights}", "Pairs after the ANOVA", _pairs(variances, PairedT), _PAIRED),
            Table(f"anova_within_{weights}", "ANOVA over several dimensions at once", _within(within), _note(within)),
            Table(f"trend_{weights}", "Do answers get worse level by level?", trends, _TREND),
        ),
    )


def _without(head: pd.DataFrame, task: str) -> list[FriedmanResult]:
    """Return the tests of every other dimension with a task left out, none where it is the only one."""
    rest = head[head["task"] != task]
    return [] if rest.empty else [friedman(rest, factor) for factor in FACTORS if factor != "task"]


def _left_out(weights: str, without: Mapping[str, list[FriedmanResult]]) -> tuple[Table, ...]:
    """Return the table of the tests without one task each, none where there is one task."""
    import pandas as pd

    parts = [_friedman(tests).assign(without=task) for task, tests in without.items() if tests]
    if not parts:
        return ()
    table = pd.concat(parts, ignore_index=True)
    ordered = table[["without", *(name for name in table.columns if name != "without")]]
    return (Table(f"friedman_without_{weights}", "The same without one of the tasks", ordered, _WITHOUT),)


def _friedman(tests: list[FriedmanResult]) -> pd.DataFrame:
    return rows(tests, ("factor", "blocks", "incomplete", "q", "df", "p", "w", "size", "note"))


def _pairs(tests: list[FriedmanResult] | list[AnovaResult], kind: type) -> pd.DataFrame:
    found = pairs({test.factor: test.pairs for test in tests}, kind)
    found.insert(3, "blocks", found["factor"].map({test.factor: test.blocks for test in tests}))
    return found


def _anova(tests: list[AnovaResult]) -> pd.DataFrame:
    names = (
        "factor",
        "blocks",
        "incomplete",
        "f",
        "df1",
        "df2",
        "p",
        "p_by",
        "eta",
        "p_uncorrected",
        "p_gg",
        "epsilon",
    )
    return rows(tests, (*names, "mauchly_w", "mauchly_p", "note"))


def _within(found: WithinResult) -> pd.DataFrame:
    terms = rows(found.terms or [Term("", 0, 0)], Term.__slots__).rename(columns={"name": "term"})
    return terms.assign(subjects=found.subjects, incomplete=found.incomplete, note=found.note)


def _note(found: WithinResult) -> str:
    subjects = f"{found.subjects} subjects, {found.incomplete} more lack a value and are left out."
    return " ".join([_WITHIN, subjects, f"{found.note}." if found.note else ""]).strip()


def trends_of(items: pd.DataFrame) -> pd.DataFrame:
    """Return Page's test of each task, model and perturbation, from the frame of answers."""
    import pandas as pd

    listed = []
    by = ["task", "model", "perturb"]
    for key, part in items.groupby(by, observed=True, sort=False):
        # Texts of one group (a patient) are not independent: their mean is one row.
        means = part.groupby(["group", "level"], observed=True)[["right", "clean_right"]].mean()
        levels = [str(level) for level in part["level"].unique()]
        wide = means["right"].unstack("level")
        clean = means["clean_right"].groupby("group", observed=True).first().reindex(wide.index)
        found = trend.trend(pd.concat([clean, wide[levels]], axis=1).to_numpy())
        numbers = {name: getattr(found, name) for name in trend.TrendResult.__slots__}
        listed.append({**dict(zip(by, map(str, key), strict=True)), "levels": " < ".join(levels), **numbers})
    table = pd.DataFrame(listed)
    table.insert(list(table.columns).index("p_falls") + 1, "p_falls_holm", holm(table["p_falls"]))
    return table


def _verdicts(
    tests: list[FriedmanResult], alone: list[FriedmanResult], without: Mapping[str, list[FriedmanResult]]
) -> list[str]:
    """Return a sentence a dimension of which more than one value was run."""
    return [
        _sentence(test, one, {task: found for task, many in without.items() for found in many if _same(found, test)})
        for test, one in zip(tests, alone, strict=True)
        if len(test.levels) > 1
    ]


def _same(one: FriedmanResult, other: FriedmanResult) -> bool:
    return one.factor == other.factor


def _sentence(test: FriedmanResult, alone: FriedmanResult, without: Mapping[str, FriedmanResult] = _NOTHING) -> str:
    """Return whether the levels of a factor differ, by the test whose blocks are independent of each other.

    `without`: the same test with a task left out, by that task; one that turns the verdict is named.
    """
    if test.p is None or not test.mean_ranks:
        return f"Whether {_WORDS[test.factor]} differ cannot be tested: {test.note}."
    every = f"over all scores of the cells, which come from the same replies, {p_text(test.p)}, {test.blocks} blocks"
    if alone.p is None:
        return f"Whether {_WORDS[test.factor]} differ cannot be tested with one score a cell: {alone.note} ({every})."
    differ = "differ" if alone.p < 0.05 else "do not differ by more than chance"
    found = f"χ²({alone.df}) = {alone.q:.2f}, {p_text(alone.p)}, W = {alone.w:.2f} ({alone.size})"
    alike = f"Friedman's {found}, {alone.blocks} blocks, one score a cell"
    turned = [
        f"{task} ({p_text(one.p)})"
        for task, one in without.items()
        if one.p is not None and (one.p < 0.05) != (alone.p < 0.05)
    ]
    but = "but not" if alone.p < 0.05 else "but do"
    rests = f", {but} without {' or without '.join(turned)}" if turned else ""
    return f"{_WORDS[test.factor].capitalize()} {differ}{rests} ({alike}; {every}){_most(alone)}."


def _most(test: FriedmanResult) -> str:
    """Return which level is worst, where the levels differ and Conover's test tells it from every other."""
    if test.p is None or test.p >= 0.05 or not test.mean_ranks:
        return ""
    ranks = test.mean_ranks
    least = min(ranks, key=lambda level: ranks[level])
    against = [pair.p for pair in test.pairs if least in (pair.first, pair.second)]
    if not all(p is not None and p < 0.05 for p in against):
        return ""
    return f"; {least} is harmed most" if test.factor in ("model", "task") else f"; {least} harms most"


def _rates(scores: pd.DataFrame) -> tuple[str, ...]:
    """Return that levels are of different doses, where they are: the tests compare what stands at one level."""
    told = []
    for name, own in scores.groupby("perturb", observed=True, sort=True):
        rates = own.groupby("level", observed=True)["rate"].min().sort_values()
        told.append((str(name), ", ".join(f"{level} {rate:.0%}" for level, rate in rates.items())))
    if len({rates for _, rates in told}) < 2:
        return ()
    each = "; ".join(f"{name} {rates}" for name, rates in told)
    return (f"Perturbations are compared level by level, and their levels are of different rates: {each}.",)


def _dose(trends: pd.DataFrame) -> tuple[str, ...]:
    falls = trends[trends["p_falls_holm"] < 0.05]
    tested = int(trends["p_falls"].notna().sum())
    if not tested:
        return ()
    names = [" · ".join(row) for row in falls[["task", "model", "perturb"]].astype(str).itertuples(index=False)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"In {len(falls)} of {tested} tested combinations of task, model and perturbation the answers to the same "
        "texts fall with the level (Page's test of a trend over all levels, p < .05 after Holm's correction)"
        f"{': ' if names else ''}{'; '.join(names[:_NAMED])}{more}.",
    )
