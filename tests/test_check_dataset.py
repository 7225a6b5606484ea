"""The checker passes a table made right by hand and names each fault put into it."""

import importlib.util
import json
import re
import sys
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/check_dataset.py"
spec = importlib.util.spec_from_file_location("check_dataset", SCRIPT)
check_dataset = importlib.util.module_from_spec(spec)
sys.modules["check_dataset"] = check_dataset
spec.loader.exec_module(check_dataset)

ASKED = {
    "typo": {"levels": {"low": 0.1, "high": 0.2}, "unit": "words", "nested": True, "field": "text"},
    "homophone": {"levels": {"low": 0.1, "high": 0.2}, "unit": "valid_words", "nested": True, "field": "text"},
    "redact": {"levels": {"low": 0.1, "high": 0.2}, "unit": "words", "nested": True, "field": "text"},
}
COLUMNS = [f"{name}_{level}" for name, asked in ASKED.items() for level in asked["levels"]]
EDIT = pa.struct(
    {
        "start": pa.int32(),
        "before": pa.string(),
        "after": pa.string(),
        "op": pa.string(),
        "pos": pa.string(),
        "medical": pa.bool_(),
        "flags": pa.list_(pa.string()),
        "word": pa.int32(),
    }
)
DOSE = pa.struct(
    {
        "words": pa.float64(),
        "valid_words": pa.float64(),
        "characters": pa.float64(),
        "edit_distance": pa.int32(),
        "medical": pa.float64(),
    }
)
TEXTS = {
    "id": pa.string(),
    "text": pa.string(),
    "target": pa.string(),
    "question": pa.string(),
    "group": pa.string(),
    "split": pa.string(),
    "encoder_split": pa.string(),
    "words": pa.int32(),
    "valid_words": pa.int32(),
}

SICK = "The patient felt sick and took her pills at home today"
DOCTORS = (
    "Doctors WROTE that the pain was worse after 5 mg of aspirin at 8:30 on 3 May 2020 😀 @nurse #flu see www.who.int "
    "or a@b.org"
)
COUSIN = "My cousin Ελένη was ill,tired"
# Per text: the edits as before>after, how many of them are low's, their summed distances at low and high.
MADE = [
    {
        "row": ("a", SICK, "yes", None, "g1", "prompt", "train", 11, 8),
        "typo": ("patient>aptinet sick>sikc", 1, (2, 3)),
        "homophone": ("pills>peals sick>sic", 1, (2, 3)),
        "redact": ("patient_> _today>", 1, (8, 14)),
    },
    {
        "row": ("b", DOCTORS, "no", None, "", "validation", "validation", 24, 10),
        "typo": ("Doctors>Dcotosr WROTE>WROET pain>apin worse>wosre after>aftre", 2, (3, 6)),
        "homophone": ("WROTE>ROTE pain>pane", 1, (1, 3)),
        "redact": ("pain_> Doctors_> worse_> after_> aspirin_>", 2, (13, 33)),
    },
    {
        "row": ("c", COUSIN, "no", None, "g3", "test", "test", 6, 5),
        "typo": ("Ελένη>Ελνέη", 1, (1, 1)),
        "homophone": ("ill>eel", 1, (2, 2)),
        "redact": ("cousin_>", 1, (7, 7)),
    },
]


def made(before_after, text, kind):
    before, after = before_after.replace("_", " ").split(">")
    start = text.index(before)
    return {
        "start": start,
        "before": before,
        "after": after,
        "op": "near" if kind == "homophone" else "swap",
        "pos": "NOUN",
        "medical": before.strip() == "pain",
        "flags": [],
        "word": len(re.findall(r"[ ,](?=\w|@|#)", text[: start + 1 + before.startswith(" ")])),
    }


