"""The user's files: what each kind gives, what is counted, what is refused."""

import csv
import json
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.sources.files import Files
from noisyhealth.sources.source import Columns, Read

ROWS = [
    {"text": 'Slept, at last\r\n\n"well" 😩', "mood": "1", "who": "a"},
    {"text": "café — naïve", "mood": "0", "who": "b"},
    {"text": "neither", "mood": "7", "who": "c"},
]
COLUMNS = Columns("text", "mood", group="who", targets={"0": "negative", "1": "positive"})
FREE = Columns("text", "mood")


def put(folder: Path, kind: str) -> Path:
    """Write ROWS as one kind of file and return its path."""
    path = folder / f"rows.{kind.partition(' ')[0]}"
    bom = "\ufeff" if "BOM" in kind else ""
    match kind.partition(" ")[0]:
        case "csv" | "tsv":
            end, separator = "\r\n" if "CRLF" in kind else "\n", "\t" if kind == "tsv" else ","
            with path.open("w", encoding="utf-8", newline="") as file:
                file.write(bom)
                writer = csv.DictWriter(file, list(ROWS[0]), delimiter=separator, lineterminator=end)
                writer.writeheader()
                writer.writerows(ROWS)
        case "jsonl":
            end = "\r\n\r\n" if "CRLF" in kind else "\n"
            lines = [json.dumps(row, ensure_ascii=not bom) for row in ROWS]
            path.write_text(bom + end.join(lines), encoding="utf-8", newline="")
        case "json":
            keyed = {f"k{at}": row for at, row in enumerate(ROWS)}
            path.write_text(bom + json.dumps(keyed if "keyed" in kind else ROWS, indent=1), encoding="utf-8")
        case "parquet":
            moods = [float(row["mood"]) if "float" in kind else int(row["mood"]) for row in ROWS]
            table = [{**row, "mood": mood} for row, mood in zip(ROWS, moods, strict=True)]
            pq.write_table(pa.Table.from_pylist(table), path, row_group_size=2)
    return path


def read(path: Path, columns: Columns = COLUMNS, **settings: Any) -> list[Read]:
    return list(Files({"sentiment": str(path)}, {"sentiment": columns}, **settings).read("sentiment"))


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


