"""The whole report on a study with invented answers, from a real MLflow store to files, page and MLflow again."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from invented import CLOSED, Cell, Condition, Texts, make, store_in, tags, write

from noisyhealth.analysis import completeness
from noisyhealth.errors import DataError, StoreError
from noisyhealth.metrics import classification, overlap
from noisyhealth.report import runs
from noisyhealth.report.analyse import Options, analyse
from noisyhealth.tracking.store import Store

TABLES = (
    *("baselines", "categories", "categories_by_model_task", "categories_by_perturb_level"),
    *(f"categories_by_{name}" for name in ("model", "task", "perturb", "level")),
    *("chi_squared", "expected", "changes", "flips", "doses"),
    *("mean_change", "model_pairs"),
    *(
        "friedman",
        "friedman_headline",
        "friedman_without",
        "conover_headline",
        "conover",
        "anova",
        "t_tests",
        "anova_within",
        "trend",
    ),
    *("medical_bins", "medical_mixed", "medical_spearman"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def study(folder: Path) -> Store:
    """90 runs of 40 examples."""
    store = store_in(folder, "whole")
    make(store, folder / "scratch", models=3, examples=40)
    return store


@pytest.fixture(scope="module")
def out(study: Store, folder: Path) -> Path:
    analyse(study, Options(folder / "out", {}))
    return folder / "out"


LEVELS = {"low": 0.1, "mid": 0.3, "high": 0.5}


def small(
    store: Store,
    folder: Path,
    weights: str = "invented",
    models: tuple[str, ...] = ("a",),
    levels: Mapping[str, float] = MappingProxyType(LEVELS),
    groups: Sequence[str] = ("",) * 12,
) -> list[str]:
    """Four cells a model of one task: clean texts and three levels."""
    rng = np.random.default_rng(1)
    texts = Texts("sentiment", np.array(["health", "notess", "wordss"]), len(groups), rng)
    texts.groups = list(groups)
    ids = []
    for model in models:
        clean = texts.answers(0.0, 0, rng)
        ids.append(write(store, folder, Cell(texts, model, weights, Condition("none", "none", 0.0), clean, clean)))
        for level, rate in levels.items():
            given = texts.answers(rate, 0, rng)
            ids.append(
                write(store, folder, Cell(texts, model, weights, Condition("redact", level, rate), clean, given))
            )
    return ids


def table(out: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(out / "tables" / f"{name}_invented.csv")


def test_every_table_is_written_as_csv_latex_and_markdown(out: Path) -> None:
    names = {f"{name}_invented" for name in TABLES} | {"runs"}
    assert {path.stem for path in (out / "tables").iterdir()} == names
    for name in names:
        frame = pd.read_csv(out / "tables" / f"{name}.csv")
        assert len(frame), name
        markdown = (out / "tables" / f"{name}.md").read_text().splitlines()
        assert sum(line.startswith("|") for line in markdown) == len(frame) + 2, name
        latex = (out / "tables" / f"{name}.tex").read_text()
        assert latex.count(r" \\") >= len(frame), name
        assert not re.search(r"(?<!\\)[%#_]", latex.partition(r"\label")[2].partition("}")[2]), name


def test_every_figure_is_written_as_png_and_svg(out: Path) -> None:
    names = {path.stem for path in (out / "figures").glob("*.svg")}
    assert {name.partition("_")[0] for name in names} == {"dose", "heatmap", "categories", "drops", "medical"}
    assert names == {path.stem for path in (out / "figures").glob("*.png")}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (out / "figures").glob("*.png"))


def test_no_table_has_a_p_of_0_or_a_number_that_is_infinite(out: Path) -> None:
    for path in (out / "tables").glob("*.csv"):
        frame = pd.read_csv(path)
        for name in frame.columns:
            if name != "p_by" and (name == "p" or name.startswith("p_") or name.endswith("_p")):
                assert (frame[name].dropna() > 0).all(), (path.name, name)
                assert (frame[name].dropna() <= 1).all(), (path.name, name)
        assert not np.isinf(frame.select_dtypes("number")).any(axis=None), path.name


def test_the_same_runs_give_the_same_report_byte_by_byte(study: Store, out: Path, folder: Path) -> None:
    analyse(study, Options(folder / "again", {}, log=False))
    first = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = folder / "again"
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()} == first


def test_every_score_follows_from_the_answers_beside_it(out: Path) -> None:
    answers = pd.read_parquet(out / "answers.parquet")
    changes = table(out, "changes")
    labels = {"sentiment": ["positive", "negative"], "condition": ["neoplasm", "digestive", "cardiovascular"]}
    by = ["task", "model", "perturb", "level"]
    groups = dict(iter(answers.groupby(by)))
    assert len(changes) == 27 * (4 + 4 + 1)
    for row in changes.itertuples():
        for value, place in ((row.value, (row.perturb, row.level)), (row.baseline, ("none", "none"))):
            part = groups[row.task, row.model, *place]
            if row.task == "qa":
                assert part["right"].mean() == pytest.approx(value, abs=1e-9)
            else:
                found = classification.scores(list(part["target"]), list(part["value"]), labels[row.task])
                assert found[row.score_name] == pytest.approx(value, abs=1e-12)


def test_intervals_hold_their_score_and_probabilities_add_up(out: Path) -> None:
    changes = table(out, "changes")
    for name in ("baseline", "value", "change"):
        there = changes.dropna(subset=[f"{name}_low"])
        assert len(there) > 200
        assert ((there[f"{name}_low"] <= there[name]) & (there[name] <= there[f"{name}_high"])).all()
    names = [f"{name}_probability" for name in ("increase", "stable", "decrease", "catastrophic")]
    assert changes[names].sum(axis=1).to_numpy() == pytest.approx(1)
    likeliest = changes[names].idxmax(axis=1).str.removesuffix("_probability")
    assert (likeliest == changes["category"]).mean() > 0.8
    assert (changes["p_holm"] >= changes["p"]).all()


def test_the_model_that_lost_most_stands_first_and_pairs_are_compared_on_the_same_texts(out: Path) -> None:
    models, pairs = table(out, "mean_change"), table(out, "model_pairs")
    answers = pq.read_table(out / "answers.parquet").to_pandas()
    means = answers.groupby(["task", "model", answers["perturb"] == "none"])["right"].mean().unstack()
    lost = means[False] - means[True]
    assert len(models) == len(pairs) == 9
    for task, own in models.groupby("task", sort=False):
        assert own["difference"].is_monotonic_increasing
        assert own["cells"].eq(9).all()
        assert own["n"].eq(40).all()
        for row in own.itertuples():
            assert row.difference == pytest.approx(lost[task, row.model])
            assert row.value - row.baseline == pytest.approx(row.difference)
            assert row.difference_low <= row.difference <= row.difference_high
            assert row.worst_difference <= row.difference
    for row in pairs.itertuples():
        assert row.difference == pytest.approx(lost[row.task, row.first] - lost[row.task, row.second])
        assert row.beyond_chance == (row.difference_high < 0 or row.difference_low > 0)


def test_the_floor_of_free_answers_is_their_score_against_the_references_of_other_texts(out: Path) -> None:
    answers = pq.read_table(out / "answers.parquet").to_pandas()
    floors = table(out, "baselines").set_index(["task", "model"])["floor"]
    assert len(floors) == 27, "a row a score"
    own = answers[(answers["task"] == "qa") & (answers["model"] == "model00") & (answers["perturb"] == "none")]
    targets, values = own["target"].tolist(), own["value"].tolist()
    assert len(own) == 40
    pairs = [(values[at], targets[(at + offset) % 40]) for offset in range(1, 6) for at in range(40)]
    expected = np.mean(overlap.rouge_l_each([target for _, target in pairs], [value for value, _ in pairs]))
    assert 0 < expected == pytest.approx(floors["qa", "model00"])


def test_flips_are_those_of_the_answers(out: Path) -> None:
    answers = pd.read_parquet(out / "answers.parquet")
    by = ["task", "model", "perturb", "level"]
    counted = answers[answers["flip"] != ""].groupby([*by, "flip"]).size().unstack(fill_value=0)
    flips = table(out, "flips").set_index(by)
    for name in ("right to wrong", "wrong to right", "wrong to other", "same"):
        assert dict(flips[name.replace(" ", "_")]) == dict(counted[name].reindex(flips.index))
    closed = answers[(answers["task"] == "sentiment") & (answers["perturb"] == "typo") & (answers["level"] == "high")]
    clean = answers[(answers["task"] == "sentiment") & (answers["perturb"] == "none")].set_index(["model", "id"])[
        "right"
    ]
    lost = closed[closed["flip"] == "right to wrong"]
    assert len(lost)
    assert (lost["right"] == 0).all()
    assert all(clean[row.model, row.id] == 1 for row in lost.itertuples())


def test_texts_are_kept_once_whoever_was_asked_and_their_edits_give_them(out: Path) -> None:
    texts = pq.read_table(out / "texts.parquet").to_pylist()
    assert len(texts) == 3 * 9 * 40
    for row in texts:
        text = row["text"]
        for edit in reversed(json.loads(row["edits"])):
            text = text[: edit["start"]] + edit["after"] + text[edit["start"] + len(edit["before"]) :]
        assert text == row["disturbed"]


def test_the_page_shows_the_examples_and_says_which(out: Path) -> None:
    html = (out / "index.html").read_text()
    assert "All 120 texts are shown." in html
    assert len(html) < 15_000_000
    scores = pd.read_csv(out / "scores.csv")
    counts = scores["category"].value_counts()
    assert f"{counts['decrease']} ({counts['decrease'] / 243:.1%}) decreased" in html


def test_the_report_is_a_run_of_the_study_that_links_to_its_runs(study: Store, out: Path) -> None:
    [run] = study.runs("tags.kind = 'analysis'")
    assert run.info.status == "FINISHED"
    assert run.data.params["runs"] == "90"
    assert run.data.tags["complete"] == "true"
    note = run.data.tags["mlflow.note.content"]
    linked = re.findall(r"#/experiments/(\d+)/runs/(\w+)\)", note)
    cells = {one.info.run_id for one in study.runs("tags.kind = 'cell'")}
    assert len(cells) == 90
    assert {experiment for experiment, _ in linked} == {study.experiment}
    assert {one for _, one in linked} <= cells
    assert len(linked) + int(re.findall(r"and (\d+) more", note)[0]) == 90
    logged = study.artifact(run, "index.html", out)
    assert logged.read_bytes() == (out / "index.html").read_bytes()
    total = sum(run.data.metrics[f"invented/{name}"] for name in ("increase", "stable", "decrease", "catastrophic"))
    assert total == 243


@pytest.fixture
def changed(folder: Path, request: pytest.FixtureRequest) -> tuple[Store, list[str], Path]:
    """A small study of a test's own, its runs, and a folder for its report."""
    store = store_in(folder, request.node.name)
    return store, small(store, folder / "scratch"), folder / request.node.name