def right_rows():
    """Return the right table: the numbers of `MADE` are counted by hand."""
    rows = []
    for text in MADE:
        row = dict(zip(TEXTS, text["row"], strict=True))
        for kind in ASKED:
            written, few, distances = text[kind]
            edits = [made(each, row["text"], kind) for each in written.split()]
            for level, many, distance in zip(("low", "high"), (few, len(edits)), distances, strict=True):
                kept = sorted(edits[:many], key=lambda edit: edit["start"])
                variant = row["text"]
                for edit in kept:
                    variant = variant.replace(edit["before"], edit["after"], 1)
                row[f"{kind}_{level}"] = variant
                row[f"{kind}_{level}_edits"] = deepcopy(kept)
                row[f"{kind}_{level}_dose"] = {
                    "words": many / row["words"],
                    "valid_words": many / row["valid_words"],
                    "characters": distance / len(row["text"]),
                    "edit_distance": distance,
                    "medical": sum(edit["medical"] for edit in kept) / many,
                }
        rows.append(row)
    return rows


def write(path, rows, asked=ASKED, drop=(), metadata=True):
    fields = dict(TEXTS)
    for name, one in asked.items():
        for level in one["levels"]:
            fields |= {f"{name}_{level}": pa.string()}
            fields |= {f"{name}_{level}_edits": pa.list_(EDIT), f"{name}_{level}_dose": DOSE}
    schema = pa.schema({name: kind for name, kind in fields.items() if name not in drop})
    if metadata:
        schema = schema.with_metadata({b"noisyhealth": json.dumps({"perturbations": asked})})
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


def faulty(report):
    """Return the names of the checks that found a fault."""
    return {
        line[6:].split(": ")[0]
        for line in re.sub(r"(untouched|typo|homophone|redact|dose): ", r"\1 ", report).splitlines()
        if line.startswith("FAULT")
    }


def run(path, capsys):
    code = check_dataset.main([str(path)])
    report = capsys.readouterr().out
    return code, faulty(report), report


def test_a_right_table_has_no_fault(tmp_path, capsys):
    code, faults, report = run(write(tmp_path / "t.parquet", right_rows()), capsys)
    assert (code, faults) == (0, set()), report
    assert report.splitlines()[-1] == "faults=0 texts=3 edits=32"
    assert "looked at nothing" in report  # no spelled-out units in these texts
    assert "number of edits is the quota: 3 texts, 32 edits, 0 faults" in report


@pytest.mark.parametrize(("words", "ill"), [("medical", False), ("others", True)])
def test_an_edit_of_a_word_that_was_not_asked_for_is_a_fault(tmp_path, capsys, words, ill):
    rows, asked = right_rows(), {**ASKED, "typo": ASKED["typo"] | {"words": words}}
    for row in rows:
        for level in ("low", "high"):
            for each in row[f"typo_{level}_edits"]:
                each["medical"] = words == "medical"
            row[f"typo_{level}_dose"]["medical"] = float(words == "medical")
    assert run(write(tmp_path / "right.parquet", rows, asked), capsys)[:2] == (0, set())
    rows[0]["typo_high_edits"][0]["medical"] = ill
    code, faults, _ = run(write(tmp_path / "wrong.parquet", rows, asked), capsys)
    assert (code, faults) == (1, {"only medical words, or only others", "dose medical", "levels nest"} & faults)
    assert "only medical words, or only others" in faults


def edit(row, column, at=0, **values):
    row[f"{column}_edits"][at] |= values


def swap(row, column, old, new):
    """Change an edit's `after` and the variant with it."""
    one = next(edit for edit in row[f"{column}_edits"] if edit["after"] == old)
    text, length = row["text"], 0
    one["after"] = new
    out = []
    for each in row[f"{column}_edits"]:
        out += [text[length : each["start"]], each["after"]]
        length = each["start"] + len(each["before"])
    row[column] = "".join([*out, text[length:]])


def redo(row, column, edits, distance=None):
    """Put other edits in place, as before>after, with the variant and the dose that belong to them."""
    row[f"{column}_edits"] = [
        {**made(each, row["text"], column.split("_")[0]), **more}
        for each, more in ((e, {}) if isinstance(e, str) else e for e in edits)
    ]
    row[f"{column}_edits"].sort(key=lambda each: each["start"])
    first = row[f"{column}_edits"][0]
    swap(row, column, first["after"], first["after"])
    dose, count = row[f"{column}_dose"], len(edits)
    dose |= {"words": count / row["words"], "valid_words": count / row["valid_words"]}
    dose["medical"] = sum(each["medical"] for each in row[f"{column}_edits"]) / count
    if distance is not None:
        dose |= {"edit_distance": distance, "characters": distance / len(row["text"])}


