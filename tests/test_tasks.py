"""The tasks as configured: how each reads, and which settings it turns down."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from noisyhealth.errors import ConfigError
from noisyhealth.records import Outcome, Reply
from noisyhealth.tasks.classification import Classification
from noisyhealth.text.prompt import Wording

CONF = Path(__file__).parents[1] / "conf"
WORDING = Wording("", "", "{text}")


def reply(text: str) -> Reply:
    return Reply("1", text, "stop", 0, 0, 0.0)


def task(name: str, *overrides: str) -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return instantiate(compose("config", [f"task={name}", *overrides]).task, _convert_="all")


@pytest.mark.parametrize("name", ["sentiment", "condition", "qa"])
def test_every_task_reads_leniently_until_told_otherwise(name: str) -> None:
    assert yaml.safe_load((CONF / "task" / f"{name}.yaml").read_text())["reading"] == "lenient"
    assert (task(name).reading, task(name, "task.reading=strict").reading) == ("lenient", "strict")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sentiment", "The writer feels positively about it.", "positive"),
        ("condition", "The abstract is about neoplasms.", "neoplasm"),
        ("condition", "This is a digestive system disease.", "digestive"),
        ("qa", "warfarin", "warfarin"),
    ],
)
def test_prose_is_an_answer_for_the_lenient_reading_alone(name: str, text: str, value: str) -> None:
    assert task(name).read(reply(text)).value == value
    assert task(name, "task.reading=strict").read(reply(text)).outcome == Outcome.UNPARSED


@pytest.mark.parametrize("name", ["sentiment", "condition", "qa"])
def test_a_reading_there_is_not_is_turned_down_with_its_value(name: str) -> None:
    with pytest.raises(Exception, match=f"task.reading='loose' of task {name}: give lenient or strict") as caught:
        task(name, "task.reading=loose")
    assert isinstance(caught.value.__cause__, ConfigError)


def test_a_form_of_two_labels_is_turned_down() -> None:
    with pytest.raises(ConfigError, match="'good' stands for positive and fine; give it once"):
        Classification("mine", ("positive", "fine"), WORDING, {"positive": ["good"], "fine": ["good"]})


def test_forms_of_what_is_no_label_do_nothing() -> None:
    mine = Classification("mine", ("yes", "no"), WORDING, {"positive": ["good"]})
    assert (mine.read(reply("good")).outcome, mine.read(reply("Answer: yes")).value) == (Outcome.UNPARSED, "yes")


@pytest.mark.parametrize(
    ("name", "order", "said"),
    [
        ("sentiment", "given", "How does the writer feel, positive or negative?"),
        ("sentiment", "reversed", "How does the writer feel, negative or positive?"),
        ("condition", "given", "Which condition is the abstract about: neoplasm, digestive or cardiovascular?"),
        ("condition", "reversed", "Which condition is the abstract about: cardiovascular, digestive or neoplasm?"),
    ],
)
def test_the_instruction_names_the_labels_in_their_order_and_tables_keep_theirs(
    name: str, order: str, said: str
) -> None:
    asked = task(name, f"task.label_order={order}")
    assert asked.wording.instruction == said
    assert asked.labels == task(name).labels


def test_an_instruction_that_names_the_labels_itself_cannot_have_them_reversed() -> None:
    assert Classification("own", ("a", "b"), Wording("", "a or b?", "")).wording.instruction == "a or b?"
    with pytest.raises(ConfigError, match=r"its instruction 'a or b\?' names the labels itself: say \{labels\}"):
        Classification("own", ("a", "b"), Wording("", "a or b?", ""), label_order="reversed")
