import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from omegaconf import DictConfig

from noisyhealth import experiment, scoring, settings, study
from noisyhealth.cell import Cell
from noisyhealth.errors import CallError, ConfigError, StoreError
from noisyhealth.models.model import FREE, Price
from noisyhealth.perturbations.engine import distance, replay
from noisyhealth.records import Edit, Fit, Outcome, Query, Reply, Training
from noisyhealth.study import Ledger, Record
from noisyhealth.text.prompt import Wording
from noisyhealth.tracking.entries import Headline
from noisyhealth.tracking.store import Store

CELLS = [("none", "low"), *((p, level) for p in ("typo", "homophone", "redact") for level in ("low", "mid", "high"))]
Make = Callable[..., Cell]


def frame_of(store: Store, run: str, artifact: str) -> pd.DataFrame:
    return pd.read_parquet(store.client.download_artifacts(run, artifact))


@dataclass
class Parrot:
    """A model of the test's own: says a text in turn from `says`, loses the calls in `lost`, counts its calls."""

    name: str
    says: tuple[str, ...] = ("Answer: positive",)
    lost: frozenset[int] = frozenset()
    interrupted: bool = False
    details: tuple[dict[str, object], ...] = ({},)
    paid: Price = FREE
    dtype: str = ""
    batch: bool = False
    batch_share: float = 0.5
    tuned: Fit | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"parrot({self.name})"

    def check(self) -> None:
        pass

    def fit(self, wording: Wording, training: Training) -> None:
        pass

    def signature(self) -> dict[str, object]:
        return {"model": self.name, **({"dtype": self.dtype} if self.dtype else {})}

    def request(self, query: Query) -> dict[str, object]:
        return {"text": query.text}

    def price(self) -> Price:
        return self.paid

    def shots(self) -> tuple[str, ...]:
        return ()

    def fitted(self) -> Fit | None:
        return self.tuned

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        for query in queries:
            place = len(self.asked)
            self.asked.append(query.text)
            if self.interrupted and place == 2:
                raise KeyboardInterrupt
            lost = place in self.lost
            text = "" if lost else self.says[place % len(self.says)]
            detail = {"error": "gone"} if lost else self.details[place % len(self.details)]
            yield Reply(query.id, text, "error" if lost else "stop", 5, 2, 0.1, detail)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path, configured: Callable[..., DictConfig]) -> Make:
    """Make cells of a study on six sample texts in a store of this file's own."""
    folder = tmp_path_factory.mktemp("experiment")
    fixed = (f"tracking.uri=sqlite:///{folder}/mlflow.db", f"tracking.artifacts={folder}/mlruns", "data.split.test=6")

    def made(*overrides: str, model: object = None) -> Cell:
        given = [*fixed, f"cache={shared_cache}", "model=majority", *overrides]
        cell = settings.cell(configured(*given))
        return replace(cell, model=model) if model else cell

    return made


def run(cell: Cell) -> Record:
    asked = study.asked(cell)
    return experiment.run(cell, asked, study.key(cell, asked))


def run_of(store: Store, record: Record) -> Any:
    return store.client.get_run(record.run)


def artifact(store: Store, run_id: str, name: str) -> Path:
    return Path(store.client.download_artifacts(run_id, name))


def last(store: Store, name: str) -> Any:
    """Return the newest run that is called so."""
    return next(run for run in store.runs() if run.info.run_name == name)


@pytest.fixture(scope="module")
def done(make: Make) -> tuple[Cell, Record]:
    cell = make("study=one", "perturb=redact", "level=mid")
    return cell, run(cell)


def test_a_finished_run_keeps_all_that_its_numbers_rest_on(done: tuple[Cell, Record]) -> None:
    cell, record = done
    found = run_of(cell.store, record)
    assert (record.status, found.info.status) == (study.DONE, "FINISHED")
    folder = artifact(cell.store, record.run, "")
    written = json.loads((folder / "manifest.json").read_text())
    kept = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert kept >= {
        "config.yaml",
        "variants.parquet",
        "predictions.parquet",
        "prompt.txt",
        "environment.json",
        "build.json",
        "metrics.json",
        "model.json",
    }
    assert written["files"] == {name: sha256((folder / name).read_bytes()).hexdigest() for name in kept}
    assert found.data.tags["manifest"] == sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert (written["cell_key"], written["data"]) == (record.key, found.data.tags["data_hash"])
    assert yaml.safe_load((folder / "config.yaml").read_text()) == cell.resolved
    assert json.loads((folder / "environment.json").read_text())["packages"]["mlflow"]
    assert json.loads((folder / "build.json").read_text(encoding="utf-8")) == study.asked(cell).build.facts