def dose(row, column, **values):
    row[f"{column}_dose"] |= values


def twin(rows, **values):
    rows.append(deepcopy(rows[0]) | {"id": "twin", "group": ""} | values)


FAULTS = {
    "an id twice": (lambda r: r[1].update(id="a"), {"ids are unique"}),
    "more words than there are": (
        lambda r: r[0].update(words=12),
        {"words agree with own count of text", "dose words"},
    ),
    "more valid words than words": (
        lambda r: r[2].update(valid_words=7),
        {"valid words are among the words", "dose valid_words"},
    ),
    "an unknown split": (lambda r: r[0].update(split="dev"), {"splits have known names"}),
    "test in one split only": (lambda r: r[2].update(encoder_split="train"), {"test is the same in both splits"}),
    "a group in two splits": (
        lambda r: r[1].update(group="g3"),
        {"no group in two values of split", "no group in two values of encoder_split"},
    ),
    "a group in two encoder splits": (
        lambda r: twin(r, text=SICK + ".", group="g1", encoder_split="validation"),
        {
            "no group in two values of encoder_split",
            "no text without case and marks in two values of encoder_split",
            "edits replay to the variant",
            "dose characters",
        },
    ),
    "a text in two splits": (
        lambda r: twin(r, split="validation"),
        {"no text in two values of split", "no text without case and marks in two values of split"},
    ),
    "a text in two encoder splits": (
        lambda r: twin(r, encoder_split="validation"),
        {"no text in two values of encoder_split", "no text without case and marks in two values of encoder_split"},
    ),
    "a text in other case in two splits": (
        lambda r: r.append(
            deepcopy(r[2])
            | {"id": "d", "group": "", "text": "MY" + COUSIN[2:], "split": "prompt", "encoder_split": "train"}
        ),
        {
            "no text without case and marks in two values of split",
            "no text without case and marks in two values of encoder_split",
            "edits replay to the variant",
        },
    ),
    "a null variant": (lambda r: r[0].update(typo_high=None), {"nothing is null"}),
    "a null in an edit": (lambda r: edit(r[0], "typo_high", pos=None), {"nothing is null"}),
    "a null dose": (lambda r: r[0].update(typo_high_dose=None), {"nothing is null"}),
    "one edit too few": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet"], 2),
        {"number of edits is the quota"},
    ),
    "before that is not there": (
        lambda r: [edit(r[2], f"redact_{level}", before="Cousin ") for level in ("low", "high")],
        {"before stands in the original"},
    ),
    "edits out of order": (lambda r: r[0]["typo_high_edits"].reverse(), {"edits are sorted and apart"}),
    "edits that overlap": (
        lambda r: redo(r[0], "redact_high", ["patient_>", "_felt>"], 13),
        {"edits are sorted and apart", "redact no new blanks"},
    ),
    "a character changed outside the edits": (
        lambda r: r[0].update(typo_low=r[0]["typo_low"].replace("home", "hone")),
        {"edits replay to the variant"},
    ),
    "a character lost at the end": (
        lambda r: r[0].update(typo_low=r[0]["typo_low"][:-1]),
        {"edits replay to the variant"},
    ),
    "an edit that changes nothing": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet", "sick>sick"], 2),
        {"edits change something", "typo distance fits the word"},
    ),
    "an edit of two words": (
        lambda r: redo(r[0], "redact_high", ["patient_>", "her_pills_>"], 18),
        {"an edit lies in one word"},
    ),
    "a redaction that takes a comma": (
        lambda r: [redo(r[2], f"redact_{level}", [",tired>"], 6) for level in ("low", "high")],
        {"an edit lies in one word"},
    ),
    "a redaction that takes two blanks": (
        lambda r: redo(r[0], "redact_high", ["patient_>", "_home_>"], 14),
        {"an edit lies in one word"},
    ),
    "a typing error that takes a blank": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet", "sick_>sikc"], 4),
        {"an edit lies in one word"},
    ),
    "one `word` twice": (lambda r: edit(r[0], "typo_high", 1, word=1), {"no word is edited twice"}),
    "two edits in one word": (
        lambda r: redo(r[0], "typo_high", ["pat>apt", ("ient>inet", {"word": 2})], 2),
        {"no word is edited twice", "typo distance fits the word", "levels nest"},
    ),
    "word numbers that fall": (lambda r: edit(r[0], "typo_high", 1, word=0), {"word numbers follow the text"}),
    "an edit that high has not": (
        lambda r: redo(r[0], "typo_high", ["home>hoem", "sick>sikc"], 2),
        {"levels nest"},
    ),
    "another error in high": (
        lambda r: redo(r[0], "typo_high", ["patient>paitnet", "sick>sikc"], 3),
        {"levels nest"},
    ),
    "a function word": (lambda r: edit(r[0], "redact_low", pos="DET"), {"pos is a content word's"}),
    **{
        f"a touched {kind}": (
            lambda r, before=before, length=length: redo(r[1], "redact_low", ["pain_>", before], length),
            {f"untouched {kind}", "levels nest"},
        )
        for kind, before, length in [
            ("numbers with units", "mg_>", 8),
            ("times", "8:30_>", 10),
            ("dates", "May_>", 9),
            ("URLs", "who>", 8),
            ("@names", "nurse>", 10),
            ("#tags", "flu>", 8),
        ]
    },
    "a touched e-mail": (
        lambda r: redo(r[1], "redact_low", ["pain_>", "b.org>"], 10),
        {"untouched e-mails", "levels nest"},
    ),
    "a lost emoji": (
        lambda r: r[1].update(typo_low=r[1]["typo_low"].replace("😀", "x")),
        {"untouched emoji", "edits replay to the variant"},
    ),
    "an e-mail changed outside the edits": (
        lambda r: r[1].update(typo_low=r[1]["typo_low"].replace("a@b.org", "a@c.org")),
        {"untouched e-mails", "edits replay to the variant"},
    ),
    "a typing error too small": (
        lambda r: [
            redo(r[0], "typo_low", ["patient>patinet"], 1),
            redo(r[0], "typo_high", ["patient>patinet", "sick>sikc"], 2),
        ],
        {"typo distance fits the word"},
    ),
    "a typing error too large": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet", "sick>zzzk"], 5),
        {"typo distance fits the word"},
    ),
    "a typing error of case alone": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet", "sick>sicK"], 2),
        {"typo distance fits the word", "typo capitals kept"},
    ),
    "a typing error that leaves nothing": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet", "sick>"], 6),
        {"typo distance fits the word", "typo something is left"},
    ),
    "a lower word with a capital": (
        lambda r: redo(r[0], "typo_high", ["patient>aptinet", "sick>Sikc"], 3),
        {"typo capitals kept"},
    ),
    "an upper word in lower case": (
        lambda r: swap(r[1], "typo_high", "WROET", "WRoET"),
        {"typo capitals kept", "levels nest"},
    ),
    "a capital moved": (lambda r: swap(r[1], "typo_high", "Dcotosr", "dCotosr"), {"typo capitals kept", "levels nest"}),
    "a Greek letter typed in Latin": (
        lambda r: [swap(r[2], f"typo_{level}", "Ελνέη", "Ελέvη") for level in ("low", "high")],
        {"typo letters not Latin kept"},
    ),
    "a homophone of two words": (
        lambda r: [swap(r[0], f"homophone_{level}", "peals", "pe ls") for level in ("low", "high")],
        {"homophone one word"},
    ),
    "a homophone with a digit": (
        lambda r: [swap(r[0], f"homophone_{level}", "peals", "pe4ls") for level in ("low", "high")],
        {"homophone one word"},
    ),
    "a homophone that is the word": (
        lambda r: [redo(r[0], "homophone_high", ["pills>peals", "sick>sicK"], 3)],
        {"homophone another word", "homophone capitals kept"},
    ),
    "a homophone in other case": (
        lambda r: [swap(r[0], f"homophone_{level}", "peals", "Peals") for level in ("low", "high")],
        {"homophone capitals kept"},
    ),
    "a homophone of no grade": (lambda r: edit(r[0], "homophone_low", op="far"), {"homophone exact or near"}),
    "a redaction that leaves a mark": (
        lambda r: [swap(r[2], f"redact_{level}", "", "_______") for level in ("low", "high")],
        {"redact nothing is left"},
    ),
    "a redaction that leaves two blanks": (
        lambda r: [redo(r[2], f"redact_{level}", ["cousin>"], 6) for level in ("low", "high")],
        {"redact no new blanks"},
    ),
    "a redaction that leaves a blank in front": (
        lambda r: [redo(r[2], f"redact_{level}", ["My>"], 2) for level in ("low", "high")],
        {"redact no new blanks"},
    ),
    **{
        f"a wrong dose of {part}": (
            lambda r, part=part: dose(r[0], "typo_low", **{part: r[0]["typo_low_dose"][part] + 1e-6}),
            {f"dose {part}"},
        )
        for part in ("words", "valid_words", "characters", "medical")
    },
    "a wrong distance": (
        lambda r: dose(r[0], "typo_low", edit_distance=3, characters=3 / len(SICK)),
        {"dose edit_distance"},
    ),
    "doses far from the asked rate": (
        lambda r: [dose(row, "typo_low", words=0.3) for row in r],
        {"dose words", "mean rate of typo_low"},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_and_no_other(fault, tmp_path, capsys):
    rows = right_rows()
    breaks, expected = FAULTS[fault]
    breaks(rows)
    code, faults, report = run(write(tmp_path / "t.parquet", rows), capsys)
    assert (code, faults) == (1, expected), report


def test_every_rule_has_a_fault_that_it_finds():
    found = set().union(*(expected for _, expected in FAULTS.values()))
    rules = {title.replace(": ", " ") for title, _, _ in check_dataset.RULES}
    # The right table has no spelled unit, and asks for all words; both are tested on tables of their own.
    assert rules - found == {"untouched numbers with spelled units", "only medical words, or only others"}


def test_a_fault_is_spelled_out_with_id_column_and_value(tmp_path, capsys):
    rows = right_rows()
    rows[1]["redact_low_edits"][0]["pos"] = "DET"
    _, _, report = run(write(tmp_path / "t.parquet", rows), capsys)
    assert "id 'b', redact_low: Edit(start=0, before='Doctors '" in report
    assert "pos='DET'" in report


def test_a_text_without_any_edit_is_a_fault_even_where_the_quota_is_none(tmp_path, capsys):
    rows = right_rows()
    rows[2] |= {"typo_low": COUSIN, "typo_low_edits": [], "typo_low_dose": dict.fromkeys(DOSE.names, 0)}
    asked = deepcopy(ASKED)
    asked["typo"]["levels"]["low"] = 0.08  # 11 x 0.08 -> 1, 24 x 0.08 -> 2, 6 x 0.08 -> 0
    redo(rows[1], "typo_low", ["Doctors>Dcotosr", "WROTE>WROET"], 3)
    code, faults, report = run(write(tmp_path / "t.parquet", rows, asked), capsys)
    assert (code, faults) == (1, {"number of edits is the quota"}), report
    assert "no edit at all" in report


def test_a_column_of_questions_is_checked_against_the_question(tmp_path, capsys):
    rows = [row | {"question": row["text"], "text": f"Letter {row['id']}"} for row in right_rows()]
    asked = {name: one | {"field": "question"} for name, one in ASKED.items()}
    code, _, report = run(write(tmp_path / "t.parquet", rows, asked), capsys)
    assert code == 0, report
    assert "own count of question" in report
    rows[0]["question"] = None
    assert run(write(tmp_path / "t.parquet", rows, asked), capsys)[1] == {"nothing is null"}


@pytest.mark.parametrize(
    ("rate", "faults"),
    [
        (0.04, set()),
        (0.08, {"mean rate of typo_low"}),
        (0.3, {"number of edits is the quota", "mean rate of typo_low"}),
    ],
)
def test_a_rate_of_characters_is_met_within_half_a_word(rate, faults, tmp_path, capsys):
    rows = right_rows()[:1]
    asked = {"typo": {"levels": {"low": rate}, "unit": "chars", "nested": True, "field": "text"}}
    drop = [name for name in COLUMNS if name != "typo_low"]
    rows = [{name: value for name, value in rows[0].items() if not name.startswith(tuple(drop))}]
    assert run(write(tmp_path / "t.parquet", rows, asked), capsys)[1] == faults  # 54 characters, distance 2


def test_levels_that_need_not_nest_are_not_asked_to(tmp_path, capsys):
    rows = right_rows()
    FAULTS["an edit that high has not"][0](rows)
    asked = deepcopy(ASKED)
    asked["typo"]["nested"] = False
    assert run(write(tmp_path / "t.parquet", rows, asked), capsys)[0] == 0


def test_distances_with_and_without_case_are_not_mixed(tmp_path, capsys):
    rows = right_rows()
    redo(rows[0], "typo_high", ["patient>aptinet", ("sick>sikc", {})], 3)
    dose(rows[1], "typo_low", edit_distance=4, characters=4 / len(DOCTORS))
    assert check_dataset.distance("Pain", "Apin") == 2
    assert check_dataset.folded_distance("Pain", "Apin") == 1
    assert run(write(tmp_path / "t.parquet", rows), capsys)[1] == {"dose edit_distance"}


@pytest.mark.parametrize("column", ["text", "typo_low", "redact_high_edits", "homophone_low_dose"])
def test_a_missing_column_is_a_fault(column, tmp_path, capsys):
    code, faults, report = run(write(tmp_path / "t.parquet", right_rows(), drop=[column]), capsys)
    assert (code, faults) == (1, {"columns are those promised"})
    assert f"{column}: is missing" in report
    assert "every other check: looked at nothing" in report


def test_an_edit_column_outside_the_metadata_is_a_fault(tmp_path, capsys):
    table = pq.read_table(write(tmp_path / "t.parquet", right_rows()))
    asked = {name: ASKED[name] for name in ("typo", "homophone")}
    table = table.replace_schema_metadata({b"noisyhealth": json.dumps({"perturbations": asked})})
    pq.write_table(table, tmp_path / "t.parquet")
    assert run(tmp_path / "t.parquet", capsys)[1] == {"columns are those promised"}


def test_an_empty_table_is_a_fault(tmp_path, capsys):
    assert run(write(tmp_path / "t.parquet", []), capsys)[:2] == (1, {"columns are those promised"})


def test_a_file_that_cannot_be_read_ends_with_two(tmp_path, capsys):
    (tmp_path / "no.parquet").write_text("no table")
    paths = [
        tmp_path / "none.parquet",
        tmp_path / "no.parquet",
        write(tmp_path / "t.parquet", right_rows(), metadata=False),
    ]
    assert [check_dataset.main([str(path)]) for path in paths] == [2, 2, 2]
    assert capsys.readouterr().err.count("can't be read: ") == 3


def test_the_checker_imports_nothing_of_the_project():
    assert not re.search(r"^\s*(import|from) noisyhealth", SCRIPT.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sick,tired", 2),
        ("up.,MEDICATIONS", 2),
        ("1,000 e.g. follow-up 8:30", 4),
        ("wait…what", 2),
        ("no--yes", 2),
        (" -- (don't) ! ", 1),
        ("naïve cafe\u0301s", 2),
        ("❤\ufe0f", 0),
    ],
)
def test_words_end_at_blanks_and_at_punctuation_before_a_letter(text, words):
    assert len(check_dataset.word_spans(text)) == words


