"""Public files as their authors publish them, read in place: ../shared/data, where this machine has it."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from noisyhealth.sources.files import Files
from noisyhealth.sources.source import Columns, Read

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the public files are not in {DATA}")

NEGATIVE = dict.fromkeys(["worry", "sadness", "hate", "boredom", "anger"], "negative")
POSITIVE = dict.fromkeys(["happiness", "love", "fun", "relief", "enthusiasm"], "positive")
TWEETS = Columns("content", "sentiment", id="tweet_id", targets={**NEGATIVE, **POSITIVE})
NOTES = Columns("note", "answer", question="question", group="note_id", id="id")


def read(name: str, columns: Columns, **settings: list[str]) -> list[Read]:
    return list(Files({"task": str(DATA / name)}, {"task": columns}, **settings).read("task"))


def test_tweets_are_40001_of_which_the_last_is_junk_and_2301_have_entities() -> None:
    found = read("tweet_emotions/tweet_emotions.csv", TWEETS)
    assert len(found) == 40_001
    assert (found[-1].reason, found[-1].example.id) == ("has no target", "")
    counts = Counter(r.example.target if not r.reason else r.reason for r in found)
    others = 40_000 - 13_112 - 15_236
    unmapped = "has a target that is not mapped"
    assert counts == {"positive": 13_112, "negative": 15_236, unmapped: others, "has no target": 1}
    assert Counter(name for r in found for name in r.repairs) == {"entities": 2301}
    with (DATA / "tweet_emotions/tweet_emotions.csv").open(encoding="utf-8", newline="") as file:
        raw = [row["content"] for row in csv.DictReader(file)]
    assert sum(any(e in text for e in ("&quot;", "&amp;", "&lt;", "&gt;")) for text in raw) == 2301
    assert not any(e in r.example.text for r in found for e in ("&quot;", "&amp;", "&lt;", "&gt;"))


def test_tweets_without_a_map_keep_their_thirteen_labels() -> None:
    found = read("tweet_emotions/tweet_emotions.csv", replace(TWEETS, targets=None))
    assert len({r.example.target for r in found if not r.reason}) == 13
    assert len({r.example.id for r in found if not r.reason}) == 40_000


def test_abstracts_are_2888_with_nothing_to_mend() -> None:
    targets = {"1": "neoplasm", "2": "digestive", "4": "cardiovascular"}
    found = read(
        "medical_abstracts/medical_tc_test.csv", Columns("medical_abstract", "condition_label", targets=targets)
    )
    assert len(found) == 2888
    usable = [r.example for r in found if not r.reason]
    assert Counter(e.target for e in usable) == {"neoplasm": 633, "digestive": 299, "cardiovascular": 610}
    assert len({r.example.text for r in found}) == 2770
    assert not any(r.repairs for r in found)


def test_pubmedqa_has_1000_abstracts_joined_from_their_parts_under_their_key() -> None:
    columns = Columns("CONTEXTS", "LONG_ANSWER", question="QUESTION", id="key")
    found = read("pubmedqa/ori_pqal.json", columns)
    raw = json.loads((DATA / "pubmedqa/ori_pqal.json").read_text(encoding="utf-8"))
    assert len(found) == len({r.example.id for r in found}) == 1000
    assert all(not r.reason for r in found)
    assert all(r.example.text == "\n".join(raw[r.example.id]["CONTEXTS"]) for r in found if not r.repairs)


def notes(name: str) -> dict[str, str]:
    """Return the notes as the file has them, by id."""
    lines = (DATA / f"note_qa/{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return {row["id"]: row["note"] for row in map(json.loads, filter(None, lines))}


def test_dialogues_keep_every_byte_crlf_too() -> None:
    found, raw = read("note_qa/mts_dialog_section_qa.jsonl", NOTES), notes("mts_dialog_section_qa")
    assert len(found) == 1701
    assert {r.example.id: r.example.text for r in found} == raw
    assert not any(r.reason or r.repairs for r in found)
    assert sum("\r\n" in r.example.text for r in found) == 1199


def test_transcribed_notes_get_the_line_breaks_at_their_headings_back_and_nothing_else() -> None:
    found, raw = read("note_qa/mtsamples_description_qa.jsonl", NOTES), notes("mtsamples_description_qa")
    assert len(found) == len(raw) == 372
    assert not any(r.reason for r in found)
    assert Counter(name for r in found for name in r.repairs) == {"headings": 360}
    changed = Counter()
    for example in (r.example for r in found):
        pairs = zip(raw[example.id], example.text, strict=True)
        changed.update((old, new) for old, new in pairs if old != new)
    assert changed == {(",", "\n"): 4558}