def file_of(store: Store, run: str, name: str) -> Path:
    return store.artifact(store.client.get_run(run), name, Path())


def test_a_logged_score_that_is_not_that_of_the_answers_stops_the_report(
    changed: tuple[Store, list[str], Path],
) -> None:
    store, ids, out = changed
    path = file_of(store, ids[-1], "predictions.parquet")
    rows = pq.read_table(path).to_pylist()
    rows[-1]["right"] = 1 - rows[-1]["right"]
    pq.write_table(pq.read_table(path).from_pylist(rows), path)
    with pytest.raises(DataError, match=rf"run {ids[-1]}.*logged accuracy .*its answers give"):
        analyse(store, Options(out, {}))
    assert not (out / "index.html").exists()
    assert not store.runs("tags.kind = 'analysis'")


def test_a_run_without_its_files_is_named(changed: tuple[Store, list[str], Path]) -> None:
    store, ids, out = changed
    shutil.rmtree(file_of(store, ids[1], "variants.parquet").parent)
    with pytest.raises(StoreError, match=rf"run {ids[1]} has no file predictions.parquet"):
        analyse(store, Options(out, {}))


def test_files_on_other_texts_than_each_other_are_named(changed: tuple[Store, list[str], Path]) -> None:
    store, ids, out = changed
    path = file_of(store, ids[2], "variants.parquet")
    rows = pq.read_table(path).to_pylist()
    pq.write_table(pq.read_table(path).from_pylist(rows[:-1]), path)
    with pytest.raises(StoreError, match=rf"run {ids[2]}: .* not on the same texts"):
        analyse(store, Options(out, {}))