KINDS = ["csv", "csv BOM CRLF", "tsv", "jsonl", "jsonl BOM CRLF", "json", "json keyed", "parquet", "parquet float"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_each_kind_gives_its_texts_byte_for_byte_with_the_labels_of_the_task(
    kind: str, tmp_path: Path
) -> None:
    found = read(put(tmp_path, kind))
    assert [(r.example.text, r.example.target, r.example.group, r.reason) for r in found] == [
        (ROWS[0]["text"], "positive", "a", ""),
        (ROWS[1]["text"], "negative", "b", ""),
        (ROWS[2]["text"], "7", "c", "has a target that is not mapped"),
    ]
    assert [r.repairs for r in found] == [("byte order mark",) if "BOM" in kind else (), (), ()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_read_again_gives_the_same_and_its_state_changes_with_its_bytes(kind: str, tmp_path: Path) -> None:
    path = put(tmp_path, kind)
    files = Files({"sentiment": str(path)}, {"sentiment": COLUMNS})
    assert list(files.read("sentiment")) == list(files.read("sentiment"))
    before = files.state("sentiment")
    path.write_bytes(path.read_bytes() + b"\n")
    assert files.state("sentiment") != before


def test_ids_are_those_of_their_column_or_the_hash_of_the_text_whatever_kind_holds_it(tmp_path: Path) -> None:
    assert [r.example.id for r in read(put(tmp_path, "csv"), replace(COLUMNS, id="who"))] == ["a", "b", "c"]
    assert len({tuple(r.example.id for r in read(put(tmp_path, kind))) for kind in KINDS}) == 1


def test_no_repair_changes_an_id(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,mood\n&quot;PLAN:  ok\x00,1\n")
    (mended,), (plain,) = read(path, FREE), read(path, FREE, repair=[])
    assert mended.example.text == '"PLAN:  ok' != plain.example.text
    assert mended.example.id == plain.example.id
    assert (mended.repairs, plain.repairs) == (("entities", "controls"), ())


def test_the_name_of_an_object_in_json_is_its_key_unless_it_has_one(tmp_path: Path) -> None:
    rows = {"21645374": {"text": ["One.", "Two."], "mood": 1}, "2": {"text": "Three.", "mood": True, "key": "own"}}
    found = read(written(tmp_path, "a.json", json.dumps(rows)), replace(FREE, id="key"))
    assert [(r.example.id, r.example.text, r.example.target) for r in found] == [
        ("21645374", "One.\nTwo.", "1"),
        ("own", "Three.", "true"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(4, "4"), (4.0, "4"), (-0.5, "-0.5"), (1e300, "1e+300"), (True, "true"), (False, "false"), ("4.0", "4.0")],
)
def test_numbers_become_text_as_json_writes_them(value: object, text: str, tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", json.dumps({"text": "a", "mood": value}))
    assert read(path, FREE)[0].example.target == text


@pytest.mark.parametrize("value", [None, float("nan"), "", " \t"])
def test_an_empty_cell_is_no_target(value: object, tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", json.dumps([{"text": "a", "mood": value}, {"text": "b", "mood": "1"}]))
    assert [r.reason for r in read(path, FREE)] == ["has no target", ""]


REASONS = [
    ("text,mood,id\nfine,1,1\n ,1,2\n", FREE, "has no text"),
    ("text,mood,id\nfine,1,1\n&nbsp;\x00,1,2\n", FREE, "has no text"),
    ("text,mood,id\nfine,1,1\nbad,,2\n", FREE, "has no target"),
    ("id,mood,text\n1,1,fine\n,,Hello there\n", replace(FREE, id="id"), "has no target"),
    ("text,mood,id\nfine,1,1\nbad,0, \n", replace(FREE, id="id"), "has no id"),
    ("text,mood,id\nfine,1,1\nbad,7,2\n", replace(FREE, targets={"1": "up"}), "has a target that is not mapped"),
]


@pytest.mark.parametrize(("content", "columns", "reason"), REASONS)
def test_a_row_that_cannot_be_used_is_counted_by_its_reason(
    content: str, columns: Columns, reason: str, tmp_path: Path
) -> None:
    assert [r.reason for r in read(written(tmp_path, "a.csv", content), columns)] == ["", reason]


@pytest.mark.parametrize(
    "row",
    ['{"text": "a \\ud83d b", "mood": "1"}', '{"text": "a", "mood": "1\\ude00"}'],
)
def test_half_a_character_is_no_unicode_text_and_a_whole_one_in_two_escapes_is(row: str, tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"text": "\\ud83d\\ude29", "mood": "1"}\n' + row)
    whole, half = read(path, FREE)
    assert (whole.example.text, whole.reason) == ("😩", "")
    assert half.reason == "has characters that are no Unicode text"
    assert str(half.example).encode()


def test_the_text_of_an_unmapped_row_is_mended_like_that_of_its_twin(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,mood,who\nR&amp;R,1,a\nbad,0,b\nR&amp;R,7,c\n")
    first, _, last = read(path)
    assert first.example.text == last.example.text == "R&R"
    assert (last.example.target, last.repairs) == ("7", ("entities",))


def test_labels_are_mapped_as_the_file_has_them_and_answers_are_mended(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,mood\na,R&amp;D\n")
    assert read(path, replace(FREE, targets={"R&amp;D": "up"}))[0].example.target == "up"
    assert read(path, FREE)[0].example.target == "R&D"


def test_crlf_inside_a_text_stays_and_as_a_line_end_is_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", 'text,mood\r\n"one\r\ntwo\rthree\nfour",1\r\n')
    assert [(r.example.text, r.example.target) for r in read(path, FREE)] == [("one\r\ntwo\rthree\nfour", "1")]


def test_a_json_string_may_hold_line_separators_of_unicode(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", json.dumps({"text": "a\u2028b\x85c", "mood": "1"}, ensure_ascii=False))
    assert read(path, FREE)[0].example.text == "a\u2028b\x85c"


def test_a_cell_may_be_longer_than_csv_expects(tmp_path: Path) -> None:
    long = "word " * 60_000
    assert read(written(tmp_path, "a.csv", f"text,mood\n{long},1\n"), FREE)[0].example.text == long


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_reading_holds_a_few_rows_and_not_the_file(kind: str, tmp_path: Path) -> None:
    path, n = tmp_path / f"a.{kind}", 20_000
    texts = [f"{at} " + "x" * 1000 for at in range(n)]
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts, "mood": ["1"] * n}), path)
    elif kind == "csv":
        path.write_text("text,mood\n" + "".join(f"{text},1\n" for text in texts))
    else:
        path.write_text("".join(json.dumps({"text": text, "mood": "1"}) + "\n" for text in texts))
    del texts
    tracemalloc.start()
    assert sum(1 for _ in Files({"qa": str(path)}, {"qa": FREE}).read("qa")) == n
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6  # bytes; the texts are 20 million


def test_a_misspelt_label_in_the_map_is_an_error_that_names_both_when_all_is_read(tmp_path: Path) -> None:
    columns = replace(COLUMNS, targets={"O": "negative", "1": "positive"})
    with pytest.raises(DataError, match=r"targets maps O, which no row .* and not 0, 7, which some have"):
        read(put(tmp_path, "csv"), columns)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("role", ["text", "target", "question", "group", "id"])
def test_a_missing_column_is_an_error_with_file_row_columns_and_setting(role: str, kind: str, tmp_path: Path) -> None:
    path = put(tmp_path, kind)
    message = (
        rf"rows\.{kind}, (row 1|line 2): no column 'absent'; it has text, mood, who: set "
        rf"data\.source\.columns\.sentiment\.{role}"
    )
    with pytest.raises(DataError, match=message):
        read(path, replace(COLUMNS, **{role: "absent"}))


REFUSED: list[tuple[str, str | bytes, str]] = [
    ("a.csv", "", r"a\.csv: the file is empty"),
    ("a.csv", "text,mood\n", "the file holds no text that can be used: it has no rows"),
    ("a.csv", "\n\n", "the file holds no text that can be used: it has no rows"),
    ("a.csv", "text,mood\n ,1\n,\n", "holds no text that can be used: 2 has no text"),
    ("a.csv", "text,mood\na,1\ncafé,1\n".encode("latin-1"), r"a\.csv, line 3: not UTF-8 .*save the file as UTF-8"),
    ("a.csv", "text,mood\na,1\n".encode("utf-16"), r"a\.csv, line 1: not UTF-8"),
    ("a.csv", "text,mood\na,1\n\nb,c,1\n", r"a\.csv, line 4: 3 cells, but the header has 2 columns \(text, mood\)"),
    ("a.csv", 'text,mood\n"a\nb",1\nc\n', r"a\.csv, line 4: 1 cells, but the header has 2 columns"),
    ("a.csv", 'text,mood\na,1\n"b,1\nc,1\nd,1\n', r"a\.csv, line 3: a quote that opens in this row is not closed"),
    ("a.csv", 'text,mood\na,1\n"b,1\nc,1\n"d",1\n', r"a\.csv, line 3: not CSV .*write a quote inside quotes as"),
    ("a.csv", 'text,mood\n"a" b,1\n', r"a\.csv, line 2: not CSV"),
    ("a.csv", "text,mood,text\na,1,b\n", r"a\.csv: the column 'text' stands there 2 times"),
    ("a.tsv", "text\tmood\na\t1\tb\n", r"a\.tsv, line 2: 3 cells"),
    ("a.jsonl", '{"text": "a", "mood": "1"}\n{"text": ', r"a\.jsonl, line 2: not JSON"),
    (
        "a.jsonl",
        '{"text": "a", "mood": "1"}\n[1]\n',
        r"a\.jsonl, line 2: a list, not an object: give one object a line",
    ),
    ("a.jsonl", '[\n{"text": "a", "mood": "1"}\n]', r"a\.jsonl, line 1: not JSON .*whole document in \.json"),
    ("a.jsonl", '{"text": "a", "text": "b", "mood": "1"}\n', r"line 1: not JSON \(the name 'text' stands twice"),
    ("a.jsonl", '{"text": {"a": "b"}, "mood": "1"}\n', r"line 1: the column 'text' holds an object, no text"),
    ("a.jsonl", '{"text": ["a", 1], "mood": "1"}\n', r"'text' holds a list of other things than texts"),
    ("a.jsonl", "[" * 100_000, r"a\.jsonl, line 1: not JSON"),
    ("a.jsonl", b'{"text": "caf\xe9", "mood": "1"}\n', r"a\.jsonl, line 1: not UTF-8"),
    ("a.json", '[\n{"text": "a",\n"mood": }]', r"a\.json, line 3: not JSON"),
    ("a.json", '{"text": "a"}\n{"text": "b"}\n', r"a\.json, line 2: not JSON .* end its name in \.jsonl"),
    ("a.json", '"text"', r"a\.json: a text, not an object: give a list of objects"),
    ("a.json", '{"version": 1, "data": []}', r"a\.json, key 'version': a number, not an object"),
    ("a.json", '[{"text": "a", "mood": "1"}, null]', r"a\.json, row 2: null, not an object"),
    ("a.json", '{"1": {"text": "a"}, "1": {"text": "b"}}', r"a\.json: not JSON .*the name '1' stands twice"),
    ("a.json", "[]", "it has no rows"),
    ("a.json", b'[{"text": "caf\xe9"}]', r"a\.json, line 1: not UTF-8"),
    ("a.parquet", "text,mood\n", r"a\.parquet, after row 0: not Parquet that can be read"),
    ("a.parquet", b"PAR1 cut short", r"a\.parquet, after row 0: not Parquet that can be read"),
    ("a.xlsx", "x", r"a\.xlsx: cannot read '\.xlsx' files; give CSV, TSV, JSONL, JSON or Parquet"),
    ("a", "x", "cannot read '' files"),
]


@pytest.mark.parametrize(("name", "content", "message"), REFUSED)
def test_a_file_that_cannot_be_used_is_an_error_that_says_where_and_what_to_do(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read(written(tmp_path, name, content), FREE)


def test_parquet_that_breaks_off_or_holds_bytes_or_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"text {at}" for at in range(5000)], "mood": ["1"] * 5000}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:50] + b"\xff" * 2000 + whole[2050:])
    with pytest.raises(DataError, match=r"a\.parquet, after row \d+: not Parquet that can be read"):
        read(path, FREE)
    pq.write_table(pa.table({"text": [b"raw"], "mood": ["1"]}), path)
    with pytest.raises(DataError, match=r"a\.parquet, row 1: the column 'text' holds a bytes, no text"):
        read(path, FREE)
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 3, names=["text", "mood", "text"]), path)
    with pytest.raises(DataError, match="the column 'text' stands there 2 times"):
        read(path, FREE)
    pq.write_table(pa.table({"text": [None, "b"], "mood": pa.array([1, None])}), path)
    with pytest.raises(DataError, match="1 has no text, 1 has no target"):
        read(path, FREE)