@pytest.mark.parametrize(
    ("count", "rate", "edits"), [(15, "0.3", 5), (5, "0.1", 1), (4, "0.1", 0), (45, "0.1", 5), (35, "0.7", 25)]
)
def test_half_an_edit_is_rounded_up_exactly(count, rate, edits):
    assert check_dataset.quota(count, check_dataset.Fraction(rate)) == edits


# OSA.distance of rapidfuzz 3.14; the first pair is where OSA parts from Damerau-Levenshtein (2).
@pytest.mark.parametrize(
    ("before", "after", "distance"),
    [
        ("ca", "abc", 3),
        ("patient", "aptinet", 2),
        ("", "ab", 2),
        ("ab", "", 2),
        ("kitten", "sitting", 3),
        ("aa", "aa", 0),
    ],
)
def test_the_distance_is_optimal_string_alignment(before, after, distance):
    assert check_dataset.slow_distance(before, after) == distance
    assert check_dataset.distance(before, after) == distance


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (
            "numbers with units",
            "took 500mg, 2.5 mL/kg, 98 %, 120 mmHg and 37°C for 3 days",
            ["500mg", "2.5 mL/kg", "98 %", "120 mmHg", "37°C"],
        ),
        ("numbers with units", "5 more, 3 grapes, 2 cats", []),
        ("numbers with spelled units", "10 units, 5 milligrams, 3 days", ["10 units", "5 milligrams"]),
        ("times", "at 8:30, 10:15 pm, 7 a.m. and 5pm; ratio 1:2", ["8:30", "10:15 pm", "7 a.m.", "5pm"]),
        (
            "dates",
            "1/2/2020, 2020-01-02, May 3rd, 2020, 4 June; may 3. June 5.",
            ["1/2/2020", "2020-01-02", "May 3rd, 2020", "4 June", "June 5"],
        ),
        (
            "URLs",
            "(https://a.org/b?c=1), www.who.int. see webmd.com",
            ["https://a.org/b?c=1", "www.who.int", "webmd.com"],
        ),
        ("e-mails", "to a.b@c.org.", ["a.b@c.org"]),
        ("@names", "@nurse, a@b.org", ["@nurse"]),
        ("#tags", "#flu &#39; a#b", ["#flu"]),
        ("emoji", "ill😀 ❤\ufe0f 👍🏽", ["😀", "❤\ufe0f", "👍🏽"]),
    ],
)
def test_protected_things_are_found(kind, text, found):
    assert [text[a:b] for a, b in check_dataset.Original(text).protected[kind]] == found