def test_the_dose_and_what_it_touched_are_means_over_the_texts(done: tuple[Cell, Record]) -> None:
    cell, record = done
    metrics = run_of(cell.store, record).data.metrics
    texts = frame_of(cell.store, record.run, "variants.parquet")
    for name in ("words", "valid_words", "characters", "edit_distance", "medical"):
        assert metrics[f"dose/{name}"] == pytest.approx(texts[f"dose_{name}"].mean())
    assert metrics["dose/edits"] == pytest.approx(texts["edited_words"].mean())
    flags = [{flag for edit in json.loads(edits) for flag in edit["flags"]} for edits in texts["edits"]]
    for flag in ("negation", "number", "laterality", "drug"):
        assert metrics[f"touched/{flag}"] == pytest.approx(sum(flag in found for found in flags) / 6)


def test_every_example_can_be_followed_from_its_text_to_its_value(done: tuple[Cell, Record]) -> None:
    cell, record = done
    texts = frame_of(cell.store, record.run, "variants.parquet").set_index("id")
    asked = frame_of(cell.store, record.run, "predictions.parquet")
    assert len(texts) == 6
    assert list(asked["version"]) == ["clean"] * 6 + ["disturbed"] * 6
    for row in asked.itertuples():
        pair = texts.loc[row.id]
        assert row.text == pair["original" if row.version == "clean" else "disturbed"]
        assert row.text in json.loads(row.request).values()
        assert row.target in ("positive", "negative")
        assert (row.reply, row.value, row.outcome) == (row.value, row.value, "scored")
        assert row.right == (row.value == row.target)
        assert len(row.reply_key) == 64


def test_the_kept_edits_replayed_on_the_original_give_the_disturbed_text(done: tuple[Cell, Record]) -> None:
    cell, record = done
    for row in frame_of(cell.store, record.run, "variants.parquet").itertuples():
        edits = [Edit(**edit) for edit in json.loads(row.edits)]
        assert replay(row.original, edits) == row.disturbed != row.original
        assert len(edits) == row.edited_words == round(row.dose_total_words * 0.3 + 1e-9)
        assert row.edited_words <= row.dose_total_valid_words <= row.dose_total_words
        assert row.dose_words == pytest.approx(row.edited_words / row.dose_total_words)
        assert row.dose_edit_distance == sum(map(distance, edits)) > 0


def test_the_scores_follow_from_the_kept_predictions(done: tuple[Cell, Record]) -> None:
    cell, record = done
    metrics = run_of(cell.store, record).data.metrics
    asked = frame_of(cell.store, record.run, "predictions.parquet")
    right = asked.groupby("version")["right"].mean()
    assert metrics["accuracy"] == pytest.approx(right["disturbed"])
    assert metrics["clean/accuracy"] == pytest.approx(right["clean"])
    assert metrics["ci_low/accuracy"] < metrics["accuracy"] < metrics["ci_high/accuracy"]
    assert record.headline
    assert (record.headline.score, record.headline.n) == (metrics["accuracy"], 6)


