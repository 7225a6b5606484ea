"""verify of cells with a mitigation: what was asked in place of the texts, and which answers count, is made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from audited import copied, signed, unpacked, with_cell, with_numbers
from conftest import asked, execute
from omegaconf import DictConfig

from noisyhealth import experiment, settings, study
from noisyhealth.audit import diff
from noisyhealth.audit.bundle import Bundle
from noisyhealth.audit.dataset import built
from noisyhealth.audit.finding import Verdict
from noisyhealth.audit.kept import KeptRun, Logged
from noisyhealth.audit.verify import Verifier
from noisyhealth.evidence import CALLS, LEARNED, PREDICTIONS
from noisyhealth.tracking.seal import MARK

pytestmark = pytest.mark.slow

GRID = ("experiment=mitigations", "model=majority", "perturb=none,typo", "hydra.sweeper.params.level=mid")


@pytest.fixture(scope="session")
def mitigated(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A folder with the study "demo" of eight cells, and its archive out/demo.zip."""
    folder = tmp_path_factory.mktemp("mitigated")
    ended = execute(folder, shared_cache, "run.py", *GRID, "data.split.test=6", "study=demo")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    packed = asked(folder, shared_cache, "bundle", "demo", "--to", "out")
    assert packed.returncode == 0, packed.stderr
    return folder


