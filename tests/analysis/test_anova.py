"""Repeated-measures ANOVA against R (aov, mauchly.test, afex), and every degenerate case."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import product

import numpy as np
import pandas as pd
import pytest
from fixtures import expected, table

from noisyhealth.analysis.anova import GREENHOUSE_GEISSER, UNCORRECTED, AnovaResult, anova
from noisyhealth.analysis.blocks import FACTORS
from noisyhealth.analysis.impact import KEY
from noisyhealth.analysis.inference import friedman
from noisyhealth.analysis.within import WithinResult, anova_within
from noisyhealth.errors import DataError

TABLES = ("plain", "even", "ties", "binary")
SCORES = {"sentiment": ("accuracy", "f1"), "condition": ("accuracy", "f1"), "qa": ("rougeL",)}
MODELS, PERTURBS, LEVELS = ("gpt", "llama", "bluebert"), ("typo", "homophone", "redact"), ("low", "mid", "high")


def long(wide: pd.DataFrame) -> pd.DataFrame:
    """A row of the table is a block (a task), a column a perturbation."""
    rows = [
        (f"task {at}", "gpt", "embedded", name, "low", "f1", 100, float(value), 1.0)
        for name in wide.columns
        for at, value in enumerate(wide[name])
    ]
    return pd.DataFrame(rows, columns=[*KEY, "n", "value", "baseline"])


def rows(values: Sequence[Sequence[float]]) -> pd.DataFrame:
    return long(pd.DataFrame(values, columns=list("abcdef")[: len(values[0])]))


def subjects() -> pd.DataFrame:
    """The table of three factors; a subject is a task."""
    given = table("within").rename(columns={"subject": "task"})
    return given.assign(weights="embedded", score_name="f1", n=100, baseline=1.0)


def study(value: Callable[[np.random.Generator, dict[str, str]], float], seed: int = 0) -> pd.DataFrame:
    """Every scenario of a study, its baseline .8."""
    rng = np.random.default_rng(seed)
    keys = [
        dict(zip(KEY, (task, model, "embedded", perturb, level, name), strict=True))
        for task, model, perturb, level in product(SCORES, MODELS, PERTURBS, LEVELS)
        for name in SCORES[task]
    ]
    return pd.DataFrame([{**key, "n": 100, "value": value(rng, key), "baseline": 0.8} for key in keys])


def finite(found: AnovaResult | WithinResult) -> bool:
    """Whether no number of a result is NaN or infinite, and no p is 0."""

    def sound(name: str, one: object) -> bool:
        if isinstance(one, dict):
            return all(sound(key, value) for key, value in one.items())
        if isinstance(one, tuple):
            return all(sound(name, value) for value in one)
        return not isinstance(one, float) or (math.isfinite(one) and (name not in ("p", "p_gg") or one > 0))

    return sound("", asdict(found))


@pytest.mark.parametrize("name", TABLES)
def test_f_p_and_the_effect_are_those_of_r(name: str) -> None:
    """R: summary(aov(y ~ a + Error(s / a))); generalised eta squared by afex::aov_ez."""
    found, r = anova(long(table(name)), "perturb", analysed="value"), expected(name, "anova")
    assert (found.f, found.df1, found.df2) == pytest.approx((r["F"], r["df1"], r["df2"]), rel=1e-9)
    assert found.p_uncorrected == pytest.approx(r["p"], rel=1e-9)
    assert found.eta == pytest.approx(expected(name, "ges")["ges"], rel=1e-9)
    assert (found.blocks, found.incomplete, found.note) == (len(table(name)), 0, "")


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("plain", GREENHOUSE_GEISSER),
        ("even", UNCORRECTED),
        ("ties", GREENHOUSE_GEISSER),
        ("binary", UNCORRECTED),
    ],
)
def test_p_is_corrected_where_mauchlys_test_of_r_rejects_sphericity(name: str, by: str) -> None:
    """R: mauchly.test(lm(X ~ 1), X = ~1); epsilon and its p by afex (car)."""
    found = anova(long(table(name)), "perturb", analysed="value")
    mauchly, gg = expected(name, "mauchly"), expected(name, "gg")
    assert (found.mauchly_w, found.mauchly_p) == pytest.approx((mauchly["W"], mauchly["p"]), rel=1e-9)
    assert (found.epsilon, found.p_gg) == pytest.approx((gg["epsilon"], gg["p"]), rel=1e-9)
    assert found.p_by == by
    assert (mauchly["p"] < 0.05) == (by == GREENHOUSE_GEISSER)
    assert found.p == (found.p_gg if by == GREENHOUSE_GEISSER else found.p_uncorrected)


@pytest.mark.parametrize("name", TABLES)
def test_pairs_are_paired_t_tests_of_r_times_their_number(name: str) -> None:
    """R: t.test(paired = TRUE), p.adjust "bonferroni", mean(d) / sd(d)."""
    found, r = anova(long(table(name)), "perturb", analysed="value"), expected(name, "t")
    assert len(found.pairs) == math.comb(len(found.levels), 2)
    for pair in found.pairs:
        key = f"{pair.first}-{pair.second}"
        numbers = (pair.t, pair.df, pair.p, pair.difference, pair.d)
        theirs = [r[f"{key}.{quantity}"] for quantity in ("t", "df", "p_bonferroni", "difference", "d_z")]
        assert numbers == pytest.approx(theirs, rel=1e-9)


def test_of_two_levels_f_is_the_square_of_t_and_there_is_no_sphericity_to_fail() -> None:
    found = anova(long(table("plain")[["a", "d"]]), "perturb", analysed="value")
    (pair,) = found.pairs
    assert found.f == pytest.approx((pair.t or 0) ** 2)
    assert found.p == found.p_uncorrected == found.p_gg == pytest.approx(pair.p)
    assert (found.p_by, found.epsilon, found.mauchly_w, found.mauchly_p) == (UNCORRECTED, 1.0, None, None)
    assert found.note == ""


@pytest.mark.parametrize("factor", FACTORS)
def test_blocks_are_those_of_friedmans_test(factor: str) -> None:
    frame = study(lambda rng, key: float(rng.uniform(0.3, 0.9)))
    frame.loc[frame.index[0], "baseline"] = 0.0
    found, beside = anova(frame, factor), friedman(frame, factor)
    assert (found.blocks, found.incomplete) == (beside.blocks, beside.incomplete)
    assert found.incomplete == 1
    assert (found.levels, found.block_by) == (beside.levels, beside.block_by)
    assert found.p is not None
    assert finite(found)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([[0.9], [0.8], [0.7]], "1 levels and 3 complete blocks: the test needs two of each"),
        ([[0.9, 0.5, 0.4]], "3 levels and 1 complete blocks: the test needs two of each"),
        ([[0.9, 0.5, 0.4], [0.9, math.nan, 0.4]], "3 levels and 1 complete blocks"),
        ([[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]], "in every block all values are equal"),
        ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], "in every block all values are equal"),
        ([[0.9, 0.8, 0.7], [0.5, 0.4, 0.3], [0.6, 0.5, 0.4]], "the levels differ alike in all blocks"),
    ],
)
def test_a_test_that_cannot_be_made_says_why(values: Sequence[Sequence[float]], note: str) -> None:
    found = anova(rows(values).dropna(), "perturb", analysed="value")
    assert found.note.startswith(note)
    assert (found.f, found.p, found.p_by, found.p_gg, found.mauchly_p, found.eta) == (None, None, "", None, None, None)
    assert all((pair.t, pair.p, pair.d) == (None, None, None) for pair in found.pairs)
    assert finite(found)


@pytest.mark.parametrize(
    "values",
    [
        [[0.9, 0.5, 0.4, 0.2], [0.8, 0.6, 0.5, 0.1], [0.7, 0.6, 0.2, 0.4]],  # 3 blocks, 3 contrasts
        [[0.9, 0.5, 0.7], [0.8, 0.4, 0.8], [0.7, 0.3, 0.3], [0.6, 0.2, 0.5]],  # a and b differ alike everywhere
    ],
)
def test_where_mauchlys_test_cannot_be_made_p_is_the_corrected_one(values: Sequence[Sequence[float]]) -> None:
    found = anova(rows(values), "perturb", analysed="value")
    assert (found.p_by, found.mauchly_w, found.mauchly_p) == (GREENHOUSE_GEISSER, None, None)
    assert found.p == found.p_gg
    assert found.note.startswith("Mauchly's test cannot be made")
    assert finite(found)


def test_a_pair_that_differs_alike_in_all_blocks_has_a_difference_and_no_t() -> None:
    found = anova(rows([[0.9, 0.5, 0.7], [0.8, 0.4, 0.8], [0.7, 0.3, 0.3]]), "perturb", analysed="value")
    first = found.pairs[0]
    assert (first.difference, first.t, first.p, first.d) == (pytest.approx(0.4), None, None, None)
    assert found.pairs[1].t is not None


def test_no_p_is_zero_however_clear_the_difference() -> None:
    rng = np.random.default_rng(0)
    found = anova(rows((np.array([0.9, 0.5, 0.1]) + rng.normal(0, 1e-6, (300, 3))).tolist()), "perturb")
    assert found.p is not None
    assert found.p < 1e-300
    assert finite(found)


def test_another_factor_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="'weights' is none of perturb, model, task, level"):
        anova(long(table("even")), "weights")


def test_several_factors_have_the_f_p_and_partial_eta_squared_of_r() -> None:
    """R: aov(value ~ perturb * level * model + Error(subject / (perturb * level * model))); afex es = "pes"."""
    found = anova_within(subjects(), analysed="value")
    r, pes = expected("within", "anova"), expected("within", "pes")
    assert {term.name for term in found.terms} == set(pes)
    assert len(found.terms) == 7
    for term in found.terms:
        theirs = [r[f"{term.name}.{quantity}"] for quantity in ("F", "df1", "df2", "p")]
        assert (term.f, term.df1, term.df2, term.p) == pytest.approx(theirs, rel=1e-8)
        assert term.eta == pytest.approx(pes[term.name], rel=1e-8)
    assert (found.subjects, found.incomplete, found.dropped, found.note) == (8, 0, (), "")
    assert found.subject_by == ("task", "weights", "score_name")


def test_one_factor_alone_is_the_one_way_test_of_r_without_correction() -> None:
    found, r = anova_within(long(table("plain")), analysed="value"), expected("plain", "anova")
    (term,) = found.terms
    assert (term.name, term.df1, term.df2) == ("perturb", r["df1"], r["df2"])
    assert (term.f, term.p) == pytest.approx((r["F"], r["p"]), rel=1e-8)
    assert found.dropped == ("level", "model")
    assert found.note == "level has one level and is left out; model has one level and is left out"


def test_rows_in_any_order_give_the_same_terms() -> None:
    frame = subjects()
    mixed = anova_within(frame.sample(frac=1, random_state=3), analysed="value")
    terms = {term.name.replace("level:perturb", "perturb:level"): term.f for term in mixed.terms}
    assert terms == pytest.approx({term.name: term.f for term in anova_within(frame, analysed="value").terms})


def test_a_single_model_is_left_out_and_said() -> None:
    frame = subjects()
    found = anova_within(frame[frame["model"] == "gpt"], analysed="value")
    assert (found.factors, found.dropped) == (("perturb", "level"), ("model",))
    assert [term.name for term in found.terms] == ["perturb", "level", "perturb:level"]
    assert found.note == "model has one level and is left out"


def test_a_subject_with_a_missing_cell_or_a_baseline_of_zero_is_left_out_and_counted() -> None:
    frame = subjects().drop(0)
    frame.loc[frame.index[-1], "baseline"] = 0.0
    found = anova_within(frame)
    assert (found.subjects, found.incomplete) == (6, 2)
    whole = frame[~frame["task"].isin(["s0", "s7"])]
    assert [term.f for term in found.terms] == pytest.approx([term.f for term in anova_within(whole).terms])


def test_a_cell_that_no_subject_has_is_named() -> None:
    frame = subjects()
    gone = (frame["perturb"] == "homophone") & (frame["level"] == "high") & (frame["model"] == "gpt")
    found = anova_within(frame[~gone])
    assert found.note == "no subject has a value for homophone/high/gpt: the test needs every cell"
    assert (found.terms, found.subjects, found.incomplete) == ((), 0, 8)


@pytest.mark.parametrize(
    ("keep", "note"),
    [
        ({"task": "s1"}, "1 complete subjects: the test needs 2"),
        ({"perturb": "typo", "level": "low", "model": "gpt"}, "no dimension has 2 levels"),
    ],
)
def test_what_is_too_small_for_several_factors_says_why(keep: dict[str, str], note: str) -> None:
    frame = subjects()
    for name, value in keep.items():
        frame = frame[frame[name] == value]
    found = anova_within(frame)
    assert found.terms == ()
    assert found.note.endswith(note)


def test_terms_without_error_have_no_f_and_the_others_keep_theirs() -> None:
    """Subjects answer alike to perturb and level; to the model they do not."""
    effect = {"typo": 0.0, "homophone": 0.1, "redact": 0.2, "low": 0.0, "mid": 0.05, "high": 0.1}
    noise = dict(zip(product(SCORES, MODELS), np.random.default_rng(0).random(9), strict=True))
    frame = study(
        lambda rng, key: float(effect[key["perturb"]] + effect[key["level"]] + noise[key["task"], key["model"]])
    )
    found = anova_within(frame, analysed="value")
    assert [term.name for term in found.terms if term.f is not None] == ["model"]
    assert found.note.startswith("no error to compare with for perturb, level, perturb:level")
    assert finite(found)


def test_constant_scores_have_no_f_at_all() -> None:
    found = anova_within(study(lambda rng, key: 0.5))
    assert [term.p for term in found.terms] == [None] * 7
    assert found.note.startswith("no error to compare with")
    assert finite(found)
