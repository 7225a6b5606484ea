"""What differs between two runs, in words."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from audited import copied, named, unpacked, with_cell
from conftest import Ended

from noisyhealth.audit.bundle import Bundle
from noisyhealth.audit.diff import differences
from noisyhealth.evidence import PREDICTIONS

Ask = Callable[..., Ended]
LOW, HIGH = "sentiment · majority · typo · low", "sentiment · majority · typo · high"


@pytest.fixture(scope="module")
def packed(audited: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return unpacked(audited, tmp_path_factory.mktemp("unpacked"))


def test_a_run_differs_from_itself_in_nothing(packed: Bundle) -> None:
    run = named(packed, HIGH)
    assert {aspect: lines for aspect, lines in differences(run, run) if lines} == {}


def test_two_levels_differ_in_settings_texts_and_dose_alone(packed: Bundle) -> None:
    found = dict(differences(named(packed, LOW), named(packed, HIGH)))
    assert 'level.name: "low" → "high"' in found["settings"]
    assert "level.rate: 0.1 → 0.5" in found["settings"]
    [told] = found["data"]
    assert told.startswith("6 of 6 texts were disturbed in another way: ")
    assert [aspect for aspect, lines in found.items() if not lines] == [
        "prompt", "weights and decoding", "code", "machine and packages", "answers"
    ]  # fmt: skip
    assert any(line.startswith("dose/words: 0.") for line in found["numbers"])


def test_examples_with_another_answer_are_named(packed: Bundle, tmp_path: Path) -> None:
    run = named(packed, HIGH)
    row = run.predictions[7]
    other = with_cell(copied(run, tmp_path), PREDICTIONS, 7, "value", "purple")
    found = dict(differences(run, replace(other, id="other")))
    assert found["answers"][0] == "1 of 6 disturbed texts got another answer:"
    assert found["answers"][1].startswith(f'  {row["id"]}: "{row["value"]}" (')
    assert '→ "purple" (' in found["answers"][1]


def test_the_command_says_it_of_two_runs_of_a_store(ask: Ask, packed: Bundle) -> None:
    ended = ask("diff", named(packed, LOW).id, named(packed, HIGH).id)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert 'level.name: "low" → "high"' in ended.stdout
    assert "code: the same" in ended.stdout
    wrong = ask("diff", "one", "two")
    assert wrong.returncode == 2
    assert "'one' is no run's id" in wrong.stderr