def test_cells_of_one_fit_point_to_one_run_that_has_its_curves(make: Make) -> None:
    curves = "epoch,step,train_loss,validation_f1\n0,9,0.7,\n0,9,,0.5\n1,19,0.4,0.75\n"
    facts = {"score": "validation_f1", "validation_score": 0.75, "epochs": 2, "seconds": 3.5, "recipe": {"frozen": 4}}
    seen = ({"pieces_per_word": 1.5, "truncated": 0.0}, {"pieces_per_word": 2.5, "truncated": 0.5})
    model = Parrot("tuned", details=seen, tuned=Fit("key", facts, curves))
    cells = [make("study=fits", f"perturb={name}", model=model) for name in ("none", "redact")]
    runs = [run_of(cell.store, run(cell)) for cell in cells]
    [fit] = cells[0].store.runs("tags.kind = 'fit'")
    assert [found.data.tags["fit_run"] for found in runs] == [fit.info.run_id] * 2
    assert {found.data.tags["fit"] for found in (*runs, fit)} == {"key"}
    assert fit.info.status == "FINISHED"
    assert fit.info.run_name == "fit · sentiment · parrot(tuned)"
    assert fit.data.params == {"frozen": "4"}
    assert (fit.data.metrics["validation_score"], fit.data.metrics["epochs"]) == (0.75, 2)
    curve = cells[0].store.client.get_metric_history(fit.info.run_id, "validation_f1")
    assert [(point.step, point.value) for point in curve] == [(9, 0.5), (19, 0.75)]
    assert artifact(cells[0].store, fit.info.run_id, "fit_curves.csv").read_text() == curves
    assert artifact(cells[1].store, runs[1].info.run_id, "fit_curves.csv").read_text() == curves
    metrics = runs[1].data.metrics
    assert (metrics["fit/validation_f1"], metrics["fit/epochs"], metrics["fit/seconds"]) == (0.75, 2, 3.5)
    assert (metrics["tokens/per_word"], metrics["tokens/truncated"]) == (2.0, 0.25)
    assert (metrics["clean_tokens/per_word"], metrics["clean_tokens/truncated"]) == (2.0, 0.25)


def test_a_run_says_which_cell_it_is(done: tuple[Cell, Record]) -> None:
    cell, record = done
    data = run_of(cell.store, record).data
    wanted = {"task": "sentiment", "model": "majority", "weights": "embedded", "perturb": "redact", "level": "mid"}
    assert {key: data.tags[key] for key in wanted} == wanted
    assert data.tags["cell_key"] == record.key
    assert data.tags["mlflow.runName"] == "sentiment · majority · redact · mid"
    assert float(data.params["rate"]) == 0.3
    assert data.params["seed"] == "0"
    assert data.metrics["n"] == 6


def test_a_cell_that_is_done_is_not_run_again(done: tuple[Cell, Record], make: Make) -> None:
    cell, record = done
    again = run(make("study=one", "perturb=redact", "level=mid"))
    assert (again.status, again.run, again.headline) == (study.REUSED, record.run, record.headline)
    assert len([r for r in cell.store.runs() if r.data.tags["kind"] == "cell"]) == 1


def test_outcomes_are_counted_and_sum_to_n(make: Make) -> None:
    says = ("Answer: positive", "", "I am sorry, I cannot say", "positive or negative", "NEGATIVE.", "Answer: neither")
    cell = make("study=outcomes", "perturb=typo", "level=high", model=Parrot("outcomes", says))
    metrics = run_of(cell.store, run(cell)).data.metrics
    for prefix in ("outcome", "clean_outcome"):
        counts = {outcome: metrics[f"{prefix}/{outcome}"] for outcome in Outcome}
        assert sum(counts.values()) == metrics["n"] == 6
        assert counts[Outcome.FAILED] == 0
        assert counts == {"scored": 2, "unparsed": 2, "refused": 1, "empty": 1, "cut": 0, "failed": 0}
    asked = frame_of(cell.store, last(cell.store, cell.name).info.run_id, "predictions.parquet")
    assert Counter(asked["outcome"]) == {"scored": 4, "unparsed": 4, "refused": 2, "empty": 2}
    assert list(asked["reply"]) == [*says, *says], "every reply is kept word for word, read or not"


PAID = Price(prompt=1e6, reply=1e7)  # a text has 5 and 2 tokens: 25 US dollars


def metrics_of(make: Make, study: str, model: Parrot, perturb: str = "redact") -> dict[str, float]:
    cell = make(f"study={study}", f"perturb={perturb}", "level=high", model=model)
    metrics: dict[str, float] = run_of(cell.store, run(cell)).data.metrics
    return metrics


def test_tokens_and_money_are_those_of_each_version_of_the_texts(make: Make) -> None:
    metrics = metrics_of(make, "money", Parrot("paid", paid=PAID))
    for prefix in ("", "clean_"):
        assert metrics[f"{prefix}cost/usd"] == pytest.approx(6 * 25)
        assert (metrics[f"{prefix}tokens/prompt"], metrics[f"{prefix}tokens/reply"]) == (30, 12)
        assert metrics[f"{prefix}seconds/replies"] == pytest.approx(0.6)
    baseline = metrics_of(make, "money", Parrot("paid", paid=PAID), "none")
    assert baseline["cost/usd"] == pytest.approx(6 * 25)
    assert not [name for name in baseline if name.startswith("clean_")], "the baseline has one version"


