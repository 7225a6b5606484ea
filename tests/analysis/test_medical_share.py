"""Medical terms: bins by hand, Spearman and the mixed model by R and by hand, every degenerate case."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from noisyhealth.analysis.medical import EDGES, UNEDITED, bins, spearman
from noisyhealth.analysis.mixed import mixed
from noisyhealth.errors import DataError
from tests.analysis.fixtures import expected, table

ROW = {"task": "qa", "model": "gpt", "weights": "study", "perturb": "typo", "level": "low", "group": "", "edits": 4}


def replies(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A frame with these replies; what a row does not say is that of ROW."""
    known = [{**ROW, "id": f"t{at}", "clean_right": 0.9, **row} for at, row in enumerate(rows)]
    return pd.DataFrame(known)


def drawn(texts: int, models: int = 1, seed: int = 0, *, binary: bool = False) -> pd.DataFrame:
    """A believable frame: three perturbations and levels, a medical share that costs .1, 0.002 an edit."""
    rng = np.random.default_rng(seed)
    rows = []
    for text in range(texts):
        own, length = rng.normal(0.6, 0.15), int(rng.integers(20, 120))
        for perturb in ("typo", "homophone", "redact"):
            for level, rate in (("low", 0.1), ("mid", 0.3), ("high", 0.5)):
                edits = max(round(rate * length), 1)
                medical = rng.binomial(edits, 0.3) / edits
                score = own - 0.1 * medical - 0.002 * edits
                for model in range(models):
                    got = score + rng.normal(0, 0.1)
                    right = float(rng.random() < np.clip(got, 0, 1)) if binary else got
                    rows.append(
                        {"perturb": perturb, "level": level, "id": f"t{text}", "model": f"m{model}"}
                        | {"edits": edits, "medical": medical, "right": right}
                    )
    return replies(rows)


def test_a_bin_has_the_median_quartiles_and_mean_of_its_scores() -> None:
    scores = [0.1, 0.2, 0.4, 0.8]
    found = bins(replies([{"medical": 0.3, "right": score} for score in scores])).iloc[0]
    assert (found["bin"], found["n"], found["texts"], found["binary"]) == ("25-50", 4, 4, False)
    assert (found["median"], found["mean"]) == pytest.approx((0.3, 0.375))
    assert (found["q1"], found["q3"]) == pytest.approx(np.percentile(scores, [25, 75]))  # as R's type 7
    assert found["clean_mean"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("share", "name"),
    [
        (0, "0"),
        (0.001, "0-25"),
        (0.25, "0-25"),
        (0.2500001, "25-50"),
        (0.5, "25-50"),
        (0.75, "50-75"),
        (1, "75-100"),
        (float("nan"), UNEDITED),
    ],
)
def test_an_edge_belongs_to_the_bin_below_it_and_0_stands_alone(share: float, name: str) -> None:
    assert list(bins(replies([{"medical": share, "right": 0.5}]))["bin"]) == [name]


def test_an_edge_that_floats_cannot_hold_is_met() -> None:
    found = bins(replies([{"medical": 1 - 2 / 3, "right": 0.5}, {"medical": 1 / 3, "right": 0.5}]), (0, 1 / 3, 1))
    assert list(found["bin"]) == ["0-33.33"]


def test_no_reply_is_lost_in_the_bins_and_none_is_invented() -> None:
    items = drawn(20, models=2)
    found = bins(items)
    assert found["n"].sum() == len(items)
    assert (found["n"] > 0).all()
    assert found["texts"].sum() == len(items) / 2, "the texts of two models are the same"
    assert list(found["level"].unique()) == ["low", "mid", "high"], "in the order of the frame"
    assert list(bins(items.astype({"level": "category", "task": "category"}))["n"]) == list(found["n"])
    assert not found.isna().any(axis=None)


def test_scores_of_0_and_1_are_told_by_task() -> None:
    one = replies([{"medical": 0.3, "right": right} for right in (0, 1, 1)])
    other = replies([{"medical": 0.3, "right": right, "task": "sentiment"} for right in (0, 1, 0.5)])
    assert list(bins(pd.concat([one, other]))["binary"]) == [True, False]


@pytest.mark.parametrize("edges", [(0, 0.5), (0.1, 1), (0, 0.5, 0.5, 1), (0, 0.7, 0.2, 1), (0,), ()])
def test_edges_that_are_no_share_are_refused(edges: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="ascend from 0 to 1"):
        bins(drawn(2), edges)


