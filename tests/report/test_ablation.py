"""Ablations in the report: invented answers under several values of settings, compared with the reference's."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from invented import Cell, Condition, Texts, store_in, write

from noisyhealth.analysis.components import components
from noisyhealth.analysis.difference import difference
from noisyhealth.analysis.paired import Pairs
from noisyhealth.errors import DataError
from noisyhealth.report.analyse import Options, analyse
from noisyhealth.tracking.store import Store

N = 60
TYPO = Condition("typo", "mid", 0.3)
Study = Callable[..., Path]


class Answers:
    """Answers to one set of texts; under each value of a setting other ones, the clean answers the same."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(4)
        self.texts = Texts("sentiment", np.array(["health", "notess", "wordss"]), N, self.rng)
        self.clean = self.texts.answers(0.0, 0, self.rng)
        self.given: dict[tuple[str, ...], list[str]] = {}
        self.right: dict[tuple[str, ...], list[float]] = {}

    def write(self, store: Store, folder: Path, factors: dict[str, str], skill: float, **tags: str) -> str:
        """Log a cell at some values of the factors; the greater the skill, the more answers are right."""
        given = self.texts.answers(2 * (0.9 - skill), 0, self.rng)
        run = write(store, folder, Cell(self.texts, "m", "invented", TYPO, self.clean, given))
        self.given[tuple(factors.values())], self.right[tuple(factors.values())] = given["value"], given["right"]
        for name, value in {**({"factors": json.dumps(factors)} if factors else {}), **tags}.items():
            store.tag(run, name, value)
        return run


def sweep(store: Store, **values: Sequence[str]) -> None:
    choices = {"weights": ["invented"], "task": ["sentiment"], "model": ["m"], "perturb": ["typo"], "level": ["mid"]}
    run = store.start("sweep", {"kind": "sweep", "choices": json.dumps(choices | values)}, {})
    store.end(run, "FINISHED")


def reported(store: Store, folder: Path, **options: bool) -> Path:
    analyse(store, Options(folder / store.study, {}, log=False, **options))
    return folder / store.study


