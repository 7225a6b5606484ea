"""The table holds every byte, and what is read from it is what was written."""

import json

import pyarrow.parquet as pq
import pytest
from given import REDACT, TYPO, Nouns, design, invented, made, rows, splits

from noisyhealth.dataset.build import build
from noisyhealth.dataset.design import Disturbance
from noisyhealth.dataset.table import FACTS, TABLE, Build
from noisyhealth.records import Example, Variant

ODD = "Pain\r\n\r\n\tcafe\u0301 «naïve»\u2028 头痛 😩👩‍⚕️  felt  worse\x0b and tired today "
NEGATED = "There was no fever and no drug was given to the left arm or the right one all day"


@pytest.fixture(scope="module")
def built() -> Build:
    examples = [*invented(20), Example("odd", ODD, "pain\n", "Why\t?", "p"), Example("negated", NEGATED, "none")]
    return made(examples, REDACT, TYPO)


def test_every_byte_of_an_example_comes_back(built: Build) -> None:
    assert next(e for e in built.examples if e.id == "odd") == Example("odd", ODD, "pain\n", "Why\t?", "p")
    assert [e.id for e in built.examples] == [*(e.id for e in invented(20)), "odd", "negated"]


def test_another_reader_of_the_folder_finds_the_same(built: Build) -> None:
    again = Build(built.folder)
    assert again == built
    assert (again.hash, again.attrition, again.examples) == (built.hash, built.attrition, built.examples)
    assert (again.test, again.training) == (built.test, built.training)


def test_test_and_training_are_the_rows_of_their_splits(built: Build) -> None:
    found = splits(built)
    assert {row["id"]: (row["split"], row["encoder_split"]) for row in rows(built)} == found
    assert len(built.test) == 3
    assert not {e.id for e in built.test} & {e.id for part in vars_of(built) for e in part}
    assert {e.id for e in built.training.train}.isdisjoint(e.id for e in built.training.validation)


def vars_of(built: Build) -> list[tuple[Example, ...]]:
    return [built.training.prompt, built.training.train, built.training.validation]


@pytest.mark.parametrize("name", ["redact", "typo"])
@pytest.mark.parametrize("level", ["low", "high"])
def test_the_variants_of_a_level_are_those_of_the_test_examples(name: str, level: str, built: Build) -> None:
    found = built.variants(name, level)
    assert list(found) == [e.id for e in built.test]
    by_id = {row["id"]: row for row in rows(built)}
    for example in built.test:
        variant, row = found[example.id], by_id[example.id]
        assert isinstance(variant, Variant)
        assert (variant.id, variant.text) == (example.id, row[f"{name}_{level}"])
        assert [{**e._asdict(), "flags": list(e.flags)} for e in variant.edits] == row[f"{name}_{level}_edits"]
        assert variant.dose.total_words == row["words"]
        assert variant.dose.words == len(variant.edits) / row["words"]
        assert all(isinstance(e.flags, tuple) for e in variant.edits)


def test_flags_of_what_was_touched_are_kept(built: Build) -> None:
    [row] = [row for row in rows(built) if row["id"] == "negated"]
    flags = {flag for edit in row["redact_high_edits"] + row["typo_high_edits"] for flag in edit["flags"]}
    assert flags <= {"negation", "number", "laterality", "drug"}
    assert flags


def test_a_row_has_the_example_its_splits_its_counts_and_three_columns_a_level(built: Build) -> None:
    names = [
        f"{name}_{level}{part}"
        for name in ("redact", "typo")
        for level in ("low", "high")
        for part in ("", "_edits", "_dose")
    ]
    head = ["id", "text", "target", "question", "group", "split", "encoder_split", "words", "valid_words"]
    assert pq.read_schema(built.folder / TABLE).names == [*head, *names]
    [words] = Nouns().tag([ODD])
    assert [(row["words"], row["valid_words"]) for row in rows(built) if row["id"] == "odd"] == [
        (len(words), sum(word.valid for word in words))
    ]


def test_the_metadata_say_what_was_asked_without_the_numbers_that_came_out(built: Build) -> None:
    told = json.loads(pq.read_schema(built.folder / TABLE).metadata[b"noisyhealth"])
    assert told["perturbations"] == {
        "redact": {
            "levels": {"low": 0.1, "high": 0.3},
            "unit": "words",
            "nested": True,
            "field": "text",
            "words": "all",
        },
        "typo": {"levels": {"low": 0.1, "high": 0.3}, "unit": "words", "nested": True, "field": "text", "words": "all"},
    }
    assert told.items() <= json.loads((built.folder / FACTS).read_text(encoding="utf-8")).items()


def test_a_folder_holds_the_table_and_the_facts_and_nothing_else(built: Build) -> None:
    assert sorted(path.name for path in built.folder.iterdir()) == sorted([TABLE, FACTS])


def test_a_baseline_disturbs_nothing() -> None:
    found = made(invented(14), Disturbance("none", {"none": 0.0}, True, None))
    for row in rows(found):
        assert (row["none_none"], row["none_none_edits"]) == (row["text"], [])
        assert row["none_none_dose"]["words"] == row["none_none_dose"]["edit_distance"] == 0


def test_more_texts_than_are_held_at_once_stand_in_the_order_of_the_source(tmp_path: object) -> None:
    examples = invented(600)
    found = build(design(examples), tmp_path)  # type: ignore[arg-type]
    assert found.examples == tuple(examples)
    assert pq.ParquetFile(found.folder / TABLE).num_row_groups == 3
