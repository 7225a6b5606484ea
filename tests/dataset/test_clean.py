"""Which rows are used: no text twice, none with two answers, one question on a note."""

import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest
from given import Given, invented, notes

from noisyhealth.dataset import clean
from noisyhealth.dataset.attrition import Attrition
from noisyhealth.errors import DataError
from noisyhealth.records import Example
from noisyhealth.sources.source import Read

REPEATS, CONTRADICTS = "repeats another text", "contradicts its twin"
UNUSABLE, ASKED = "has a twin without a usable target", "asks about a note already used"
UNMAPPED, NO_TARGET = "has a target that is not mapped", "has no target"

A = Example("a", "Slept well", "good")
B = Example("b", "Slept badly", "bad")
NOTE = Example("n", "Took metformin.", "metformin", "Which drug?")
OTHER = Example("o", "Took insulin.", "insulin", "Which drug?")


def used(*rows: Example | Read) -> tuple[list[str], dict[str, int]]:
    """Return the ids that are used, and the counts of the others by reason."""
    found = Attrition()
    ids = [example.id for example in clean.usable(Given(rows), "qa", found)]
    assert found.read == len(rows) == found.usable + found.left_out.total()
    assert found.usable == len(ids)
    return ids, dict(found.left_out)


def twin(of: Example, name: str, **changes: str) -> Example:
    return replace(of, id=name, **changes)


def out(of: Example, name: str, reason: str, **changes: str) -> Read:
    return Read(twin(of, name, **changes), (), reason)


@pytest.mark.parametrize(
    ("rule", "rows", "ids", "left_out"),
    [
        ("different texts are all used", [A, B], "ab", {}),
        ("a text that stands there twice is used once", [A, twin(A, "c"), B], "ab", {REPEATS: 1}),
        ("so is one that stands there under the same id", [A, A], "a", {REPEATS: 1}),
        (
            "case and blanks make another text",
            [A, twin(A, "c", text="slept well"), twin(A, "d", text="Slept  well")],
            "acd",
            {},
        ),
        ("a text with two targets is not used at all", [A, B, twin(A, "c", target="bad")], "b", {CONTRADICTS: 2}),
        (
            "nor is one with two targets of which one stands there twice",
            [A, twin(A, "c"), twin(A, "d", target="bad")],
            "",
            {CONTRADICTS: 3},
        ),
        (
            "nor is the twin of a row whose label is not mapped",
            [A, out(A, "c", UNMAPPED, target="7"), B],
            "b",
            {UNUSABLE: 1, UNMAPPED: 1},
        ),
        ("wherever that row stands", [out(A, "c", UNMAPPED, target="7"), A, B], "b", {UNUSABLE: 1, UNMAPPED: 1}),
        (
            "nor is the twin of a row without a target",
            [A, out(A, "c", NO_TARGET, target=""), B],
            "b",
            {UNUSABLE: 1, NO_TARGET: 1},
        ),
        (
            "two targets weigh more than a third that is not usable",
            [A, twin(A, "c", target="bad"), out(A, "d", UNMAPPED, target="7")],
            "",
            {CONTRADICTS: 2, UNMAPPED: 1},
        ),
        (
            "rows without a text are no twins",
            [A, out(A, "c", "has no text", text=""), out(B, "d", "has no text", text=" ")],
            "a",
            {"has no text": 2},
        ),
        (
            "a second question on a note is left out",
            [NOTE, twin(NOTE, "m", question="How much?", target="1 g"), OTHER],
            "no",
            {ASKED: 1},
        ),
        (
            "one on another note of its group is kept: a group has many notes",
            [replace(NOTE, group="p"), replace(OTHER, group="p"), replace(OTHER, id="q", text="Took both.", group="r")],
            "noq",
            {},
        ),
        ("notes without a group share none", [NOTE, OTHER], "no", {}),
        (
            "two answers to one question are a contradiction",
            [NOTE, twin(NOTE, "m", target="insulin"), OTHER],
            "o",
            {CONTRADICTS: 2},
        ),
        ("the same question and answer again is left out", [NOTE, twin(NOTE, "m"), OTHER], "no", {ASKED: 1}),
        (
            "texts of one group that are asked no question are all used",
            [replace(A, group="p"), replace(B, group="p")],
            "ab",
            {},
        ),
        (
            "what is left out takes no other with it",
            [out(NOTE, "m", UNMAPPED, group="p", text="Took nothing."), replace(NOTE, group="p")],
            "n",
            {UNMAPPED: 1},
        ),
        ("no rows give nothing", [], "", {}),
    ],
)
def test_of_rows(rule: str, rows: list[Example | Read], ids: str, left_out: dict[str, int]) -> None:
    assert used(*rows) == (list(ids), left_out), rule


def test_a_contradicted_question_does_not_use_up_its_note() -> None:
    wrong = [NOTE, twin(NOTE, "m", target="insulin")]
    assert used(*wrong, twin(NOTE, "k", question="How much?", target="1 g")) == (["k"], {CONTRADICTS: 2})


def test_an_id_that_stands_for_two_texts_is_an_error() -> None:
    with pytest.raises(DataError, match=r"task 'qa': the id 'a' stands for two texts of given: make ids unique"):
        used(A, replace(B, id="a"))


def test_what_was_mended_is_counted_for_every_row() -> None:
    found = Attrition()
    rows = [Read(A, ("entities", "controls")), Read(B, ("entities",), UNMAPPED)]
    assert list(clean.usable(Given(rows), "qa", found)) == [A]
    assert found.repaired == {"entities": 2, "controls": 1}


def test_the_sample_notes_are_all_used() -> None:
    assert used(*notes(14)) == ([note.id for note in notes(14)], {})


class Tracked(Example):
    """An example that can be counted while it is held."""

    __slots__ = ("__weakref__",)


def test_the_source_is_read_twice_and_never_held() -> None:
    alive: weakref.WeakSet[Tracked] = weakref.WeakSet()
    most = 0

    class Stream(Given):
        def read(self, task: str) -> Iterator[Read]:
            self.reads.append(task)
            for example in invented(300):
                tracked = Tracked(example.id, example.text, example.target)
                alive.add(tracked)
                yield Read(tracked)

    source = Stream([])
    for _ in clean.usable(source, "qa", Attrition()):
        most = max(most, len(alive))
    assert source.reads == ["qa", "qa"]
    assert most <= 3  # the one in hand, the one before it, and that of the loop


def test_a_target_that_is_none_of_the_labels_is_an_error_before_any_work() -> None:
    rows = [Example("a", "Pain", "positive"), Example("b", "No pain", "postive")]
    with pytest.raises(DataError, match=r"example 'b' has the answer 'postive', none of task.labels=\['positive'"):
        list(clean.usable(Given(rows), "sentiment", Attrition(), ["positive", "negative"]))
