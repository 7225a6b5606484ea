"""From a source to a dataset: built once, the same everywhere, a few texts at a time."""

import json
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from given import FEW, REDACT, TAGGER, TYPO, Given, Nouns, design, invented, made, notes, rows, splits

from noisyhealth.dataset import build as dataset
from noisyhealth.dataset.design import Disturbance, Split
from noisyhealth.dataset.table import TABLE
from noisyhealth.errors import DataError
from noisyhealth.perturbations.engine import Key, Unit, disturb, ranked, replay
from noisyhealth.perturbations.redact import Redact
from noisyhealth.records import Edit, Example, Word
from noisyhealth.sources.source import Read
from noisyhealth.text.flags import flags

QUESTION = Disturbance("redact", {"low": 0.1, "high": 0.3}, True, Redact(), field="question")
ASKED = [
    replace(e, question=" ".join(invented(1, 15)[0].text.split()[n % 3 :]) + f" so{n}")
    for n, e in enumerate(invented(14))
]


def variants_of(found: object, columns: tuple[str, ...] = ("redact_low", "redact_high")) -> dict[str, list[object]]:
    """Return the text and the edits of each row's variants by its id."""
    return {row["id"]: [row[f"{c}{part}"] for c in columns for part in ("", "_edits")] for row in rows(found)}  # type: ignore[arg-type]


def edits(row: Mapping[str, object], column: str) -> set[Edit]:
    return {Edit(**{**e, "flags": tuple(e["flags"])}) for e in row[f"{column}_edits"]}  # type: ignore[attr-defined]


def test_a_second_load_reads_what_the_first_has_built(tmp_path: Path) -> None:
    whole = design(invented(14))
    first, second = dataset.load(whole, str(tmp_path)), dataset.load(replace(whole), str(tmp_path))
    assert whole.source.reads == ["qa", "qa"]  # type: ignore[attr-defined] # twice, by the one build
    assert rows(first) == rows(second) == rows(made(invented(14)))


@pytest.mark.parametrize(
    "changes", [{"settings": {"task": "qa", "seed": 1}}, {"source": "another file"}, {"task": "condition"}], ids=str
)
def test_what_is_changed_is_built_anew_and_what_was_built_stays(changes: dict[str, object], tmp_path: Path) -> None:
    class File(Given):
        def state(self, task: str) -> str:
            return "another file"

    first = design(invented(14))
    second = replace(first, **{**changes, "source": File(invented(14)) if "source" in changes else Given(invented(14))})  # type: ignore[arg-type]
    folders = {dataset.load(d, str(tmp_path)).folder for d in (first, second, first)}
    assert len(folders) == 2
    assert len(first.source.reads) == len(second.source.reads) == 2  # type: ignore[attr-defined]


class Dies(Given):
    """A source that breaks off in its second reading, when a part of the table is written."""

    def read(self, task: str) -> Iterator[Read]:
        for number, row in enumerate(super().read(task)):
            if number == 590 and len(self.reads) == 2:
                raise KeyboardInterrupt
            yield row


def test_a_build_that_was_interrupted_leaves_nothing_that_is_taken_for_one(tmp_path: Path) -> None:
    whole = design(Dies(invented(600)))
    with pytest.raises(KeyboardInterrupt):
        dataset.load(whole, str(tmp_path))
    assert not (tmp_path / "datasets" / f"qa-{whole.hash}").exists()
    assert len(dataset.load(whole, str(tmp_path)).examples) == 600
    assert not list((tmp_path / "datasets").glob("*.part"))


def test_what_a_killed_process_left_is_not_taken_for_a_build(tmp_path: Path) -> None:
    whole = design(invented(14))
    part = tmp_path / "datasets" / f"qa-{whole.hash}.part"
    part.mkdir(parents=True)
    for name in (TABLE, f"{TABLE}.part", "build.json"):
        (part / name).write_text("half")
    assert len(dataset.load(whole, str(tmp_path)).examples) == 14
    assert not part.exists()


def test_an_error_in_a_build_is_raised_again_by_the_next_load(tmp_path: Path) -> None:
    whole = design(invented(2))
    for _ in range(2):
        with pytest.raises(DataError, match="2 kept texts are too few"):
            dataset.load(whole, str(tmp_path))
    assert [path.suffix for path in (tmp_path / "datasets").iterdir() if path.suffix != ".part"] == [".lock"]