def test_a_column_may_have_a_point_in_its_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"note.text": ["a"], "mood": ["1"]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", Columns("note.text", "mood"))[0].example.text == "a"


def test_a_missing_file_and_a_task_without_one_name_the_setting_at_once(tmp_path: Path) -> None:
    files = Files({"sentiment": str(tmp_path / "none.csv"), "qa": ""}, {"sentiment": COLUMNS, "qa": COLUMNS})
    with pytest.raises(DataError, match=r"data\.source\.paths\.sentiment=.*none\.csv: no such file"):
        files.read("sentiment")
    for task in ("qa", "condition"):
        with pytest.raises(ConfigError, match=rf"set data\.source\.paths\.{task}=FILE"):
            files.read(task)
    with pytest.raises(ConfigError, match=r"set data\.source\.columns\.qa"):
        Files({"qa": str(put(tmp_path, "csv"))}, {}).read("qa")
    with pytest.raises(ConfigError, match=r"data\.source\.repair has spelling"):
        Files({}, {}, repair=["spelling"])


def test_counts_of_reasons_and_usable_rows_add_up_to_the_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,mood,who\nfine,1,a\nbad,0,b\n ,1,c\nno label,,d\nneither,7,e\nnor,7,f\n")
    assert Counter(r.reason for r in read(path)) == {
        "": 2,
        "has no text": 1,
        "has no target": 1,
        "has a target that is not mapped": 2,
    }