def table(out: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(out / "tables" / f"{name}.csv", dtype={"prompt.shots": str, "draw": str})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ablations")


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def shots(folder: Path, answers: Answers) -> Path:
    """Three values of one setting; the sweep names 5 first."""
    store = store_in(folder, "shots")
    sweep(store, **{"prompt.shots": ["5", "0", "1"]})
    for value, skill in (("0", 0.5), ("1", 0.7), ("5", 0.85)):
        answers.write(store, folder / "scratch", {"prompt.shots": value}, skill)
    return reported(store, folder)


def test_each_value_has_a_row_with_the_reference_first(shots: Path) -> None:
    frame = table(shots, "ablation_prompt.shots")
    assert list(frame["prompt.shots"]) == ["5", "0", "1"]
    assert list(frame["n"]) == [N] * 3
    assert next(iter(frame["note"])) == "the reference"
    assert frame["difference"].isna().tolist() == [True, False, False]
    assert (frame["baseline"].nunique(), frame["score_name"].unique().tolist()) == (1, ["accuracy"])


def test_differences_are_those_of_the_answers_text_by_text(shots: Path, answers: Answers) -> None:
    frame = table(shots, "ablation_prompt.shots").set_index("prompt.shots")
    for value in ("0", "1"):
        pairs = Pairs(
            answers.texts.targets,
            *(answers.given[one,] for one in ("5", value)),
            *(answers.right[one,] for one in ("5", value)),
            answers.texts.ids,
            answers.texts.labels,
        )
        found = difference(pairs, "accuracy")
        row = frame.loc[value]
        assert row["difference"] == pytest.approx(np.mean(answers.right[value,]) - np.mean(answers.right["5",]))
        assert row["value"] - frame.loc["5", "value"] == pytest.approx(row["difference"])
        assert (row["p"], row["method"]) == (pytest.approx(found.p), "exact McNemar")
        assert found.interval is not None
        assert (row["difference_low"], row["difference_high"]) == pytest.approx(
            (found.interval.low, found.interval.high)
        )


def test_p_is_corrected_over_the_rows_of_the_table(shots: Path) -> None:
    frame = table(shots, "ablation_prompt.shots")
    first, second = sorted(frame["p"].dropna())
    assert sorted(frame["p_holm"].dropna()) == pytest.approx([min(1, 2 * first), max(2 * first, second)])


def test_the_studys_own_tables_rest_on_the_reference(shots: Path) -> None:
    scores = pd.read_csv(shots / "scores.csv")
    reference = table(shots, "ablation_prompt.shots").iloc[0]
    assert set(scores["run_id"]) == {reference["run_id"]}
    runs = table(shots, "runs")
    assert sorted(runs["factors"]) == ["prompt.shots=0", "prompt.shots=1", "prompt.shots=5"]
    assert "rest on 1 cell with prompt.shots=5, the reference" in (shots / "index.html").read_text()


def test_a_figure_shows_every_value(shots: Path) -> None:
    assert (shots / "figures" / "ablation_prompt.shots_invented.svg").exists()


def test_a_setting_that_is_no_chance_has_no_components_of_variance(shots: Path) -> None:
    assert not list((shots / "tables").glob("variance*"))


@pytest.mark.slow
def test_two_settings_have_a_table_each_with_the_other_held_and_one_of_variances(
    folder: Path, answers: Answers
) -> None:
    store = store_in(folder, "draws")
    sweep(store, draw=["0", "1", "2"], **{"prompt.shots": ["5", "0"]})
    for shots in ("5", "0"):
        for draw in ("0", "1", "2"):
            answers.write(store, folder / "scratch", {"draw": draw, "prompt.shots": shots}, 0.8)
    out = reported(store, folder)
    frame = table(out, "ablation_draw")
    assert list(zip(frame["prompt.shots"], frame["draw"], strict=True)) == [(s, d) for s in "50" for d in "012"]
    assert frame["difference"].isna().tolist() == [True, False, False] * 2
    assert len(table(out, "ablation_prompt.shots")) == 6

    scores = np.array([[answers.right[draw, shots] for shots in "50"] for draw in "012"])
    expected = components(np.moveaxis(scores, -1, 0), ["text", "draw", "prompt.shots"])
    found = table(out, "variance_draw_prompt.shots")
    assert list(found["source"]) == [" × ".join(one.sources) for one in expected]
    assert list(found["variance"]) == pytest.approx([one.variance for one in expected])
    assert found["share"].sum() == pytest.approx(1)
    assert found["score_sd"][0] == pytest.approx(np.sqrt(found["variance"][0] / N))
    assert found["score_sd"][1] == pytest.approx(np.sqrt(found["variance"][1]))


def test_values_on_other_texts_are_not_compared_text_by_text_and_say_so(folder: Path, answers: Answers) -> None:
    store = store_in(folder, "seeds")
    sweep(store, seed=["0", "1"])
    for seed in ("0", "1"):
        answers.write(store, folder / "scratch", {"seed": seed}, 0.8, data_hash=f"texts of {seed}")
    out = reported(store, folder)
    frame = table(out, "ablation_seed")
    assert frame["value"].notna().all()
    assert frame[["difference", "p"]].isna().all(axis=None)
    assert frame["note"][1] == "other texts than the reference's: no difference within texts"
    assert table(out, "variance_seed")["note"][0] == "its cells are not on the same texts"


def test_cells_of_no_ablation_are_what_the_studys_own_tables_rest_on(folder: Path, answers: Answers) -> None:
    store = store_in(folder, "both")
    own = answers.write(store, folder / "scratch", {}, 0.9)
    for value in ("5", "0"):
        answers.write(store, folder / "scratch", {"prompt.shots": value}, 0.8)
    out = reported(store, folder)
    assert set(pd.read_csv(out / "scores.csv")["run_id"]) == {own}
    assert len(table(out, "ablation_prompt.shots")) == 2


def test_a_value_that_was_never_run_stops_the_analysis_and_a_lost_reference_is_told(
    folder: Path, answers: Answers
) -> None:
    store = store_in(folder, "lost")
    sweep(store, **{"prompt.shots": ["5", "0", "1"]})
    answers.write(store, folder / "scratch", {}, 0.9)
    for value in ("0", "1"):
        answers.write(store, folder / "scratch", {"prompt.shots": value}, 0.8)
    with pytest.raises(DataError, match=r"missing: sentiment · m · typo · mid · prompt.shots=5"):
        reported(store, folder)
    frame = table(reported(store, folder, allow_incomplete=True), "ablation_prompt.shots")
    assert list(frame["note"]) == ["no finished cell at the reference"] * 2
