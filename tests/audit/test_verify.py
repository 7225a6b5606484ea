"""Runs checked again: what is right passes, and every change of a byte, a text, an answer or a number is found."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml
from audited import copied, named, signed, unpacked, with_cell, with_numbers, with_rows
from conftest import Ended

from noisyhealth import manifest
from noisyhealth.audit.bundle import DATASETS, Bundle
from noisyhealth.audit.dataset import built
from noisyhealth.audit.finding import Verdict
from noisyhealth.audit.kept import KeptRun
from noisyhealth.audit.verify import Verifier
from noisyhealth.evidence import PREDICTIONS, VARIANTS
from noisyhealth.models.model import key_of
from noisyhealth.text import tagger

Ask = Callable[..., Ended]
TYPO = "sentiment · majority · typo · high"


@pytest.fixture(scope="module")
def packed(audited: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return unpacked(audited, tmp_path_factory.mktemp("unpacked"))


@pytest.fixture
def run(packed: Bundle, tmp_path: Path) -> KeptRun:
    """A run of the study, free to be changed."""
    return copied(named(packed, TYPO), tmp_path)


def test_a_study_that_is_as_it_was_made_is_the_same(ask: Ask) -> None:
    ended = ask("verify", "demo")
    assert (ended.returncode, ended.stderr) == (0, "")
    last = ended.stdout.splitlines()[-1]
    assert last.startswith("10 runs: 10 the same. Checked: ")
    for counted in ("60 texts", "108 replies", "108 replies in the journal", "tables computed again"):
        assert counted in last


def test_a_run_is_checked_by_its_id_alone(ask: Ask, packed: Bundle) -> None:
    ended = ask("verify", named(packed, TYPO).id, "study=another")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("1 run: 1 the same.")


def test_a_study_that_is_not_there_is_said_to_be_none(ask: Ask) -> None:
    ended = ask("verify", "nobody")
    assert ended.returncode == 2
    assert "'nobody' is no file and no run's id; there is no study 'nobody'" in ended.stderr


def test_a_changed_byte_in_any_file_of_a_run_is_found(packed: Bundle, tmp_path: Path) -> None:
    for name in ("sentiment · majority · none", TYPO, "qa · majority · redact · low"):
        run = copied(named(packed, name), tmp_path)
        assert Verifier().check(run).verdict is Verdict.SAME
        files = sorted(run.folder.iterdir())
        assert len(files) >= 9
        for file in files:
            whole = file.read_bytes()
            for at in (0, len(whole) // 2, len(whole) - 1):
                file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
                found = Verifier().check(run)
                assert found.verdict is Verdict.DIFFERENT, (name, file.name, at)
                assert found.findings[0].what.startswith(file.name), found.findings[0]
            file.write_bytes(whole)


def test_a_lost_and_a_strange_file_are_found(run: KeptRun) -> None:
    (run.folder / "prompt.txt").unlink()
    (run.folder / "more.txt").write_text("more")
    found = [finding.what for finding in Verifier().check(run).findings]
    assert found[:2] == ["more.txt is not one of the files that were kept", "prompt.txt is not there"]


def _turned(run: KeptRun) -> KeptRun:
    other = {"positive": "negative", "negative": "positive"}[run.predictions[2]["target"]]
    return with_cell(run, PREDICTIONS, 2, "target", other)


def _asked_of_another(run: KeptRun) -> KeptRun:
    request = json.dumps({"text": "I am fine", "question": ""})
    key = key_of(run.model["signature"], json.loads(request))
    return with_cell(with_cell(run, PREDICTIONS, 8, "request", request), PREDICTIONS, 8, "reply_key", key)


FORGERIES = {
    "an answer": (lambda run: with_cell(run, PREDICTIONS, 8, "value", "negative"), "its reply is read as"),
    "how right an answer is": (lambda run: with_cell(run, PREDICTIONS, 8, "right", 0.5), "its reply is read as"),
    "a reply": (lambda run: with_cell(run, PREDICTIONS, 8, "reply", "negative"), "the journal's reply is"),
    "a target": (_turned, "its reply is read as"),
    "a key": (lambda run: with_cell(run, PREDICTIONS, 8, "reply_key", "0" * 64), "is not the hash of what was asked"),
    "what was asked": (lambda run: with_cell(run, PREDICTIONS, 8, "request", "{}"), "does not hold it"),
    "a prompt on another text": (_asked_of_another, "what was put to the model does not hold it"),
    "a disturbed text": (lambda run: with_cell(run, VARIANTS, 3, "disturbed", "I am fine"), "its edits give"),
    "a label that is none": (lambda run: with_cell(run, PREDICTIONS, 2, "target", "neutral"), "DataError: "),
    "an original": (lambda run: with_cell(run, VARIANTS, 3, "original", "I am fine"), "its edits do not fit it"),
    "a dose": (lambda run: with_cell(run, VARIANTS, 3, "dose_words", 0.4), "its edits or its dose are others"),
    "no edit": (lambda run: with_cell(run, VARIANTS, 3, "edits", "[]"), "its edits give"),
    "a score": (lambda run: with_numbers(run, "metrics", {"accuracy": 0.99}), "accuracy is 0.99 in metrics.json"),
    "a category": (lambda run: with_numbers(run, "tags", {"category": "increase"}), "tag category is 'increase'"),
    "a hash": (lambda run: with_numbers(run, "tags", {"cell_key": "0" * 32}), "tag cell_key is '0000"),
    "a number too many": (lambda run: with_numbers(run, "metrics", {"bonus": 1.0}), "texts and answers give None"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_change_that_was_signed_anew_is_found_by_what_follows_from_it(
    what: str, run: KeptRun, packed: Bundle
) -> None:
    forge, told = FORGERIES[what]
    found = Verifier(packed.replies).check(forge(run))
    assert found.verdict is Verdict.DIFFERENT
    assert told in found.findings[0].what


def test_a_text_with_an_edit_moved_and_signed_anew_is_not_what_the_seed_draws(run: KeptRun) -> None:
    frame = pd.read_parquet(run.folder / VARIANTS)
    edits = json.loads(frame.at[0, "edits"])
    edits[0]["after"] = "xyzzy"
    start, before = edits[0]["start"], edits[0]["before"]
    original = frame.at[0, "original"]
    rest = json.loads(frame.at[0, "edits"])[0]["after"]
    disturbed = frame.at[0, "disturbed"]
    assert disturbed[start : start + len(rest)] == rest
    assert original[start : start + len(before)] == before
    frame.at[0, "edits"], frame.at[0, "disturbed"] = (
        json.dumps(edits),
        disturbed[:start] + "xyzzy" + disturbed[start + len(rest) :],
    )
    frame.to_parquet(run.folder / VARIANTS)
    found = Verifier().check(signed(run))
    assert found.verdict is Verdict.DIFFERENT
    assert "drawn again it is" in found.findings[0].what


def test_another_seed_in_the_settings_draws_other_texts(run: KeptRun) -> None:
    config = yaml.safe_load((run.folder / "config.yaml").read_text(encoding="utf-8"))
    (run.folder / "config.yaml").write_text(yaml.safe_dump({**config, "seed": 1}, allow_unicode=True), encoding="utf-8")
    found = Verifier().check(signed(run))
    assert found.verdict is Verdict.DIFFERENT
    assert "drawn again it is" in found.findings[0].what


@pytest.mark.parametrize(("part", "name"), [("metrics", "accuracy"), ("tags", "category"), ("params", "rate")])
def test_what_mlflow_has_is_compared_with_what_the_run_wrote_down(part: str, name: str, run: KeptRun) -> None:
    logged = replace(run.logged, **{part: {**getattr(run.logged, part), name: 7}})
    [found] = Verifier().check(replace(run, logged=logged)).findings
    assert found.verdict is Verdict.DIFFERENT
    assert f"{name} is 7 in MLflow" in found.what


@pytest.mark.slow
def test_a_number_changed_in_mlflow_s_own_file_fails_the_study(ask: Ask, audited: Path, packed: Bundle) -> None:
    run = named(packed, TYPO)
    change = "update latest_metrics set value = value + ? where run_uuid = ? and key = 'accuracy'"
    with closing(sqlite3.connect(audited / "mlflow.db")) as db:
        db.execute(change, (0.125, run.id))
        db.commit()
    try:
        ended = ask("verify", "demo")
    finally:
        with closing(sqlite3.connect(audited / "mlflow.db")) as db:
            db.execute(change, (-0.125, run.id))
            db.commit()
    assert ended.returncode == 1
    assert f"DIFFERENT: {TYPO} ({run.id}): metric accuracy is" in ended.stdout
    assert "10 runs: 9 the same, 1 different." in ended.stdout


@pytest.mark.slow
def test_cells_that_are_not_done_are_counted_beside_those_that_were_checked(ask: Ask, audited: Path) -> None:
    change = "update runs set status = ? where name = ?"
    with closing(sqlite3.connect(audited / "mlflow.db")) as db:
        db.execute(change, ("FAILED", TYPO))
        db.commit()
    try:
        ended = ask("verify", "demo")
    finally:
        with closing(sqlite3.connect(audited / "mlflow.db")) as db:
            db.execute(change, ("FINISHED", TYPO))
            db.commit()
    assert "Not checked, since they count nowhere: 1 FAILED." in ended.stdout
    assert "1 of 10 cells are not done, which no check of runs can see: " in ended.stdout
    assert "not done" not in ask("verify", "demo").stdout


@pytest.mark.slow
def test_a_number_changed_in_a_table_of_the_report_fails_the_study(ask: Ask, audited: Path) -> None:
    table = audited / "reports" / "demo" / "scores.csv"
    whole = table.read_text(encoding="utf-8")
    table.write_text(whole.replace("stable", "decrease", 1), encoding="utf-8")
    try:
        ended = ask("verify", "demo")
    finally:
        table.write_text(whole, encoding="utf-8")
    assert ended.returncode == 1
    assert "scores.csv was changed" in ended.stdout
    assert "scores.csv, line 2: the report has" in ended.stdout


def test_a_run_without_a_manifest_cannot_be_checked(run: KeptRun) -> None:
    (run.folder / "manifest.json").unlink()
    [found] = Verifier().check(run).findings
    assert (found.verdict, "manifest.json is not there" in found.what) == (Verdict.UNKNOWN, True)


def test_a_run_that_did_not_finish_cannot_be_checked(run: KeptRun) -> None:
    [found] = Verifier().check(replace(run, logged=replace(run.logged, status="FAILED"))).findings
    assert found.verdict is Verdict.UNKNOWN
    assert "it is FAILED" in found.what


def test_texts_of_another_tagger_are_replayed_and_not_drawn_again(
    run: KeptRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagger, "signature", lambda: "another 1.0")
    [found] = Verifier().check(run).findings
    assert found.verdict is Verdict.UNKNOWN
    assert "they were tagged by" in found.what


def test_code_that_settings_of_a_stranger_name_is_not_run(run: KeptRun, tmp_path: Path) -> None:
    config = yaml.safe_load((run.folder / "config.yaml").read_text(encoding="utf-8"))
    mark = tmp_path / "was_here"
    config["task"]["wording"] = {
        "_target_": "pathlib.Path.touch",
        "_args_": [{"_target_": "pathlib.Path", "_args_": [str(mark)]}],
    }
    (run.folder / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    [found] = Verifier(trusted=False).check(signed(run)).findings
    assert found.verdict is Verdict.UNKNOWN
    assert "pathlib.Path, pathlib.Path.touch" in found.what
    assert not mark.exists()
    Verifier(trusted=True).check(signed(run))
    assert mark.exists()


@pytest.mark.parametrize("target", ["noisyhealth.version.subprocess.run", "noisyhealth.version._run"])
def test_code_that_is_only_reached_through_the_package_is_a_stranger_s_too(target: str, run: KeptRun) -> None:
    config = yaml.safe_load((run.folder / "config.yaml").read_text(encoding="utf-8"))
    config["task"]["wording"] = {"_target_": target, "_args_": [["touch", "was_here"]]}
    (run.folder / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    [found] = Verifier(trusted=False).check(signed(run)).findings
    assert found.verdict is Verdict.UNKNOWN
    assert f"({target})" in found.what


def _checked(run: KeptRun, packed: Bundle) -> list[tuple[Verdict, str]]:
    verifier = Verifier(packed.replies, builds=built(packed.folder / DATASETS))
    return [(finding.verdict, finding.what) for finding in verifier.check(run).findings]


def test_a_run_on_the_dataset_s_test_texts_has_nothing_to_tell(run: KeptRun, packed: Bundle) -> None:
    assert _checked(run, packed) == []


def test_an_example_dropped_everywhere_is_missed(run: KeptRun, packed: Bundle) -> None:
    lost = run.variants[0]["id"]
    for name in (PREDICTIONS, VARIANTS):
        frame = pd.read_parquet(run.folder / name)
        frame[frame["id"] != lost].to_parquet(run.folder / name)
    told = f"text {lost} of the dataset's test texts is not among the run's"
    assert _checked(signed(run), packed)[0] == (Verdict.DIFFERENT, told)


def test_targets_that_were_made_the_answers_are_not_those_of_the_dataset(run: KeptRun, packed: Bundle) -> None:
    def answered(frame: pd.DataFrame) -> None:
        frame["target"] = frame["value"]

    turned = sum(row["target"] != row["value"] for row in run.predictions) // 2
    told = _checked(with_rows(run, PREDICTIONS, answered), packed)[:turned]
    assert turned >= 2
    assert all(verdict is Verdict.DIFFERENT and "the run has ('" in what for verdict, what in told)


def test_a_dataset_that_is_not_here_is_told(run: KeptRun, packed: Bundle) -> None:
    [found] = Verifier(packed.replies, builds=lambda build: None).check(run).findings
    assert found.verdict is Verdict.UNKNOWN
    assert "is not here: whether these were the texts to be tested cannot be told" in found.what


def test_a_reply_that_the_journal_lacks_is_told(run: KeptRun, packed: Bundle) -> None:
    hidden = run.predictions[8]["reply_key"]
    for journal, told in (
        (lambda keys: {}, "12 of 12 replies are not in the journal"),
        (lambda keys: packed.replies([key for key in keys if key != hidden]), "1 of 12 replies are not in the journal"),
    ):
        [found] = Verifier(journal).check(run).findings
        assert (found.verdict, found.what.startswith(told)) == (Verdict.UNKNOWN, True)


def test_settings_that_would_run_code_when_they_are_read_are_not_made(run: KeptRun, tmp_path: Path) -> None:
    config = yaml.safe_load((run.folder / "config.yaml").read_text(encoding="utf-8"))
    mark = tmp_path / "was_here"
    config["task"]["wording"] = "${oc.create:{_target_: os.mkdir, _args_: [" + str(mark) + "]}}"
    (run.folder / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    for trusted in (False, True):
        [found] = Verifier(trusted=trusted).check(signed(run)).findings
        assert found.verdict is Verdict.UNKNOWN
        assert "hold an interpolation" in found.what
    assert not mark.exists()


def test_another_name_of_the_run_or_the_model_is_found(run: KeptRun) -> None:
    [found] = Verifier().check(replace(run, logged=replace(run.logged, name="sentiment · gpt · none"))).findings
    assert (found.verdict, "the run is called 'sentiment · gpt · none'" in found.what) == (Verdict.DIFFERENT, True)
    path = run.folder / "model.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"majority"', '"gpt-4o"'), encoding="utf-8")
    told = [finding.what for finding in Verifier().check(signed(run)).findings]
    assert "model.json says that 'gpt-4o' answered, the settings name 'majority'" in told


def test_what_a_manifest_vouches_for_beside_files_is_compared(run: KeptRun) -> None:
    about = {name: value for name, value in manifest.read(run.folder).items() if name not in ("files", "sha256")}
    digest = manifest.write(run.folder, {**about, "data": "0"})
    tags = {**run.logged.tags, "manifest": digest}
    [found] = Verifier().check(replace(run, logged=replace(run.logged, tags=tags))).findings
    assert (found.verdict, found.what.startswith("data is '0' in manifest.json")) == (Verdict.DIFFERENT, True)


def test_a_byte_of_the_report_s_own_manifest_fails_the_study(ask: Ask, audited: Path) -> None:
    path = audited / "reports" / "demo" / "manifest.json"
    whole = path.read_bytes()
    at = len(whole) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    try:
        ended = ask("verify", "demo")
    finally:
        path.write_bytes(whole)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "manifest.json cannot be trusted" in ended.stdout
    assert "10 runs: 10 the same." in ended.stdout


def test_a_run_whose_files_are_gone_hides_no_other(ask: Ask, audited: Path, packed: Bundle) -> None:
    run = named(packed, TYPO)
    folder = audited / "mlruns" / "demo" / run.id
    folder.rename(audited / "moved")
    try:
        ended = ask("verify", "demo")
    finally:
        (audited / "moved").rename(folder)
    assert (ended.returncode, ended.stderr) == (2, "")
    assert f"CANNOT BE CHECKED: {TYPO} ({run.id}): manifest.json is not there" in ended.stdout
    assert "10 runs: 9 the same, 1 cannot be checked." in ended.stdout