@pytest.fixture(scope="session")
def packed(mitigated: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return unpacked(mitigated, tmp_path_factory.mktemp("unpacked"))


@pytest.fixture
def of(packed: Bundle, tmp_path: Path) -> Callable[[str], KeptRun]:
    """Return a copy of the run with a mitigation on texts with typing errors."""
    found = {
        run.logged.tags.get("mitigate", "none"): run for run in packed.runs() if run.logged.tags["perturb"] == "typo"
    }
    return lambda name: copied(found[name], tmp_path)


def checked(run: KeptRun, packed: Bundle) -> Any:
    return Verifier(packed.replies, builds=built(packed.folder / "datasets")).check(run)


def test_a_study_with_mitigations_and_its_archive_are_found_the_same(
    mitigated: Path, shared_cache: Path, packed: Bundle
) -> None:
    ended = asked(mitigated, shared_cache, "verify", "demo")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "8 runs: 8 the same" in ended.stdout
    assert {checked(run, packed).verdict for run in packed.runs()} == {Verdict.SAME}


def test_the_sweep_names_its_cells_and_runs_each_once(packed: Bundle) -> None:
    names = sorted(run.logged.name for run in packed.runs())
    place = "sentiment · majority · "
    chosen = ("detect", "none", "spelling", "vote")
    assert names == sorted(f"{place}{p} · mitigate={m}" for p in ("none", "typo · mid") for m in chosen)
    assert len({run.logged.tags["cell_key"] for run in packed.runs()}) == 8


def test_diff_says_that_texts_were_asked_in_other_words_and_by_what_setting(of: Callable[[str], KeptRun]) -> None:
    plain, repaired, flagged = map(of, ("none", "spelling", "detect"))
    found = dict(diff.differences(plain, repaired))
    assert 'mitigate.name: "none" → "spelling"' in found["settings"]
    assert found["data"] == [], "the texts as they came in are the same"
    assert any(line.startswith("6 of 6 disturbed texts were asked in other words") for line in found["prompt"])
    assert dict(diff.differences(plain, flagged))["prompt"] == []


def _edits(run: KeptRun) -> KeptRun:
    edits = json.loads(run.calls[6]["edits"])
    return with_cell(run, CALLS, 6, "edits", json.dumps([{**edits[0], "flags": ["drug"]}, *edits[1:]]))


def _learned(run: KeptRun) -> KeptRun:
    (run.folder / LEARNED).write_text(json.dumps({"risk": [0.5]}))
    return signed(run)


def _facts(run: KeptRun, **changed: float) -> KeptRun:
    return with_cell(run, CALLS, 6, "facts", json.dumps({**json.loads(run.calls[6]["facts"]), **changed}))


FORGERIES: Mapping[str, tuple[str, Callable[[KeptRun], KeptRun], str]] = {
    "a copy's text": ("spelling", lambda run: with_cell(run, CALLS, 6, "text", "I am fine"), "does not hold it"),
    "a copy's edits": ("spelling", _edits, "was asked in its place, the mitigation makes"),
    "a count of typing errors undone": ("spelling", lambda run: _facts(run, undone=99), "its facts are"),
    "a risk": ("detect", lambda run: _facts(run, risk=0.99), "its facts are"),
    "what was learned": ("detect", _learned, "the mitigation learned {'risk': [0.5]}, the validation texts give"),
    "a reply": ("vote", lambda run: with_cell(run, CALLS, 31, "reply", "negative"), "the journal's reply is"),
    "a copy's answer": (
        "vote",
        lambda run: with_cell(run, CALLS, 31, "value", "perhaps"),
        "copy 1: its reply is read as",
    ),
    "which copy counts": (
        "vote",
        lambda run: with_cell(run, CALLS, 30, "counts", False),
        "copy 0: its reply is read as",
    ),
    "the request of an answer": (
        "vote",
        lambda run: with_cell(run, PREDICTIONS, 6, "request", run.calls[31]["request"]),
        "is not that of the copy that counts, number 0",
    ),
    "a metric": ("vote", lambda run: with_numbers(run, "metrics", {"vote/agreement": 0.5}), "vote/agreement is 0.5"),
    "the count of calls": ("vote", lambda run: with_numbers(run, "metrics", {"calls": 6.0}), "calls is 6.0"),
    "the tag": ("detect", lambda run: with_numbers(run, "tags", {"mitigate": "vote"}), "tag mitigate is 'vote'"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_change_that_was_signed_anew_is_found(what: str, of: Callable[[str], KeptRun], packed: Bundle) -> None:
    name, forge, told = FORGERIES[what]
    found = checked(forge(of(name)), packed)
    assert found.verdict is Verdict.DIFFERENT
    assert any(told in finding.what for finding in found.findings), [finding.what for finding in found.findings]


def test_where_the_dataset_is_not_here_what_was_learned_cannot_be_checked(
    of: Callable[[str], KeptRun], packed: Bundle, tmp_path: Path
) -> None:
    for builds in (None, built(tmp_path / "nothing")):
        found = Verifier(packed.replies, builds=builds).check(of("detect"))
        shutil.rmtree(found.run and tmp_path / found.run)
        assert found.verdict is Verdict.UNKNOWN
        told = [finding.what for finding in found.findings]
        assert told[-1].startswith("what the mitigation learned is not learned again: dataset ")
        assert len(told) == (1 if builds is None else 2)


@pytest.mark.parametrize("name", ["spelling", "vote", "detect"])
def test_a_run_without_texts_has_its_numbers_checked_from_counts_and_labels(
    name: str, tmp_path: Path, shared_cache: Path, configured: Callable[..., DictConfig]
) -> None:
    places = (f"tracking.uri=sqlite:///{tmp_path}/mlflow.db", f"tracking.artifacts={tmp_path}/mlruns")
    given = (*places, f"cache={shared_cache}", "data.split.test=6", "tracking.keep_text=false", f"mitigate={name}")
    cell = settings.cell(configured("model=majority", "level=mid", *given))
    what = study.asked(cell)
    record = experiment.run(cell, what, study.key(cell, what))
    folder = Path(cell.store.client.download_artifacts(record.run, ""))
    run = KeptRun(record.run, folder, Logged.of(cell.store.client.get_run(record.run)))
    assert all(row[part].startswith(MARK) for row in run.calls for part in ("text", "request", "reply"))
    assert not any(edit["before"] or edit["after"] for row in run.calls for edit in json.loads(row["edits"]))
    verifier = Verifier(builds=built(shared_cache / "datasets"))
    found = verifier.check(run)
    assert (found.verdict, len(found.findings)) == (Verdict.UNKNOWN, 1), found.findings
    assert found.findings[0].what.startswith("texts were not kept")
    assert found.counts["numbers"] > 30
    forged = with_numbers(copied(run, tmp_path / "forged"), "metrics", {"accuracy": 0.123})
    assert verifier.check(forged).verdict is Verdict.DIFFERENT
