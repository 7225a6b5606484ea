"""What holds for every source, and the sample texts."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from noisyhealth.errors import DataError
from noisyhealth.sources.repair import REPAIRS
from noisyhealth.sources.sample import Sample
from noisyhealth.sources.source import Source

CONF = Path(__file__).resolve().parents[2] / "conf" / "data"
TASKS = ("sentiment", "condition", "qa")


def chosen(name: str) -> Source:
    made: Source = instantiate(OmegaConf.load(CONF / f"{name}.yaml").source, _convert_="all")
    return made


@pytest.mark.parametrize("task", TASKS)
def test_the_sample_gives_its_texts_as_they_are_written(task: str) -> None:
    lines = (files("noisyhealth.data") / "sample" / f"{task}.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    found = list(Sample().read(task))
    assert [(r.example.id, r.example.text, r.example.target, r.example.question) for r in found] == [
        (row["id"], row["text"], row["target"], row.get("question", "")) for row in rows
    ]
    assert not any(r.reason or r.repairs for r in found)
    assert list(Sample().read(task)) == found


def test_a_task_without_sample_texts_says_at_once_where_else_to_look() -> None:
    with pytest.raises(DataError, match="no sample texts for task 'triage': use data=files or data=hub"):
        Sample().read("triage")


@pytest.mark.parametrize(
    ("name", "licences"),
    [
        ("sample", ["CC0-1.0", "CC0-1.0", "CC0-1.0"]),
        ("files", ["", "", ""]),
        ("hub", ["other (for research and education)", "CC-BY-SA-3.0", "CC-BY-NC-SA-4.0"]),
    ],
)
def test_every_choice_makes_its_source_and_knows_the_licence_of_its_texts(name: str, licences: list[str]) -> None:
    source = chosen(name)
    assert source.name == name
    assert [source.licence(task) for task in TASKS] == licences
    assert source.licence("triage") == ""


@pytest.mark.parametrize("name", ["files", "hub"])
def test_the_configuration_names_every_repair(name: str) -> None:
    assert OmegaConf.load(CONF / f"{name}.yaml").source.repair == list(REPAIRS)
