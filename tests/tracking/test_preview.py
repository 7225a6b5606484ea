import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Study

from noisyhealth.tracking import preview


def answer(name: int, version: str, value: str, right: float, **more: object) -> dict[str, object]:
    row = {"id": f"t{name}", "version": version, "text": f"{version} text", "question": None, "target": "positive"}
    return {**row, "value": value, "outcome": "scored", "right": right, "reply": f"Answer: {value}", **more}


def text(name: int, **more: object) -> dict[str, object]:
    edits = json.dumps([{"before": "pain", "after": "pian"}, {"before": "mild", "after": ""}])
    return {"id": f"t{name}", "original": "mild pain", "disturbed": "pian", "edits": edits, "edited_words": 2} | more


def written(folder: Path, variants: list[dict[str, Any]], predictions: list[dict[str, Any]]) -> dict[str, Any]:
    pq.write_table(pa.Table.from_pylist(variants), folder / "variants.parquet")
    pq.write_table(pa.Table.from_pylist(predictions), folder / "predictions.parquet")
    preview.write(folder)
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in ("variants", "predictions")}


def test_an_answer_stands_beside_what_it_was_on_the_clean_text(tmp_path: Path) -> None:
    rows = [
        *(answer(n, "clean", value, right) for n, (value, right) in enumerate([("positive", 1.0), ("negative", 0.0)])),
        *(answer(n, "disturbed", value, right) for n, (value, right) in enumerate([("negative", 0.0), ("", 0.0)])),
    ]
    table = written(tmp_path, [text(0), text(1)], rows)["predictions"]
    assert [dict(zip(table["columns"], row, strict=True)) for row in table["data"]] == [
        {
            "id": "t0", "target": "positive", "clean_value": "positive", "value": "negative", "flip": "right to wrong",
            "clean_right": "1.000", "right": "0.000", "outcome": "scored", "reply": "Answer: negative",
            "clean_reply": "Answer: positive", "question": "", "text": "disturbed text",
        },
        {
            "id": "t1", "target": "positive", "clean_value": "negative", "value": "", "flip": "wrong to other",
            "clean_right": "0.000", "right": "0.000", "outcome": "scored", "reply": "Answer: ",
            "clean_reply": "Answer: negative", "question": "", "text": "disturbed text",
        },
    ]  # fmt: skip


def test_a_text_stands_beside_its_edits_in_words(tmp_path: Path) -> None:
    table = written(tmp_path, [text(0, dose_words=0.25)], [answer(0, "clean", "positive", 1.0)])["variants"]
    assert dict(zip(table["columns"], table["data"][0], strict=True)) == {
        "id": "t0",
        "edited_words": 2,
        "changes": "pain → pian; mild left out",
        "disturbed": "pian",
        "original": "mild pain",
        "dose_words": "0.250",
    }


def test_what_a_run_does_not_keep_has_no_column(tmp_path: Path) -> None:
    texts = [{key: value for key, value in text(0).items() if key not in ("original", "disturbed", "edits")}]
    kept = [{key: value for key, value in answer(0, version, "a", 1.0).items() if key not in ("text", "reply", "value")}
            for version in ("clean", "disturbed")]  # fmt: skip
    tables = written(tmp_path, texts, kept)
    assert tables["variants"]["columns"] == ["id", "edited_words"]
    assert {"text", "reply", "clean_reply", "value", "clean_value"}.isdisjoint(tables["predictions"]["columns"])


@pytest.mark.parametrize(("n", "rows", "last"), [(200, 200, "t199"), (1200, 201, "1,000 more texts in {}.parquet")])
def test_a_long_table_shows_the_first_texts_and_says_where_the_others_are(
    tmp_path: Path, n: int, rows: int, last: str
) -> None:
    answers = [answer(at, version, "a", 1.0) for version in ("clean", "disturbed") for at in range(n)]
    for name, table in written(tmp_path, [text(at) for at in range(n)], answers).items():
        assert len(table["data"]) == rows
        assert table["data"][-1][0] == last.format(name)
        assert {len(row) for row in table["data"]} == {len(table["columns"])}


def test_a_run_names_its_tables_where_mlflow_looks_for_them(nine: Study) -> None:
    told = {entry["path"]: entry["type"] for entry in json.loads(preview.TAGS["mlflow.loggedArtifacts"])}
    assert told == {"predictions.json": "table", "variants.json": "table"}
    folders = [path.parent for path in (nine.folder / "mlruns" / "noisyhealth").rglob("predictions.json")]
    assert len(folders) == 9
    for folder in folders:
        assert told.keys() <= json.loads((folder / "manifest.json").read_text())["files"].keys()
        assert len(json.loads((folder / "predictions.json").read_text())["data"]) == 6