def test_words_may_disagree_in_one_text_of_a_hundred(tmp_path, capsys):
    def many(count):
        copies = [deepcopy(right_rows()[0]) | {"id": str(i)} for i in range(count)]
        odd = deepcopy(right_rows()[0]) | {"id": "odd", "words": 12}  # as many edits as of 11
        for column in COLUMNS:
            odd[f"{column}_dose"]["words"] = len(odd[f"{column}_edits"]) / 12
        return [*copies, odd]

    code, _, report = run(write(tmp_path / "t.parquet", many(99)), capsys)
    assert code == 0, report
    assert "99 of 100 agree (99.00%)" in report
    assert run(write(tmp_path / "t.parquet", many(98)), capsys)[1] == {"words agree with own count of text"}


def test_edits_of_the_right_table_are_in_order():
    starts = [[edit["start"] for edit in row[f"{column}_edits"]] for row in right_rows() for column in COLUMNS]
    assert all(a < b for each in starts for a, b in pairwise(each))


@pytest.mark.parametrize(
    ("before", "after", "op", "kind", "own"),
    [
        ("chest pain", "pain chest", "move", "order", "chest"),
        ("chest pain", "pain chest", "order:move", "mixture", "chest"),
        ("chest pain", "pain chest", "typo:swap", "mixture", "chest pain"),
        ("chest pain", "pain  chest", "move", "order", "chest pain"),
        ("chest pain", "pain breast", "move", "order", "chest pain"),
        ("chest pain", "pain chest", "swap", "typo", "chest pain"),
        ("Pain.", "pain", "capitals+marks", "plain", "Pain"),
        ("Pain?!", "pain", "plain:capitals+marks", "mixture", "Pain"),
        ("Pain)", "pain", "marks", "plain", "Pain)"),
        ("Pain.", "pain", "remove", "redact", "Pain."),
    ],
)
def test_an_edit_may_take_along_what_its_kind_takes_and_no_more(before, after, op, kind, own):
    edit = check_dataset.Edit(3, before, after, op, "NOUN", False, 0)
    assert check_dataset.own_part(edit, kind) == edit._replace(before=own)