LOADS = """
    import json, os, sys, time
    from pathlib import Path
    sys.path.insert(0, {here!r})
    from given import *

    class Slow(Given):
        def read(self, task):
            with Path({log!r}).open("a") as log:
                log.write(f"{{os.getpid()}}\\n")
            for row in super().read(task):
                time.sleep(0.002)
                yield row

    from noisyhealth.dataset import build
    found = build.load(design(Slow(invented(300)), REDACT, TYPO), {cache!r})
    print(found.hash, found.facts["content"], len(found.examples))
"""


def loading(folder: Path, **variables: str) -> subprocess.Popen[str]:
    code = textwrap.dedent(LOADS).format(here=str(Path(__file__).parent), log=str(folder / "log"), cache=str(folder))
    environment = {**os.environ, **variables}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)


def test_two_processes_that_load_at_once_build_once(tmp_path: Path) -> None:
    both = [loading(tmp_path) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1] != ""
    readers = (tmp_path / "log").read_text().split()
    assert len(readers) == 2
    assert len(set(readers)) == 1


def test_another_process_with_another_hash_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        process = loading(folder, PYTHONHASHSEED=seed)
        said = process.communicate(timeout=120)[0]
        [table] = folder.glob(f"datasets/*/{TABLE}")
        found.append((said, sha256(table.read_bytes()).hexdigest(), (table.parent / "build.json").read_bytes()))
    assert found[0] == found[1]
    here = made(invented(300), REDACT, TYPO)
    assert found[0][0].split() == [here.hash, here.facts["content"], "300"]


def test_a_text_comes_out_the_same_whatever_texts_stand_beside_it() -> None:
    forth, back = variants_of(made(invented(14))), variants_of(made(invented(20)[::-1]))
    assert {i: back[i] for i in forth} == forth


def test_the_order_of_the_texts_does_not_change_splits_counts_or_realised_rates() -> None:
    texts = [*invented(40), Example("short", "Pain again", "t")]
    forth, back = made(texts), made(sorted(texts, key=lambda e: Random(e.id).random()))
    assert [row["id"] for row in rows(forth)] != [row["id"] for row in rows(back)]
    assert splits(forth) == splits(back)
    assert forth.attrition == back.attrition
    for level in ("low", "high"):
        assert forth.facts["realised"]["redact"][level] == pytest.approx(back.facts["realised"]["redact"][level])


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("tagger", [Nouns(), TAGGER], ids=["nouns", "spacy"])
def test_each_texts_variants_can_be_made_again_alone(nested: bool, tagger: Nouns) -> None:
    asked = [replace(d, nested=nested) for d in (REDACT, TYPO)]
    found = made(notes(14), *asked, tagger=tagger, seed=7, draw=3)
    for row in rows(found):
        [words] = tagger.tag([row["text"]])
        for d in asked:
            for level, rate in d.levels.items():
                rng = Key(7, "qa", row["id"], d.name, "" if nested else level, 3).rng()
                order = ranked(row["text"], words, d.change, rng, flags)
                variant = disturb(row["text"], words, order, rates={level: rate})[level]
                assert row[f"{d.name}_{level}"] == variant.text  # type: ignore[union-attr]
                assert edits(row, f"{d.name}_{level}") == set(variant.edits)  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_another_seed_gives_other_splits_and_other_texts(seed: int) -> None:
    one, same, other = (made(invented(14), seed=s) for s in (seed, seed, seed + 1))
    assert (rows(one), one.facts) == (rows(same), same.facts)
    assert splits(one) != splits(other)
    assert variants_of(one) != variants_of(other)
    assert one.hash != other.hash
    assert one.facts["content"] != other.facts["content"]


def test_another_draw_changes_the_texts_and_not_the_splits() -> None:
    first, second = made(invented(14)), made(invented(14), draw=1)
    assert (first.hash, splits(first)) == (second.hash, splits(second))
    assert variants_of(first) != variants_of(second)
    assert first.facts["content"] != second.facts["content"]


def test_levels_that_do_not_nest_are_drawn_anew() -> None:
    def contained(nested: bool) -> int:
        found = made(invented(14), replace(REDACT, nested=nested))
        return sum(edits(row, "redact_low") < edits(row, "redact_high") for row in rows(found))

    assert contained(nested=True) == 14
    assert contained(nested=False) < 8  # an edit of 1 word is among 4 of 12 by chance in a third of the texts


NUMBERED = [replace(e, text=f"1 2 3 4 5 6 7 8 9 10 {e.text} and then 11 12 13 14 15 16 17") for e in invented(14, 13)]