@pytest.mark.parametrize("name", ["correlation", "correlation_ties"])
def test_spearman_is_that_of_r(name: str) -> None:
    given = table(name)
    x, y = given["x"], given["y"]
    share = (x - x.min()) / (x.max() - x.min())  # ranks do not mind
    (found,) = spearman(replies([{"medical": m, "right": r} for m, r in zip(share, y, strict=True)]))
    r = expected(name, "spearman")
    assert found.rho == pytest.approx(r["rho"], abs=1e-9)
    # by hand: Pearson of mean ranks, and Student's t with n - 2 degrees of freedom
    rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    assert found.rho == pytest.approx(rho)
    assert found.p == pytest.approx(2 * student.sf(abs(rho) * np.sqrt((len(x) - 2) / (1 - rho**2)), len(x) - 2))


def test_a_text_is_one_point_however_many_models_and_groups_share_it() -> None:
    rows = [{"medical": m, "right": m + at / 100} for at, m in enumerate((0.1, 0.5, 0.3, 0.9))]
    alone = spearman(replies(rows), ("weights", "task"))[0]
    twice = replies(rows + [{**row, "model": "llama", "id": f"t{at}"} for at, row in enumerate(rows)])
    (found,) = spearman(twice, ("weights", "task"))
    assert (found.n, found.replies, found.rho, found.p) == (4, 8, alone.rho, alone.p)
    (by_group,) = spearman(twice.assign(group=["a", "a", "b", "c"] * 2), ("weights", "task"))
    assert by_group.n == 3


def test_there_is_a_row_for_each_group_in_the_order_of_the_frame() -> None:
    found = spearman(drawn(12, models=2))
    assert [(one.among["model"], one.among["level"]) for one in found] == [
        (model, level) for model in ("m0", "m1") for level in ("low", "mid", "high")
    ]
    assert {(one.n, one.replies) for one in found} == {(12, 36)}


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([{"medical": 0.2, "right": 0.1}, {"medical": 0.4, "right": 0.5}], "2 texts"),
        (
            [{"medical": 0.2, "right": right} for right in (0.1, 0.5, 0.7)],
            "share of medical terms of every text is 0.2",
        ),
        ([{"medical": share, "right": 1} for share in (0.1, 0.5, 0.7)], "the score of every text is 1"),
        ([{"medical": float("nan"), "right": 1}] * 4, "0 texts"),
    ],
)
def test_what_cannot_be_ranked_is_named_and_never_a_number(rows: list[dict[str, Any]], note: str) -> None:
    (found,) = spearman(replies(rows))
    assert note in found.note
    assert (found.rho, found.p) == (None, None)


def test_texts_without_an_edited_word_are_counted() -> None:
    items = drawn(10)
    items.loc[items["id"] == "t3", "medical"] = np.nan
    (found,) = spearman(items, ("weights", "task"))
    assert (found.n, found.replies, found.unedited) == (9, 81, 9)
    assert mixed(items)[0].unedited == 9


def test_a_perfect_order_has_a_p_above_0() -> None:
    (found,) = spearman(replies([{"medical": at / 50, "right": at / 100} for at in range(50)]))
    assert found.rho == pytest.approx(1)
    assert found.p is not None
    assert found.p > 0


@pytest.mark.parametrize(("levels", "test"), [(False, "lmer"), (True, "lmer_level")])
def test_the_mixed_model_is_that_of_r(levels: bool, test: str) -> None:
    given = table("mixed")
    items = given.assign(**{name: ROW[name] for name in ("task", "model", "weights", "perturb", "group")})
    # without levels in the model the rows still need distinct conditions: texts of their own, in groups
    alone = {} if levels else {"group": items["id"], "id": items["id"] + items["level"], "level": "low"}
    (found,) = mixed(items.assign(right=items["score"], clean_right=1.0, **alone))
    r = expected("mixed", test)
    assert (found.n, found.groups, found.note) == (r["n"], r["groups"], "")
    for name, effect in (("medical", found.medical), ("edits", found.edits)):
        assert effect is not None
        estimate, error = r[f"{name}.estimate"], r[f"{name}.se"]
        assert effect.estimate == pytest.approx(estimate, abs=2e-5 if name == "medical" else 2e-7)
        assert (effect.high - effect.low) / 2 == pytest.approx(1.959964 * error, rel=5e-3)
        assert effect.p == pytest.approx(r[f"{name}.p_normal"], rel=4e-2)
    assert (found.between, found.within) == pytest.approx((r["var_id"], r["var_residual"]), rel=1e-3)


def test_the_mixed_model_finds_what_was_put_in() -> None:
    (found,) = mixed(drawn(150, models=3))
    assert found.medical is not None
    assert found.edits is not None
    assert found.medical.low < -0.1 < found.medical.high < 0
    assert found.edits.low < -0.002 < found.edits.high
    # Wald's p by hand
    error = (found.medical.high - found.medical.low) / 2 / 1.959964
    assert found.medical.p == pytest.approx(2 * norm.sf(abs(found.medical.estimate) / error), rel=1e-4)
    assert (found.n, found.groups, found.models, found.incomplete, found.note) == (1350, 150, 3, 0, "")
    assert found.between == pytest.approx(0.15**2, rel=0.4)