@pytest.mark.parametrize(("paid", "usd"), [(PAID, None), (FREE, 0.0)], ids=["paid", "free"])
def test_money_is_not_told_where_tokens_were_not_counted(make: Make, paid: Price, usd: float | None) -> None:
    details = (*({} for _ in range(11)), {"usage": "unknown"})  # the last text, a disturbed one
    metrics = metrics_of(make, f"uncounted_{usd}", Parrot(f"uncounted {usd}", paid=paid, details=details))
    assert (metrics.get("cost/usd"), metrics["tokens/unknown"]) == (usd, 1)
    assert metrics["clean_cost/usd"] == (6 * 25 if paid == PAID else 0)
    assert "clean_tokens/unknown" not in metrics


@pytest.mark.parametrize(("batch", "price"), [(True, PAID.times(0.5)), (False, PAID)])
def test_a_reply_costs_what_the_way_costs_that_it_came(make: Make, batch: bool, price: Price) -> None:
    details: tuple[dict[str, object], ...] = ({"batch": "batch_1"}, {}, {})
    metrics = metrics_of(make, f"ways_{batch}", Parrot(f"ways {batch}", paid=price, batch=batch, details=details))
    assert metrics["cost/usd"] == metrics["clean_cost/usd"] == pytest.approx(2 * 12.5 + 4 * 25)


@pytest.mark.parametrize("perturb", ["none", "redact"])
def test_a_run_says_which_models_answered_and_in_which_numbers(make: Make, perturb: str) -> None:
    details: tuple[dict[str, object], ...] = ({"server_model": "b-2"}, {"server_model": "a-1"}, {"server_model": None})
    model = Parrot(f"named {perturb}", details=details, dtype="bfloat16")
    cell = make("study=named", f"perturb={perturb}", "level=high", model=model)
    tags = run_of(cell.store, run(cell)).data.tags
    assert (tags["server_models"], tags["dtype"]) == ("a-1,b-2", "bfloat16")


def test_a_model_without_server_or_numbers_has_no_such_tags(done: tuple[Cell, Record]) -> None:
    cell, record = done
    assert not {"server_models", "dtype"} & set(run_of(cell.store, record).data.tags)


def test_a_lost_call_fails_the_cell_with_the_count_and_keeps_the_other_replies(make: Make) -> None:
    model = Parrot("loser", lost=frozenset({1, 7, 8}))
    cell = make("study=lost", "perturb=redact", "level=high", model=model)
    with pytest.raises(CallError, match=r"3 of 12 texts put to parrot\(loser\) were lost \(gone\)"):
        run(cell)
    found = last(cell.store, cell.name)
    assert found.info.status == "FAILED"
    assert "3 of 12 texts" in found.data.tags["error"]
    assert found.data.metrics == {}, "no score over fewer examples"
    lost = {model.asked[place] for place in model.lost}
    mended = Parrot("loser")
    record = run(make("study=lost", "perturb=redact", "level=high", model=mended))
    assert record.status == study.DONE
    assert set(mended.asked) == lost
    assert len(mended.asked) == 3


