"""The sample texts: their numbers, their variety, and that they are neither too easy nor noise."""

import re
from collections import Counter, defaultdict
from functools import cache
from importlib.resources import files
from json import loads
from typing import Any

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline

TASKS = ("sentiment", "condition", "qa")
CLOSED = ("sentiment", "condition")
RUN = 8  # words


@cache
def rows(task: str) -> list[dict[str, Any]]:
    text = (files("noisyhealth.data") / "sample" / f"{task}.jsonl").read_text(encoding="utf-8")
    return [loads(line) for line in text.split("\n") if line]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("sentiment", {"positive": 120, "negative": 120}),
        ("condition", {"neoplasm": 60, "digestive": 60, "cardiovascular": 60}),
    ],
)
def test_each_class_has_as_many_texts_as_the_others(task: str, expected: dict[str, int]) -> None:
    assert Counter(row["target"] for row in rows(task)) == expected


def test_there_are_120_notes_each_with_a_question_and_a_short_answer() -> None:
    assert len(rows("qa")) == 120
    assert all(row["question"].strip().endswith("?") for row in rows("qa"))
    assert all(1 <= len(row["target"].split()) <= 15 for row in rows("qa"))


def test_every_number_in_an_answer_stands_in_its_note() -> None:
    missing = [
        row["id"] for row in rows("qa") if set(re.findall(r"\d+", row["target"])) - set(re.findall(r"\d+", row["text"]))
    ]
    assert missing == []


@pytest.mark.parametrize("task", TASKS)
def test_every_row_has_the_fields_of_the_card_and_an_id_of_its_own(task: str) -> None:
    fields = {"id", "text", "target", "ambiguous"} | ({"question"} if task == "qa" else set())
    assert all(set(row) == fields for row in rows(task))
    assert len({row["id"] for row in rows(task)}) == len({row["text"] for row in rows(task)}) == len(rows(task))
    assert all(row["text"] == row["text"].strip() and isinstance(row["ambiguous"], bool) for row in rows(task))


@pytest.mark.parametrize(("task", "least", "most"), [("sentiment", 1, 60), ("condition", 80, 200), ("qa", 80, 220)])
def test_texts_have_the_length_of_their_kind(task: str, least: int, most: int) -> None:
    outside = {row["id"]: n for row in rows(task) if not least <= (n := len(row["text"].split())) <= most}
    assert outside == {}


@pytest.mark.parametrize("task", TASKS)
def test_about_one_in_ten_texts_is_ambiguous(task: str) -> None:
    assert 0.05 <= sum(row["ambiguous"] for row in rows(task)) / len(rows(task)) <= 0.15


@pytest.mark.parametrize("task", TASKS)
def test_no_two_texts_share_a_run_of_eight_words(task: str) -> None:
    holders: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in rows(task):
        found = words(row["text"])
        for at in range(len(found) - RUN + 1):
            holders[tuple(found[at : at + RUN])].add(row["id"])
    assert {" ".join(run): ids for run, ids in holders.items() if len(ids) > 1} == {}


@pytest.mark.parametrize("task", CLOSED)
def test_no_word_gives_a_class_away(task: str) -> None:
    texts: dict[str, list[set[str]]] = defaultdict(list)
    for row in rows(task):
        texts[row["target"]].append(set(words(row["text"])))

    def share(word: str, of: list[set[str]]) -> float:
        return sum(word in text for text in of) / len(of)

    telling = [
        (target, word)
        for target, of in texts.items()
        for word, _ in Counter(w for text in of for w in text).most_common(200)
        if share(word, of) > 0.6
        and share(word, [text for other, those in texts.items() if other != target for text in those]) < 0.05
    ]
    assert telling == []


@pytest.mark.parametrize("task", CLOSED)
def test_a_bag_of_words_scores_between_70_and_95_percent(task: str) -> None:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    splits = StratifiedShuffleSplit(n_splits=20, test_size=0.2, random_state=0)
    texts, targets = [row["text"] for row in rows(task)], [row["target"] for row in rows(task)]
    assert 0.70 <= cross_val_score(model, texts, targets, cv=splits).mean() <= 0.95


@pytest.mark.parametrize(
    ("task", "pattern", "least"),
    [
        ("sentiment", r"@\w", 5),
        ("sentiment", r"https?://|www\.", 3),
        ("sentiment", r"#\w", 3),
        ("sentiment", "[\U0001f300-\U0001faff\u2600-\u27bf]", 15),
        ("sentiment", r"\d ?mg\b|\b\d+:\d\d\b", 10),
        ("condition", r"\d ?(?:mg|ml|mmol|g|cm|mm|%)", 60),
        ("condition", r"(?i)\b(?:methods|results|conclusions?):", 10),
        ("condition", r"\n", 5),
        ("qa", r"\n", 60),
        ("qa", r"(?i)\b(?:mg|mcg|mL|units)\b", 60),
        ("qa", r"\b\d+/\d+\b", 40),
        ("qa", r"(?i)\b(?:no|not|nil|denies|without)\b", 60),
        ("qa", r"\b\d{1,2}[:.]\d\d\b", 20),
    ],
)
def test_the_texts_look_like_the_real_thing(task: str, pattern: str, least: int) -> None:
    assert sum(re.search(pattern, row["text"]) is not None for row in rows(task)) >= least