def test_a_study_that_is_not_whole_says_so_in_every_table(changed: tuple[Store, list[str], Path]) -> None:
    store, _, out = changed
    analyse(store, Options(out, {"level": ["low", "mid", "high", "top"]}, allow_incomplete=True))
    told = "INCOMPLETE: 1 missing (see problems)"
    for path in (out / "tables").iterdir():
        if path.suffix == ".csv":
            frame = pd.read_csv(path)
            assert set(frame["study_incomplete"]) == ({told} if len(frame) else set()), path.name
        else:
            assert told in path.read_text(), path.name
    assert told in (out / "index.html").read_text()
    assert list(pd.read_csv(out / "tables" / "problems.csv")["problem"]) == ["missing"]
    [run] = store.runs("tags.kind = 'analysis'")
    assert run.data.tags["complete"] == "false"


def test_weights_never_mix_in_a_table(changed: tuple[Store, list[str], Path], folder: Path) -> None:
    store, _, out = changed
    small(store, folder / "scratch", weights="others", models=("a", "b"))
    analyse(store, Options(out, {}, allow_incomplete=True))
    for weights, cells in (("invented", 3), ("others", 6)):
        frame = pd.read_csv(out / "tables" / f"flips_{weights}.csv")
        assert len(frame) == cells
    html = (out / "index.html").read_text()
    assert "weights: invented" in html
    assert "weights: others" in html