def test_an_interrupted_cell_is_killed_and_goes_on_where_it_stopped(make: Make) -> None:
    cell = make("study=interrupted", "perturb=typo", "level=low", model=Parrot("stopped", interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        run(cell)
    assert last(cell.store, cell.name).info.status == "KILLED"
    assert cell.store.finished([study.key(cell, study.asked(cell))]) == {}
    mended = Parrot("stopped")
    assert run(replace(cell, model=mended)).status == study.DONE
    assert len(mended.asked) == 10


def test_a_store_that_refuses_the_numbers_leaves_a_failed_run(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_costs", lambda model, replies: {"tokens/prompt": float("nan")})
    cell = make("study=refused", "perturb=typo", "level=low")
    with pytest.raises(StoreError, match="tokens/prompt"):
        run(cell)
    found = last(cell.store, cell.name)
    assert (found.info.status, found.data.metrics) == ("FAILED", {})


@pytest.fixture(scope="module")
def ten(make: Make) -> tuple[Parrot, dict[tuple[str, str], Record], Store]:
    """The nine cells and the baseline of one model, as a sweep runs them."""
    model = Parrot("counted")
    cells = {pair: make("study=ten", f"perturb={pair[0]}", f"level={pair[1]}", model=model) for pair in CELLS}
    return model, {pair: run(cell) for pair, cell in cells.items()}, cells["none", "low"].store


def test_the_clean_text_is_asked_once_for_ten_cells(ten: tuple[Parrot, dict[tuple[str, str], Record], Store]) -> None:
    model, records, store = ten
    clean = frame_of(store, records["none", "low"].run, "predictions.parquet")["text"]
    counts = Counter(model.asked)
    assert {counts[text] for text in clean} == {1}
    assert set(counts.values()) == {1}, "nor is any other text asked twice"
    assert len(counts) <= 6 * 10


def test_all_cells_see_the_same_examples(ten: tuple[Parrot, dict[tuple[str, str], Record], Store]) -> None:
    _, records, store = ten
    frames = [frame_of(store, record.run, "variants.parquet") for record in records.values()]
    assert len({(*frame["id"], *frame["original"]) for frame in frames}) == 1
    assert len({run_of(store, record).data.tags["data_hash"] for record in records.values()}) == 1
    assert len({record.key for record in records.values()}) == 10


def test_a_baseline_has_scores_but_no_change(ten: tuple[Parrot, dict[tuple[str, str], Record], Store]) -> None:
    _, records, store = ten
    baseline = records["none", "low"]
    data = run_of(store, baseline).data
    assert data.tags["level"] == "none"
    assert not [name for name in data.metrics if name.startswith(("change/", "clean/", "dose/"))]
    assert "category" not in data.tags
    assert baseline.headline
    assert baseline.headline.baseline is None
    frame = frame_of(store, baseline.run, "variants.parquet")
    assert (frame["original"] == frame["disturbed"]).all()


@pytest.mark.parametrize("name", ["typo", "homophone", "redact"])
def test_a_higher_level_contains_the_edits_of_a_lower_one(
    ten: tuple[Parrot, dict[tuple[str, str], Record], Store], name: str
) -> None:
    _, records, store = ten
    frames = [frame_of(store, records[name, level].run, "variants.parquet") for level in ("low", "mid", "high")]
    edits = [[{json.dumps(edit) for edit in json.loads(row)} for row in frame["edits"]] for frame in frames]
    assert all(low < mid < high for low, mid, high in zip(*edits, strict=True))


def key_of(make: Make, *overrides: str) -> str:
    cell = make(*overrides)
    return study.key(cell, study.asked(cell))


def test_a_key_changes_with_what_can_change_the_result_and_with_nothing_else(make: Make) -> None:
    keys = {
        change: key_of(make, *change.split())
        for change in ("seed=0", "seed=1", "level=mid", "perturb=redact", "task=condition")
    }
    assert len(set(keys.values())) == len(keys)
    assert key_of(make, "study=another_name") == key_of(make, "threads=1") == keys["seed=0"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["perturb=redact", "level.rate=1.5"], r"level.rate=1.5: give a fraction"),
        (["perturb=redact", "level.rate=0"], r"level.rate=0.0: give a fraction"),
        (["perturb=redact", "level.rate=much"], r"level.rate='much' is not a number"),
        (
            ["perturb=redact", "level=mid", "~perturb.levels.mid"],
            r"perturb=redact has no level 'mid'; it has low, high",
        ),
    ],
)
def test_a_level_that_makes_no_sense_is_said(make: Make, overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(*overrides)


def test_too_many_shots_are_said_with_both_numbers(make: Make) -> None:
    cell = make("model=llama", "prompt.shots=5000")
    with pytest.raises(ConfigError, match=r"prompt.shots=5000, but the pool for prompts holds \d+ examples"):
        study.asked(cell)


def test_what_became_of_the_cells_is_read_back_from_the_file_of_a_sweep(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new" / "cells.jsonl")
    assert ledger.read() == []
    records = [
        Record("qa · é", "k1", study.DONE, "run", Headline("rougeL", 0.4, 0.5, "decrease", 6)),
        Record("x", "k2", study.FAILED, error="two\nlines"),
    ]
    for record in records:
        ledger.add(record)
    assert ledger.read() == records
    assert [study.exit_code(some) for some in (records, records[:1], [])] == [1, 0, 0]


def test_the_frames_can_be_read_by_pandas_alone(done: tuple[Cell, Record]) -> None:
    cell, record = done
    folder = artifact(cell.store, record.run, "")
    assert len(pd.read_parquet(folder / "predictions.parquet")) == 12