def test_models_that_answer_alike_add_no_rows() -> None:
    one = drawn(30)
    both = pd.concat([one, one.assign(model="other")], ignore_index=True)
    (found,), (again,) = mixed(one), mixed(both)
    assert (again.n, again.models) == (found.n, 2)
    assert again.medical == found.medical
    (short,) = mixed(both.drop(both[(both["model"] == "other") & (both["id"] == "t1")].index[:1]))
    assert short.incomplete == 1


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"medical": 0.25}, "the share of medical terms never differs"),
        ({"right": 1.0}, "the score never differs"),
        ({"group": "one"}, "to 1 texts"),
        ({"medical": float("nan")}, "never differs among 0 rows"),
    ],
)
def test_a_model_that_cannot_be_fitted_has_a_note_and_no_numbers(change: dict[str, Any], note: str) -> None:
    (found,) = mixed(drawn(8).assign(**change))
    assert note in found.note
    assert (found.medical, found.edits, found.between, found.within) == (None, None, None, None)


def test_answers_that_no_condition_changes_have_a_note_and_no_numbers() -> None:
    items = drawn(20)
    items["right"] = (items["id"].str[-1].astype(int) % 2).astype(float)
    (found,) = mixed(items)
    assert found.note == "no text's score differs between its conditions: there is nothing to fit"
    assert (found.medical, found.edits) == (None, None)


def test_texts_that_do_not_differ_make_a_singular_fit_and_no_numbers() -> None:
    items = drawn(40)
    items["right"] = np.random.default_rng(0).normal(size=len(items))
    items["right"] -= items.groupby("id")["right"].transform("mean")  # less between texts than chance gives
    (found,) = mixed(items)
    assert "singular" in found.note or "converge" in found.note or "fitted" in found.note
    assert (found.medical, found.edits) == (None, None)


def test_a_share_that_only_the_level_decides_cannot_be_told_from_it() -> None:
    items = drawn(10)
    items["medical"] = items["level"].map({"low": 0.1, "mid": 0.2, "high": 0.5})
    (found,) = mixed(items)
    assert "cannot be told apart" in found.note
    assert found.medical is None


def test_edits_that_never_differ_are_left_out_and_said() -> None:
    (found,) = mixed(drawn(30).assign(edits=5))
    assert found.edits is None
    assert found.medical is not None
    assert "not in the model" in found.note


def test_one_perturbation_and_one_level_are_enough_where_groups_repeat() -> None:
    items = drawn(60)
    items = items[(items["perturb"] == "typo") & (items["level"] == "low")].assign(
        group=[f"g{at // 3}" for at in range(60)]
    )
    (found,) = mixed(items)
    assert found.groups == 20
    assert found.medical is not None or found.note


def test_scores_of_0_and_1_make_a_linear_probability_model() -> None:
    (found,) = mixed(drawn(200, binary=True))
    assert found.medical is not None
    assert found.medical.low < -0.1 < found.medical.high


def test_there_is_a_model_for_each_weights_and_task() -> None:
    items = drawn(20)
    found = mixed(pd.concat([items, items.assign(task="sentiment"), items.assign(weights="embedded")]))
    assert [(one.weights, one.task) for one in found] == [("study", "qa"), ("study", "sentiment"), ("embedded", "qa")]
    assert len({one.medical for one in found}) == 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"medical": 1.2}, "example 't0' of qa, gpt, typo low has 1.2"),
        ({"medical": -0.1}, "has -0.1 as its share"),
        ({"perturb": "none"}, "clean texts"),
        ({"right": float("nan")}, "has no score"),
    ],
)
def test_a_frame_that_is_none_of_replies_is_refused(change: dict[str, Any], match: str) -> None:
    items = replies([{"medical": 0.2, "right": 0.4}] * 3).assign(**change)
    for made in (bins, spearman, mixed):
        with pytest.raises(DataError, match=match):
            made(items)
        with pytest.raises(DataError, match="no column"):
            made(items.drop(columns="edits"))


def test_weights_never_mix() -> None:
    items = pd.concat([drawn(3), drawn(3).assign(weights="embedded")])
    for made in (bins, spearman):
        with pytest.raises(DataError, match="would mix"):
            made(items, by=("task",))


def test_no_replies_give_no_rows() -> None:
    items = drawn(2).iloc[:0]
    assert bins(items).empty
    assert (spearman(items), mixed(items)) == ([], [])


def test_a_thousand_texts_in_nine_conditions_are_fitted_without_a_warning() -> None:
    items = drawn(1000, binary=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = mixed(items)
    assert found.medical is not None


def test_the_bins_cover_every_share() -> None:
    assert (EDGES[0], EDGES[-1]) == (0, 1)