@pytest.mark.parametrize("groups", [[""], ["patient"] * 6])
def test_what_one_independent_text_cannot_tell_has_a_note_and_no_number(
    folder: Path, request: pytest.FixtureRequest, groups: list[str]
) -> None:
    store, out = store_in(folder, f"one_{len(groups)}"), folder / f"one_{len(groups)}"
    small(store, folder / "scratch", groups=groups)
    analyse(store, Options(out, {}, log=False))
    changes = table(out, "changes")
    assert set(changes["independent"]) == {1}
    assert changes[["p", "p_holm", "change_low", "increase_probability"]].isna().all(axis=None)
    assert changes["note"].str.contains("all examples are of one group").all()
    wilson = changes[changes["score_name"] == "accuracy"]
    assert ((wilson["value_high"] - wilson["value_low"]) > 0.3).all()


def test_levels_of_ones_own_stand_in_the_order_of_their_dose(folder: Path) -> None:
    store, out = store_in(folder, "own_levels"), folder / "own_levels"
    levels = {"mild": 0.1, "strong": 0.2, "extreme": 0.3, "absurd": 0.4, "last": 0.5, "beyond": 0.6}
    small(store, folder / "scratch", levels=levels)
    analyse(store, Options(out, {}, log=False))
    [row] = table(out, "trend").itertuples()
    assert row.levels == "mild < strong < extreme < absurd < last < beyond"
    assert (row.conditions, row.method) == (7, "normal")
    assert list(dict.fromkeys(table(out, "changes")["level"])) == list(levels)


def test_answers_of_one_patient_count_once_in_trend_and_improvement(folder: Path) -> None:
    store, out = store_in(folder, "patients"), folder / "patients"
    small(store, folder / "scratch", groups=[f"patient {at // 6}" for at in range(30)])
    analyse(store, Options(out, {}, log=False))
    assert set(table(out, "trend")["n"]) == {5}
    flips = table(out, "flips")
    assert set(flips["independent"]) == {5}
    assert set(flips["n"]) == {30}
    assert (flips["better_p"].dropna() >= 2**-5).all()


def cells_of(store: Store, folder: Path, *, clean: bool = False, texts: bool = False, unread: bool = False) -> None:
    """A study of two models with one thing that does not fit: clean answers, disturbed texts, or what was read."""
    rng = np.random.default_rng(2)
    same = Texts("sentiment", np.array(["health", "notess"]), 12, rng)
    other = Texts("sentiment", np.array(["health", "notess"]), 12, rng)
    other.texts, other.targets, other.ids = same.texts, same.targets, same.ids
    first = same.answers(0.0, 0, rng)
    if unread:
        first |= {"outcome": ["empty"] * 8 + ["scored"] * 4, "value": [""] * 8 + first["value"][8:]}
        first["right"] = [float(one == target) for one, target in zip(first["value"], same.targets, strict=True)]
    second = {
        **first,
        "outcome": ["scored"] * 12,
        "value": ["negative"] * 12,
        "right": [float(one == "negative") for one in same.targets],
    }
    for model in ("a", "b"):
        for perturb in ("typo", "redact"):
            of = other if texts and model == "b" and perturb == "redact" else same
            given = second if clean and perturb == "redact" else first
            write(store, folder, Cell(of, model, "invented", Condition(perturb, "low", 0.1), given, second))