@pytest.mark.parametrize(("unit", "low", "high"), [("words", 3, 10), ("valid_words", 2, 5)])
def test_a_rate_is_of_its_unit(unit: str, low: int, high: int) -> None:
    found = made(NUMBERED, replace(REDACT, unit=unit))  # 32 words, of which 17 are numbers
    assert {(len(r["redact_low_edits"]), len(r["redact_high_edits"])) for r in rows(found)} == {(low, high)}
    assert {(r["words"], r["valid_words"]) for r in rows(found)} == {(32, 15)}


def test_a_rate_of_characters_is_met_to_half_a_word() -> None:
    found = made(
        invented(30, 60),
        replace(REDACT, unit=Unit.CHARS),
        replace(TYPO, unit="chars", levels={"low": 0.05, "high": 0.2}),
    )
    for row in rows(found):
        for name, rate in (("redact_low", 0.1), ("redact_high", 0.3), ("typo_low", 0.05), ("typo_high", 0.2)):
            assert abs(row[f"{name}_dose"]["edit_distance"] - rate * len(row["text"])) <= 4


def test_more_than_can_change_is_out_of_reach_and_never_silently_less() -> None:
    texts = [*NUMBERED, *(replace(e, id=f"all {e.id}") for e in invented(34, 20)[20:])]
    found = made(texts, replace(REDACT, levels={"low": 0.1, "high": 0.5}))  # 16 of 32 words, but 15 can change
    assert found.attrition.reach["redact"]["high"] == {"reaches": 14, "too few words can change": 14}
    assert {row["id"][:4] for row in rows(found)} == {"all "}


@dataclass(frozen=True)
class Terms(Nouns):
    """The same, and every word whose first letter stands in the first half of the alphabet is a medical term."""

    def tag(self, texts: Iterable[str]) -> Iterator[list[Word]]:
        for found in super().tag(texts):
            yield [replace(word, medical=word.text[0].lower() < "n") for word in found]


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("kind", [REDACT, TYPO], ids=lambda kind: kind.name)
def test_medical_words_and_others_are_disturbed_alone_on_the_same_texts_as_often(
    kind: Disturbance, nested: bool
) -> None:
    built = {
        words: made(invented(60), replace(kind, words=words, nested=nested), tagger=Terms())
        for words in ("all", "medical", "others")
    }
    medical, others = (rows(built[words]) for words in ("medical", "others"))
    assert [row["id"] for row in medical] == [row["id"] for row in others]
    assert len(medical) > 20
    for one, other in zip(medical, others, strict=True):
        for level, rate in kind.levels.items():
            name = f"{kind.name}_{level}"
            assert {edit.medical for edit in edits(one, name)} == {True}
            assert {edit.medical for edit in edits(other, name)} == {False}
            assert len(edits(one, name)) == len(edits(other, name)) == round(12 * rate)
            assert one[f"{name}_dose"]["total_valid_words"] == 12
    left = len(rows(built["all"])) - len(medical)
    reach = {words: built[words].attrition.reach[kind.name]["high"] for words in ("medical", "others")}
    assert left > 0
    assert reach["medical"] == reach["others"]
    assert reach["medical"]["too few medical words or too few others can change"] == left


def test_the_question_is_disturbed_and_the_note_stays() -> None:
    found = made(ASKED, QUESTION)
    for row in rows(found):
        for level, count in (("low", round(0.1 * len(row["question"].split()) + 1e-9)), ("high", None)):
            changed = edits(row, f"redact_{level}")
            assert row[f"redact_{level}"] == replay(row["question"], sorted(changed)) != row["question"]
            assert count is None or len(changed) == count
            assert row[f"redact_{level}_dose"]["total_words"] == len(row["question"].split())
    assert {e.id: (e.text, e.question) for e in found.examples} == {e.id: (e.text, e.question) for e in ASKED}


def test_text_and_question_can_be_disturbed_side_by_side() -> None:
    both = made(ASKED, replace(QUESTION, name="asked"), REDACT)
    assert variants_of(both) == variants_of(made(ASKED, REDACT))
    alone = made(ASKED, replace(QUESTION, name="asked"))
    columns = "asked_low", "asked_high"
    assert variants_of(both, columns) == variants_of(alone, columns)


def test_a_text_without_a_question_is_too_short_for_one_to_be_disturbed() -> None:
    found = made([*ASKED, Example("none", " ".join(e.text for e in invented(2)), "t")], QUESTION)
    assert found.attrition.reach["redact"]["low"] == {"reaches": 14, "too short": 1}


