"""From texts to variants: who is read, who is kept, who is in which split."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisyhealth import dataset
from noisyhealth.dataset import Build, Design, Disturbance, Split
from noisyhealth.errors import ConfigError, DataError
from noisyhealth.perturb.engine import replay
from noisyhealth.perturb.homophone import Homophone
from noisyhealth.perturb.redact import Redact
from noisyhealth.perturb.typo import Typo
from noisyhealth.records import Edit, Example
from noisyhealth.sources import Columns, Files, LeftOut, Sample, Source
from noisyhealth.text.homophones import Table
from noisyhealth.text.tagger import Tagger

TASKS = ("sentiment", "condition", "qa")
VALID = frozenset({"ADJ", "ADV", "VERB", "NOUN", "PROPN", "AUX"})
STUDY = (
    Disturbance("typo", {"low": 0.1, "mid": 0.3, "high": 0.5}, True, Typo()),
    Disturbance("homophone", {"low": 0.1, "mid": 0.2, "high": 0.3}, True, Homophone(Table())),
    Disturbance("redact", {"low": 0.1, "mid": 0.3, "high": 0.5}, True, Redact()),
)
SPLIT = Split(prompt=0.2, test=20, train=0.8)


def design(task: str, source: Source | None = None, **changes: object) -> Design:
    whole = Design(task, source or Sample(), STUDY, SPLIT, Tagger(VALID), 0, {"task": task})
    return replace(whole, **changes)  # type: ignore[arg-type]


@dataclass
class Given:
    """Texts of a test; counts how often they are read."""

    examples: Sequence[Example]
    name: str = "given"
    reads: list[str] = field(default_factory=list)

    def read(self, task: str) -> list[Example]:
        self.reads.append(task)
        return list(self.examples)

    def state(self, task: str) -> str:
        return ""


def written(n: int) -> list[Example]:
    """Return the first sample notes, each with a group of its own."""
    return [replace(e, group=f"patient {e.id}") for e in Sample().read("qa")[:n]]


FEW = Split(prompt=0.2, test=3, train=0.8)
REDACT = (Disturbance("redact", {"low": 0.1, "high": 0.3}, True, Redact()),)


def small(examples: Sequence[Example], **changes: object) -> Build:
    chosen: dict[str, object] = {"split": FEW, "disturbances": REDACT, **changes}
    return dataset.build(design("qa", Given(examples), **chosen))


@pytest.fixture(scope="module")
def built() -> dict[str, Build]:
    return {task: dataset.build(design(task)) for task in TASKS}


@pytest.mark.parametrize("task", TASKS)
def test_the_counts_of_what_became_of_each_text_add_up(task: str, built: dict[str, Build]) -> None:
    counts = dict(built[task].attrition)
    assert counts.pop("read") == len(Sample().read(task)) == sum(counts.values())
    assert counts["kept"] == len(built[task].examples)
    assert all(reason == "kept" or reason.startswith("cannot reach ") for reason in counts)


@pytest.mark.parametrize(("task", "least"), [("sentiment", 0.5), ("condition", 0.5), ("qa", 0.5)])
def test_at_least_half_of_the_sample_texts_are_kept(task: str, least: float, built: dict[str, Build]) -> None:
    assert built[task].attrition["kept"] >= least * built[task].attrition["read"]


@pytest.mark.parametrize("task", TASKS)
def test_splits_are_disjoint_and_their_shares_are_right(task: str, built: dict[str, Build]) -> None:
    build = built[task]
    n = len(build.examples)
    assert Counter(build.generative.values()) == {
        "prompt": round(n * 0.2),
        "test": 20,
        "validation": n - round(n * 0.2) - 20,
    }
    trained = round((n - 20) * 0.8)
    assert Counter(build.encoder.values()) == {"test": 20, "train": trained, "validation": n - 20 - trained}
    assert {e.id for e in build.examples} == set(build.generative) == set(build.encoder)


@pytest.mark.parametrize("task", TASKS)
def test_every_model_is_tested_on_the_same_examples_and_learns_from_none_of_them(
    task: str, built: dict[str, Build]
) -> None:
    build = built[task]
    tested = {e.id for e in build.test}
    assert tested == {i for i, split in build.encoder.items() if split == "test"}
    training = build.training
    assert not tested & {e.id for e in (*training.prompt, *training.train, *training.validation)}
    assert not {e.id for e in training.train} & {e.id for e in training.validation}


@pytest.mark.parametrize("task", TASKS)
def test_no_text_stands_in_two_splits(task: str, built: dict[str, Build]) -> None:
    texts = [e.text for e in built[task].examples]
    assert len(set(texts)) == len(texts)


def test_no_note_stands_in_two_splits() -> None:
    notes = written(14)
    more = [replace(e, id=f"{e.id} again", text=f"{e.text} Nothing more.", question="What else?") for e in notes]
    groups = [e.group for e in small([*notes, *more]).examples]
    assert len(set(groups)) == len(groups) == 14


@pytest.mark.parametrize("task", TASKS)
def test_every_kept_text_has_a_variant_at_every_level(task: str, built: dict[str, Build]) -> None:
    build = built[task]
    assert set(build.variants) == {(d.name, level) for d in STUDY for level in d.levels}
    assert all(list(of) == [e.id for e in build.examples] for of in build.variants.values())


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("disturbance", STUDY, ids=lambda d: d.name)
def test_every_variant_has_exactly_its_dose_and_replays(
    task: str, disturbance: Disturbance, built: dict[str, Build]
) -> None:
    for example in built[task].examples:
        words = sum(any(char.isalnum() for char in chunk) for chunk in example.text.split())
        lower: set[Edit] = set()
        for level, rate in disturbance.levels.items():
            variant = built[task].variants[disturbance.name, level][example.id]
            asked = int(words * Fraction(str(rate)) + Fraction(1, 2))
            assert (variant.words, len(variant.edits)) == (words, asked)
            assert variant.text == replay(example.text, variant.edits) != example.text
            assert {e.pos for e in variant.edits} <= VALID
            assert not any(char.isdigit() for e in variant.edits for char in e.before)
            assert lower < set(variant.edits)
            lower = set(variant.edits)


def test_levels_that_do_not_nest_are_drawn_anew() -> None:
    free = (replace(REDACT[0], nested=False),)
    nested, drawn = small(written(14)), small(written(14), disturbances=free)

    def contained(build: Build) -> int:
        high = build.variants["redact", "high"]
        return sum(set(low.edits) < set(high[i].edits) for i, low in build.variants["redact", "low"].items())

    assert contained(nested) == 14
    assert contained(drawn) < 3


def test_a_text_comes_out_the_same_whatever_texts_stand_beside_it() -> None:
    forth, back = small(written(14)), small(written(20)[::-1])
    for key, variants in forth.variants.items():
        assert {i: back.variants[key][i] for i in variants} == dict(variants)


def test_the_order_of_the_texts_does_not_change_the_splits() -> None:
    forth, back = small(written(14)), small(written(14)[::-1])
    assert (forth.generative, forth.encoder) == (back.generative, back.encoder)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_another_seed_gives_other_splits_and_other_texts(seed: int) -> None:
    one, other = small(written(14), seed=seed), small(written(14), seed=seed + 1)
    assert one == small(written(14), seed=seed)
    assert one.generative != other.generative
    assert one.variants != other.variants
    assert one.hash != other.hash


def test_a_second_load_reads_the_kept_folder_and_equals_the_first(tmp_path: Path) -> None:
    source = Given(written(14))
    whole = design("qa", source, split=FEW)
    first = dataset.load(whole, str(tmp_path))
    second = dataset.load(replace(whole), str(tmp_path))
    assert source.reads == ["qa"]
    assert first == second == dataset.build(whole)
    assert list(first.variants) == list(second.variants)


def test_a_build_that_was_interrupted_is_made_again(tmp_path: Path) -> None:
    whole = design("qa", Given(written(14)), split=FEW, disturbances=REDACT)
    part = tmp_path / "datasets" / f"qa-{whole.hash}.part"
    part.mkdir(parents=True)
    (part / "examples.parquet").write_text("half")
    assert len(dataset.load(whole, str(tmp_path)).examples) == 14
    assert not part.exists()


def test_every_byte_of_a_text_comes_back_from_the_kept_folder(tmp_path: Path) -> None:
    odd = "Pain\r\n\r\n\tcafe\u0301 «naïve»\u2028 头痛 😩👩‍⚕️  felt  worse\x0b and tired today "
    examples = [*written(14), Example("odd", odd, "pain\n", "Why\t?", "")]
    made = dataset.load(design("qa", Given(examples), split=FEW, disturbances=REDACT), str(tmp_path))
    assert next(e for e in made.examples if e.id == "odd") == examples[-1]


@pytest.mark.parametrize(
    "settings", [{"task": "qa", "seed": 1}, {"task": "qa", "keep": {"typo": {"levels": {"low": 0.2}}}}, {}]
)
def test_the_hash_changes_with_a_setting(settings: dict[str, object]) -> None:
    assert design("qa", settings=settings).hash != design("qa").hash
    assert design("qa", settings=settings).hash == design("qa", settings=dict(reversed(settings.items()))).hash


def test_the_hash_changes_with_the_users_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    files = Files({"qa": str(path)}, {"qa": Columns("text", "target")})
    path.write_text('{"text": "one", "target": "a"}\n')
    first = design("qa", files).hash
    path.write_text('{"text": "two", "target": "a"}\n')
    assert design("qa", files).hash != first


def test_texts_with_two_answers_and_repeated_texts_are_left_out_and_counted() -> None:
    notes = written(16)
    twins = [replace(notes[0], id="twin", target="another answer", group="")]
    repeats = [replace(notes[1], id="again"), replace(notes[2], id="and again", group="")]
    asked_again = [replace(notes[3], id="second question", text=notes[4].text + " more", group=notes[3].group)]
    build = small([*notes, *twins, *repeats, *asked_again])
    assert build.attrition == {
        "read": 20,
        "contradicts its twin": 2,
        "repeats another text": 2,
        "is of a group already used": 1,
        "kept": 15,
    }
    assert {e.id for e in build.examples} == {e.id for e in notes[1:]}


def test_two_questions_on_one_text_are_no_contradiction_but_only_the_first_is_used() -> None:
    notes = written(14)
    build = small([*notes, replace(notes[0], id="other", question="Another?", target="else", group="")])
    assert build.attrition == {"read": 15, "repeats another text": 1, "kept": 14}


def test_texts_that_cannot_reach_a_level_are_left_out_and_counted_by_the_first_level() -> None:
    short = [Example("s", "Pain again", "t"), Example("n", "12/80 7 8 9 10 11 12", "t"), Example("e", "😩😩", "t")]
    build = small([*written(14), *short])
    assert build.attrition == {"read": 17, "cannot reach redact low": 3, "kept": 14}


@pytest.mark.parametrize(
    ("examples", "split", "message"),
    [
        (written(3), Split(0.2, 3, 0.8), r"'qa': 3 kept texts are too few .* lower data.split.test"),
        (written(1), FEW, "1 kept texts are too few"),
        (written(10), Split(0.2, 8, 0.8), "10 kept texts are too few"),
        (written(10), Split(0.01, 3, 0.8), "10 kept texts are too few for data.split.prompt=0.01"),
        (
            [Example("1", "Pain", "t"), Example("2", "Ache", "t")],
            FEW,
            "none of 2 texts reaches every level: .*redact low",
        ),
        ([], FEW, "none of 0 texts"),
    ],
)
def test_too_few_texts_is_an_error_that_says_what_to_do(examples: list[Example], split: Split, message: str) -> None:
    with pytest.raises(DataError, match=message):
        small(examples, split=split)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((0.0, 3, 0.8), "data.split.prompt=0.0"),
        ((1.2, 3, 0.8), "data.split.prompt=1.2"),
        ((0.2, 0, 0.8), "data.split.test=0"),
        ((0.2, -20, 0.8), "data.split.test=-20"),
        ((0.2, 3, 1.0), "data.split.train=1.0"),
    ],
)
def test_a_split_that_is_none_is_refused(split: tuple[float, int, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Split(*split)


def test_another_draw_changes_the_texts_and_not_the_splits() -> None:
    notes = written(14)
    first, second = (
        small(notes),
        dataset.build(replace(design("qa", Given(notes), split=FEW, disturbances=REDACT), draw=1)),
    )
    assert (first.hash, first.generative) == (second.hash, second.generative)
    assert first.variants != second.variants


def test_an_id_that_stands_for_two_texts_is_an_error() -> None:
    notes = written(14)
    with pytest.raises(DataError, match=f"the id '{notes[0].id}' stands for 2 texts"):
        small([*notes, Example(notes[0].id, "Another text altogether", "t")])


def test_a_baseline_under_keep_disturbs_nothing() -> None:
    build = small(written(14), disturbances=(Disturbance("none", {"low": 0.0}, True, None),))
    assert all(build.variants["none", "low"][e.id].text == e.text for e in build.examples)


ROWS = [
    {"text": 'Slept, at last\n\n"well" 😩', "mood": "1", "who": "a"},
    {"text": "café — naïve", "mood": "0", "who": "b"},
    {"text": "neither", "mood": "7", "who": "c"},
]
COLUMNS = Columns("text", "mood", group="who", targets={"0": "negative", "1": "positive"})


def put(folder: Path, kind: str) -> str:
    """Write ROWS as one kind of file and return its path."""
    path = folder / f"rows.{kind.partition(' ')[0]}"
    match kind:
        case "csv with BOM and CRLF" | "csv" | "tsv":
            bom, end = ("\ufeff", "\r\n") if "BOM" in kind else ("", "\n")
            with path.open("w", encoding="utf-8", newline="") as file:
                file.write(bom)
                writer = csv.DictWriter(
                    file, list(ROWS[0]), delimiter="\t" if kind == "tsv" else ",", lineterminator=end
                )
                writer.writeheader()
                writer.writerows(ROWS)
        case "jsonl" | "jsonl with BOM and blank lines":
            bom, end = ("\ufeff", "\r\n\r\n") if "BOM" in kind else ("", "\n")
            lines = [json.dumps(row, ensure_ascii="BOM" in kind) for row in ROWS]
            path.write_text(bom + end.join(lines), encoding="utf-8", newline="")
        case "parquet":
            pq.write_table(pa.Table.from_pylist([{**row, "mood": int(row["mood"])} for row in ROWS]), path)
    return str(path)


def read(path: str, columns: Columns = COLUMNS) -> list[Example]:
    rows = Files({"sentiment": path}, {"sentiment": columns}).read("sentiment")
    return [row for row in rows if isinstance(row, Example)]


@pytest.mark.parametrize(
    "kind", ["csv", "csv with BOM and CRLF", "tsv", "jsonl", "jsonl with BOM and blank lines", "parquet"]
)
def test_a_file_of_each_kind_gives_its_texts_byte_for_byte_with_the_labels_of_the_task(
    kind: str, tmp_path: Path
) -> None:
    found = read(put(tmp_path, kind))
    assert [(e.text, e.target, e.group) for e in found] == [
        (ROWS[0]["text"], "positive", "a"),
        (ROWS[1]["text"], "negative", "b"),
    ]
    assert len({e.id for e in found}) == 2


def test_a_json_string_may_hold_line_separators_of_unicode(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "a\u2028b\x85c", "mood": "1", "who": ""}, ensure_ascii=False), encoding="utf-8")
    assert [e.text for e in read(str(path))] == ["a\u2028b\x85c"]


def test_an_id_column_names_the_examples_and_without_one_their_text_does(tmp_path: Path) -> None:
    path = put(tmp_path, "csv")
    assert [e.id for e in read(path, replace(COLUMNS, id="who"))] == ["a", "b"]
    assert [e.id for e in read(path)] == [e.id for e in read(put(tmp_path, "parquet"))]


def test_rows_without_a_text_a_target_or_a_mapped_label_are_counted_by_reason(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,mood,who\nfine,1,a\nbad,0,b\n ,1,c\nno label,,d\nneither,7,e\nnor this,7,f\n")
    rows = Files({"sentiment": str(path)}, {"sentiment": COLUMNS}).read("sentiment")
    assert Counter(row.reason for row in rows if isinstance(row, LeftOut)) == {
        "has no text": 1,
        "has no target": 1,
        "has a target that is not mapped": 2,
    }
    attrition = small([*written(14), *rows]).attrition
    assert attrition["read"] == 20
    assert attrition["has a target that is not mapped"] == 2


def test_a_misspelt_label_in_the_map_is_an_error_that_names_both(tmp_path: Path) -> None:
    columns = replace(COLUMNS, targets={"O": "negative", "1": "positive"})
    with pytest.raises(DataError, match=r"targets maps O, which no row .* and not 0, 7, which some have"):
        read(put(tmp_path, "csv"), columns)


@pytest.mark.parametrize("column", ["text", "target", "question", "group", "id"])
def test_a_missing_column_is_an_error_with_file_row_and_columns(column: str, tmp_path: Path) -> None:
    path = put(tmp_path, "csv")
    columns = replace(COLUMNS, **{column: "question" if column == "question" else "absent"})
    with pytest.raises(DataError, match=r"rows\.csv, row 1: no column '(absent|question)'; it has text, mood, who"):
        read(path, columns)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.jsonl", b'{"text": "a", "mood": "1", "who": ""}\n{"text": ', r"rows\.jsonl, line 2: not JSON"),
        ("rows.csv", b"text,mood,who\n", "the file holds no text"),
        ("rows.csv", b"text,mood,who\n ,1,a\n", "the file holds no text"),
        ("rows.csv", b"text,mood,who\nneither,7,a\n", "targets maps 0, 1, which no row .* and not 7, which some have"),
        ("rows.csv", "text,mood,who\ncafé,1,a\n".encode("latin-1"), r"rows\.csv: not UTF-8 .* save the file as UTF-8"),
        ("rows.xlsx", b"x", r"rows\.xlsx: cannot read '\.xlsx' files; give CSV, TSV, JSONL or Parquet"),
        ("rows", b"x", "cannot read '' files"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_it(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(str(tmp_path / name))


def test_a_missing_file_and_a_task_without_one_name_the_setting(tmp_path: Path) -> None:
    files = Files({"sentiment": str(tmp_path / "none.csv"), "qa": ""}, {"sentiment": COLUMNS, "qa": COLUMNS})
    with pytest.raises(DataError, match=r"data\.source\.paths\.sentiment=.*none\.csv: no such file"):
        files.read("sentiment")
    for task in ("qa", "condition"):
        with pytest.raises(ConfigError, match=rf"set data\.source\.paths\.{task}=FILE"):
            files.read(task)


def test_a_task_without_sample_texts_says_where_else_to_look() -> None:
    with pytest.raises(DataError, match="no sample texts for task 'triage': use data=files or data=hub"):
        Sample().read("triage")