@pytest.mark.parametrize(
    ("fault", "told"),
    [("clean", "do not share the answers to the clean texts"), ("texts", "do not share the disturbed")],
)
def test_cells_that_do_not_share_what_they_should_are_no_whole_study(folder: Path, fault: str, told: str) -> None:
    store, out = store_in(folder, f"unlike_{fault}"), folder / f"unlike_{fault}"
    cells_of(store, folder / "scratch", **{fault: True})
    with pytest.raises(DataError, match=told):
        analyse(store, Options(out, {}))
    assert not out.exists()
    analyse(store, Options(out, {}, allow_incomplete=True, log=False))
    assert told in (out / "index.html").read_text()
    assert set(pd.read_csv(out / "scores.csv")["study_incomplete"].str.startswith("INCOMPLETE: ")) == {True}


def test_clean_replies_without_an_answer_are_counted_and_warned_of(folder: Path) -> None:
    store, out = store_in(folder, "unread"), folder / "unread"
    cells_of(store, folder / "scratch", unread=True)
    analyse(store, Options(out, {}, log=False))
    flips = table(out, "flips")
    assert set(flips["unread_clean"]) == {8}
    assert set(flips["unread"]) == {0}
    assert "In 4 cells more than half of the replies, to disturbed or clean texts" in (out / "index.html").read_text()


def test_a_report_that_cannot_be_made_leaves_an_earlier_one_as_it_was(changed: tuple[Store, list[str], Path]) -> None:
    store, ids, out = changed
    analyse(store, Options(out, {}, log=False))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    file_of(store, ids[-1], "predictions.parquet").unlink()
    with pytest.raises(StoreError, match=r"has no file predictions\.parquet"):
        analyse(store, Options(out, {}, log=False))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_grid_leaves_out_what_it_does_not_name_and_says_so(
    changed: tuple[Store, list[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, out = changed
    analyse(store, Options(out, {"level": ["low", "mid"]}, log=False))
    assert "1 runs are outside the grid that was named and left out" in capsys.readouterr().out
    assert set(table(out, "changes")["level"]) == {"low", "mid"}


def test_an_older_run_on_the_right_texts_counts_where_the_newest_is_on_others(
    changed: tuple[Store, list[str], Path],
) -> None:
    store, ids, _ = changed
    cells = store.runs("tags.kind = 'cell'")
    [low] = [run for run in cells if run.info.run_id == ids[1]]
    other = SimpleNamespace(
        info=SimpleNamespace(
            run_id="other", run_name="other", status="FINISHED", start_time=low.info.start_time + 9**9
        ),
        data=SimpleNamespace(tags={**low.data.tags, "data_hash": "others"}, params=low.data.params),
    )
    chosen = runs.choose([*cells, other])
    assert low in chosen.runs
    assert chosen.left_out == ("other (other) is on other examples than most cells of its task: left out",)


@pytest.mark.slow
def test_all_of_1200_runs_are_read(folder: Path) -> None:
    from mlflow.entities import Metric

    store, rng = store_in(folder, "many"), np.random.default_rng(3)
    texts = Texts("sentiment", np.array(["health", "notess"]), 3, rng)
    clean = texts.answers(0.0, 0, rng)
    metrics = {
        "n": 3,
        "outcome/scored": 3,
        "clean_outcome/scored": 3,
        **dict.fromkeys((*CLOSED, *(f"clean/{name}" for name in CLOSED)), 0.5),
    }
    for model in range(400):
        for level, rate in (("low", 0.1), ("mid", 0.3), ("high", 0.5)):
            cell = Cell(texts, f"m{model}", "invented", Condition("typo", level, rate), clean, clean)
            run = store.start("cell", tags(cell), {"rate": rate})
            store.client.log_batch(run, [Metric(name, value, 0, 0) for name, value in metrics.items()])
            store.end(run, "FINISHED")
    read = store.runs("tags.kind = 'cell'")
    assert len({run.info.run_id for run in read}) == 1200
    assert completeness.problems([runs.cell_run(run) for run in read]) == []
    scores = runs.scores(runs.choose(read).runs)
    assert len(scores) == 4800
    assert scores["run_id"].nunique() == 1200
