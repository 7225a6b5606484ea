"""A cell with a mitigation: what is asked, what it costs, what its run holds. In process, on a model that counts."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mitigated_cells import PRICE, Reader, run
from omegaconf import DictConfig, OmegaConf

from noisyhealth import calls, experiment, plan, settings, study
from noisyhealth.cell import Cell
from noisyhealth.errors import BudgetError, ConfigError
from noisyhealth.tracking.budget import Budget
from noisyhealth.tracking.journal import Journal

Make = Callable[..., Cell]
MITIGATIONS = ("spelling", "vote", "detect")


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path, configured: Callable[..., DictConfig]) -> Make:
    """Make cells on six sample texts with typing errors; `cache`: a folder of the test's own with the shared builds."""
    folder = tmp_path_factory.mktemp("mitigated")
    fixed = (f"tracking.uri=sqlite:///{folder}/mlflow.db", f"tracking.artifacts={folder}/mlruns", "data.split.test=6")

    def made(*overrides: str, model: Reader | None = None, cache: Path = folder) -> Cell:
        if not (cache / "datasets").exists():
            (shared_cache / "datasets").mkdir(exist_ok=True)
            (cache / "datasets").symlink_to(shared_cache / "datasets")
        cell = settings.cell(configured(*fixed, f"cache={cache}", "model=majority", "level=mid", *overrides))
        return replace(cell, model=model or Reader())

    return made


@pytest.fixture(scope="module", params=MITIGATIONS)
def done(request: pytest.FixtureRequest, make: Make) -> tuple[Cell, Any, Path]:
    cell = make(f"mitigate={request.param}", "study=done")
    record = run(cell)
    found = cell.store.client.get_run(record.run)
    return cell, found, Path(cell.store.client.download_artifacts(record.run, ""))


def test_without_a_mitigation_nothing_is_another(make: Make) -> None:
    cell = make()
    asked = study.asked(cell)
    assert cell.name == "sentiment · reader(reader) · typo · mid"
    assert asked.mitigated is None
    assert [query.text for query in asked.disturbed] == [variant.text for variant in asked.variants]
    assert "mitigate" not in experiment.design_tags(cell)
    assert not any(name.startswith("mitigate") for name in experiment.params(cell))


def test_a_configuration_from_before_there_were_mitigations_is_one_without(make: Make) -> None:
    kept = {name: value for name, value in make().resolved.items() if name != "mitigate"}
    assert settings.cell(OmegaConf.create(kept)).mitigation is None


def test_cells_with_other_mitigations_are_other_cells_by_name_and_key(make: Make) -> None:
    given = [(), *((f"mitigate={name}",) for name in MITIGATIONS), ("mitigate=vote", "mitigate.copies=3")]
    given.append(("mitigate=detect", "mitigate.false_alarms=0.2"))
    cells = [make(*one) for one in given]
    assert len({study.key(cell, study.asked(cell)) for cell in cells}) == len(cells)
    assert [cell.name.rpartition(" · ")[2] for cell in cells[:4]] == ["mid", *(f"mitigate={n}" for n in MITIGATIONS)]


def test_a_name_says_once_what_a_sweep_chose(configured: Callable[..., DictConfig], tmp_path: Path) -> None:
    cfg = configured("model=majority", "mitigate=vote", f"tracking.uri=sqlite:///{tmp_path}/mlflow.db")
    cell = settings.cell(cfg, ablation="mitigate=vote mitigate.copies=5")
    assert cell.name == "sentiment · majority · typo · low · mitigate=vote mitigate.copies=5"


def test_clean_and_disturbed_texts_are_treated_alike(make: Make) -> None:
    for name in ("spelling", "vote"):
        cell = make(f"mitigate={name}")
        asked = study.asked(cell)
        assert asked.mitigated
        for version, came in (("clean", asked.examples), ("disturbed", asked.variants)):
            copies = getattr(asked.mitigated, version)
            queries = getattr(asked, version)
            assert [query.text for query in copies.came] == [one.text for one in came]
            assert [query.text for query in queries] == [copy.text for made in copies.asked for copy in made]
    assert len(asked.disturbed) == 5 * 6


def test_the_baseline_is_mitigated_too(make: Make) -> None:
    cell = make("mitigate=vote", "perturb=none", "study=baseline")
    metrics = cell.store.client.get_run(run(cell).run).data.metrics
    assert (metrics["n"], metrics["calls"], metrics["vote/copies"]) == (6, 30, 30)
    assert not any(name.startswith("clean") for name in metrics)


def test_with_perturb_field_question_the_question_is_repaired_and_the_note_is_not(make: Make) -> None:
    cell = make("task=qa", "weights.meaning=null", "mitigate=spelling", "perturb.field=question")
    asked = study.asked(cell)
    assert asked.mitigated
    assert [query.text for query in asked.disturbed] == [example.text for example in asked.examples]
    changed = [one for [one] in asked.mitigated.disturbed.asked if one.edits]
    assert changed
    assert {one.text for one in changed} <= {query.question for query in asked.disturbed}