def test_where_no_text_is_kept_the_error_has_the_whole_count() -> None:
    with pytest.raises(DataError) as caught:
        made([Example("1", "Pain", "t"), Example("2", "Ache", "t"), Read(Example("3", "", "t"), (), "has no text")])
    said = str(caught.value)
    assert said.startswith("task 'qa': no text is kept, since none reaches every level; choose lower levels")
    assert "\nread: 3\n" in said
    assert "left out: has no text: 1" in said
    assert "reaches redact low: 0 2 too short" in said


@pytest.mark.parametrize(
    ("count", "split", "message"),
    [
        (3, Split(0.2, 3, 0.8), r"'qa': 3 kept texts are too few .* lower data\.split\.test"),
        (1, FEW, "1 kept texts are too few"),
        (10, Split(0.2, 8, 0.8), "10 kept texts are too few"),
        (10, Split(0.01, 3, 0.8), r"10 kept texts are too few for data\.split\.prompt=0\.01"),
        (0, FEW, r"no text is kept.*\nread: 0"),
    ],
)
def test_too_few_texts_is_an_error_that_says_what_to_do(count: int, split: Split, message: str) -> None:
    with pytest.raises(DataError, match=message):
        made(invented(count), split=split)


def test_neither_a_note_nor_a_near_copy_stands_in_two_splits() -> None:
    longer = invented(60, 60)
    copies = [replace(e, id=f"copy {e.id}", text=e.text.upper() + "!") for e in longer[:20]]
    patients = [replace(e, group=f"p{n // 3}") for n, e in enumerate(longer)]
    found = made([*patients, *copies], split=Split(0.2, 20, 0.8))
    where = splits(found)
    for n, example in enumerate(longer):
        assert where[example.id] == where[longer[n // 3 * 3].id]
        if n < 20:
            assert where[f"copy {example.id}"] == where[example.id]
    assert len({e.id for e in found.training.prompt} & {e.id for e in found.test}) == 0


class Tracked(Example):
    """An example that can be counted while it is held."""

    __slots__ = ("__weakref__",)


def test_a_build_of_many_texts_holds_few_at_a_time(tmp_path: Path) -> None:
    alive: weakref.WeakSet[Tracked] = weakref.WeakSet()
    most = 0

    class Stream(Given):
        def read(self, task: str) -> Iterator[Read]:
            nonlocal most
            for e in invented(3000):
                alive.add(tracked := Tracked(e.id, e.text, e.target))
                most = max(most, len(alive))
                yield Read(tracked)

    found = dataset.build(design(Stream([])), tmp_path)
    assert found.attrition.kept == 3000
    assert most <= 600  # two batches of 256 while one takes the other's place


def test_the_real_tagger_reads_few_texts_ahead(tmp_path: Path) -> None:
    alive: weakref.WeakSet[Tracked] = weakref.WeakSet()
    most = 0

    class Stream(Given):
        def read(self, task: str) -> Iterator[Read]:
            nonlocal most
            for e in invented(1500, 8):
                alive.add(tracked := Tracked(e.id, e.text, e.target))
                most = max(most, len(alive))
                yield Read(tracked)

    dataset.build(design(Stream([]), tagger=TAGGER), tmp_path)
    assert most <= 800  # and batches of 64 in the tagger


def test_the_facts_say_what_a_reader_needs() -> None:
    found = json.loads((made(invented(14), REDACT, TYPO).folder / "build.json").read_text())
    assert set(found) >= {
        "task", "source", "licence", "perturbations", "seed", "draw", "tagger", "protected", "valid_pos", "settings",
        "hash", "content", "attrition", "realised",
    }  # fmt: skip
    assert found["realised"]["redact"]["low"]["rate"] == 0.1


@pytest.mark.parametrize("harm", ["changed", "cut", "no facts"])
def test_a_build_that_was_changed_since_is_an_error_that_says_what_to_delete(harm: str, tmp_path: Path) -> None:
    whole = design(invented(14))
    folder = dataset.load(whole, str(tmp_path)).folder
    if harm == "no facts":
        (folder / "build.json").unlink()
    else:
        table = (folder / TABLE).read_bytes()
        (folder / TABLE).write_bytes(table[:-40] if harm == "cut" else table[:60] + b"X" + table[61:])
    with pytest.raises(DataError, match=rf"{folder} was changed or cut since it was built: delete that folder"):
        dataset.load(replace(whole), str(tmp_path))