def test_a_run_holds_every_copy_that_was_asked_with_its_edits_reply_and_which_counts(
    done: tuple[Cell, Any, Path],
) -> None:
    cell, found, folder = done
    asked = study.asked(cell)
    rows = pd.read_parquet(folder / "calls.parquet")
    texts = pd.read_parquet(folder / "predictions.parquet")
    assert list(rows["text"]) == [query.text for query in (*asked.clean, *asked.disturbed)]
    assert list(rows["reply_key"]) == [*asked.clean_keys, *asked.disturbed_keys]
    assert len(texts) == 12
    counting = rows[rows["counts"]]
    assert list(counting["id"]) == list(texts["id"])
    for name in ("reply", "reply_key", "value", "outcome", "request"):
        assert list(counting[name]) == list(texts[name]), name
    variants = pd.read_parquet(folder / "variants.parquet")
    assert list(texts["text"]) == [*variants["original"], *variants["disturbed"]], "texts as they came in"
    assert found.data.tags["mitigate"] == found.data.params["mitigate.name"] == cell.mitigation.name  # type: ignore[union-attr]


def test_its_scores_are_those_of_the_answers_that_count_and_its_costs_those_of_all_calls(
    done: tuple[Cell, Any, Path],
) -> None:
    _, found, folder = done
    metrics, rows = found.data.metrics, pd.read_parquet(folder / "calls.parquet")
    texts = pd.read_parquet(folder / "predictions.parquet")
    for prefix, version, score in (("", "disturbed", "accuracy"), ("clean_", "clean", "clean/accuracy")):
        paid = rows[rows["version"] == version].drop_duplicates("reply_key")
        assert metrics[score] == pytest.approx(texts[texts["version"] == version]["right"].mean())
        assert metrics[f"{prefix}calls"] == len(paid)
        assert metrics[f"{prefix}tokens/prompt"] == 7 * len(paid)
        assert metrics[f"{prefix}cost/usd"] == pytest.approx(len(paid) * PRICE.usd(7, 2))
    assert metrics["n"] == 6


def test_a_detector_changes_no_answer_and_asks_nothing_again(make: Make, tmp_path: Path) -> None:
    plain, flagged = Reader(), Reader()
    one = make("study=flag", model=plain, cache=tmp_path)
    other = make("study=flag", "mitigate=detect", model=flagged, cache=tmp_path)
    first, second = (cell.store.client.get_run(run(cell).run).data.metrics for cell in (one, other))
    assert len(plain.asked) == 12
    assert flagged.asked == []
    own = {name: value for name, value in second.items() if "detect/" in name or name.endswith("calls")}
    assert {name: v for name, v in second.items() if name not in own and not name.startswith("seconds/")} == {
        name: v for name, v in first.items() if not name.startswith("seconds/")
    }
    assert own["detect/n"] == own["clean_detect/n"] == 6


def test_a_plan_counts_the_calls_of_every_copy(make: Make, tmp_path: Path) -> None:
    cells = [make(f"mitigate={name}", cache=tmp_path) for name in ("none", *MITIGATIONS)]
    asked = [study.asked(cell) for cell in cells]
    distinct = {key for what in asked for key in (*what.clean_keys, *what.disturbed_keys)}
    [line] = plan.lines(cells, asked, Journal(tmp_path / "journal.sqlite"))
    assert (line.cells, line.calls, line.known) == (4, len(distinct), 0)
    assert line.calls >= 12 + 60
    vote = plan.lines(cells[2:3], asked[2:3], Journal(tmp_path / "journal.sqlite"))[0]
    assert vote.calls == 60


def test_a_budget_stops_within_the_copies_and_the_next_run_pays_for_what_is_left_alone(
    make: Make, tmp_path: Path
) -> None:
    model = Reader()
    cell = make("study=budget", "mitigate=vote", model=model, cache=tmp_path)
    asked = study.asked(cell)
    with pytest.raises(BudgetError, match="43 of 60 texts are not asked yet"):
        experiment.run(cell, asked, "k1", budget=Budget(tmp_path / "small.sqlite", calls=17))
    assert len(model.asked) == 17
    budget = Budget(tmp_path / "large.sqlite", calls=43)
    experiment.run(cell, asked, "k2", budget=budget)
    assert len(model.asked) == len(set(model.asked)) == 60
    assert budget.spent() == (43, pytest.approx(43 * PRICE.usd(7, 2)))


def test_copies_are_asked_ahead_in_one_batch_over_all_cells_and_never_twice(make: Make, tmp_path: Path) -> None:
    model = Reader(batch=True)
    cells = [make("study=ahead", f"mitigate={n}", model=model, cache=tmp_path) for n in ("none", *MITIGATIONS)]
    asked = [study.asked(cell) for cell in cells]
    given = calls.ask_ahead(cells, asked, Budget(tmp_path / "budget.sqlite"))
    distinct = {key for what in asked for key in (*what.clean_keys, *what.disturbed_keys)}
    assert (given, len(model.asked)) == ({}, len(distinct))
    for cell, what in zip(cells, asked, strict=True):
        experiment.run(cell, what, study.key(cell, what), given=given)
    assert len(model.asked) == len(distinct)


class Vanishing:
    """A user's own, which makes nothing of a text."""

    name = "vanishing"

    def __init__(self, made: object) -> None:
        self.made = made

    def learn(self, texts: object) -> dict[str, list[float]]:
        return {}

    def ask(self, inputs: list[Any]) -> list[Any]:
        return [self.made for _ in inputs]


def test_a_mitigation_that_makes_no_copy_is_an_error_that_names_it_and_the_text(make: Make) -> None:
    cell = replace(make(), mitigation=Vanishing(()))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"mitigate=vanishing asks \[\] in place of text .*: it must make a copy"):
        study.asked(cell)


def test_metrics_have_names_and_values_that_mlflow_takes(done: tuple[Cell, Any, Path]) -> None:
    _, found, folder = done
    kept = json.loads((folder / "metrics.json").read_text())["metrics"]
    assert kept.keys() == found.data.metrics.keys()
    assert all(map(math.isfinite, kept.values()))
