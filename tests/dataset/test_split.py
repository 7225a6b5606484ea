"""Splits have their sizes, and what belongs together stays together."""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import pytest
from given import invented, words

from noisyhealth.dataset.design import Split
from noisyhealth.dataset.split import Families, Splits, assign
from noisyhealth.errors import DataError
from noisyhealth.records import Example

LONG = " ".join(words(100, "long"))


def families(examples: Iterable[Example]) -> set[frozenset[str]]:
    found = Families()
    for example in examples:
        found.add(example)
    return {frozenset(members) for members in found.members()}


def together(*texts: str) -> bool:
    return len(families(Example(str(n), text, "t") for n, text in enumerate(texts))) == 1


def assigned(members: Sequence[Sequence[str]], split: Split, seed: int = 0, task: str = "qa") -> Splits:
    return assign(members, split, seed=seed, task=task)


def singles(count: int) -> list[list[str]]:
    return [[f"{n:04}"] for n in range(count)]


def changed(text: str, at: int) -> str:
    parts = text.split()
    return " ".join([*parts[:at], "another", *parts[at + 1 :]])


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("the text itself", LONG),
        ("case", LONG.upper()),
        ("the end of the sentence", f"{LONG}!"),
        ("punctuation", LONG.replace(" ", ", ")),
        ("line breaks and blanks", f"\n{LONG.replace(' ', '  ')}\r\n"),
        ("one word", changed(LONG, 50)),
        ("the first word", changed(LONG, 0)),
        ("a word that is left out", " ".join(LONG.split()[:40] + LONG.split()[41:])),
        ("a sentence that is added", f"{LONG} Nothing else to say."),
    ],
)
def test_texts_belong_together_that_differ_in(what: str, other: str) -> None:
    assert together(LONG, other), what


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Pain", "pain!"),
        ("Slept well at last", "slept well, at last."),
        ("I can't sleep today", "I cant sleep today"),
        ("The e-mail came", "the email came"),
        ("Seen at follow-up, x-ray fine", "Seen at followup, xray fine"),
    ],
)
def test_short_texts_belong_together_that_differ_in_case_and_marks_alone(one: str, other: str) -> None:
    assert together(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("length", [40, 60, 100])
def test_a_long_text_with_one_word_changed_is_found_always(length: int) -> None:
    pairs = [" ".join(words(length, f"pair {n}")) for n in range(300)]
    torn = [n for n, text in enumerate(pairs) if not together(text, changed(text, n % length))]
    assert not torn, f"{len(torn)} of 300 pairs of {length} words"


@pytest.mark.parametrize(
    ("what", "texts"),
    [
        ("nothing", ["Slept well at last", "The rash on my arm is back"]),
        ("one word", ["Pain", "Ache"]),
        ("a first sentence", [f"I feel tired today. {' '.join(words(20, n))}" for n in "ab"]),
        ("their words in another order", [LONG, " ".join(sorted(LONG.split()))]),
        ("half their words", [LONG, " ".join(LONG.split()[:50] + words(50, "b"))]),
        ("few common words", ["She was not in pain and was sent home", "He was in pain and was not sent on"]),
    ],
)
def test_texts_do_not_belong_together_that_share_at_most(what: str, texts: list[str]) -> None:
    assert not together(*texts), what


def test_unrelated_texts_all_stand_alone() -> None:
    assert len(families(invented(1000))) == 1000


def test_examples_of_one_group_belong_together_and_those_without_do_not() -> None:
    examples = [
        Example(e.id, e.text, "t", "", group)
        for e, group in zip(invented(6), ["p", "", "q", "p", "", "q"], strict=True)
    ]
    assert {tuple(sorted(f)) for f in families(examples)} == {("0000", "0003"), ("0001",), ("0002", "0005"), ("0004",)}


def test_near_copies_and_groups_join_in_chains() -> None:
    chain = [LONG]
    for at in range(
        0, 100, 5
    ):  # each is a near copy of the one before; the last shares 80 % of the words with the first
        chain.append(changed(chain[-1], at))
    ends = [Example("x", chain[0], "t", "", "p"), Example("y", "Something else altogether", "t", "", "p")]
    links = [Example(str(n), text, "t") for n, text in enumerate(chain)]
    assert len(families([*links, *ends])) == 1
    assert len(families([links[0], links[-1]])) == 2


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_texts_does_not_change_the_families(seed: int) -> None:
    many = [
        Example(
            f"{e.id} {copy}",
            changed(e.text, copy) if copy else e.text,
            "t",
            "",
            f"p{int(e.id) // 2}" if copy == 3 else "",
        )
        for e in invented(40, 60)
        for copy in range(4)
    ]
    mixed = sorted(many, key=lambda e: Random(f"{seed}{e.id}").random())
    assert families(mixed) == families(many)


@pytest.mark.parametrize("count", [10, 11, 33, 100, 1001])
@pytest.mark.parametrize("split", [Split(0.2, 3, 0.8), Split(0.25, 1, 0.5), Split(0.1, 2, 0.9)], ids=str)
def test_sizes_are_exact_where_every_text_stands_alone(count: int, split: Split) -> None:
    found = assigned(singles(count), split)
    prompts, trained = round(count * split.prompt), round((count - split.test) * split.train)
    sizes = {"prompt": prompts, "test": split.test, "validation": count - prompts - split.test}
    assert Counter(found.generative.values()) == sizes
    sizes = {"train": trained, "test": split.test, "validation": count - split.test - trained}
    assert Counter(found.encoder.values()) == sizes


@pytest.mark.parametrize("seed", range(20))
def test_no_family_is_torn_and_both_kinds_of_models_test_on_the_same(seed: int) -> None:
    random, members, at = Random(f"families {seed}"), [], 0
    while at < 200:
        size = 1 + int(random.random() ** 3 * 12)
        members.append([f"{n:03}" for n in range(at, at + size)])
        at += size
    found = assigned(members, Split(0.2, 30, 0.8), seed)
    for family in members:
        assert len({(found.generative[i], found.encoder[i]) for i in family}) == 1
    tests = {i for i, split in found.generative.items() if split == "test"}
    assert tests == {i for i, split in found.encoder.items() if split == "test"}
    assert 20 <= len(tests) <= 30
    assert set(found.generative) == set(found.encoder) == {i for family in members for i in family}


def test_a_family_too_large_for_any_split_validates() -> None:
    large = [f"large {n}" for n in range(12)]
    for seed in range(20):
        found = assigned([large, *singles(20)], Split(0.2, 6, 0.3), seed)
        assert {found.generative[i] for i in large} == {found.encoder[i] for i in large} == {"validation"}
        assert Counter(found.generative.values()) == {"prompt": 6, "test": 6, "validation": 20}


def test_the_order_of_families_and_members_does_not_change_the_splits() -> None:
    members = [[f"{n}", f"{n} again"] for n in range(20)] + singles(20)
    mixed = [family[::-1] for family in members[::-1]]
    assert assigned(mixed, Split(0.2, 9, 0.8)) == assigned(members, Split(0.2, 9, 0.8))


@pytest.mark.parametrize("changes", [{"seed": 1}, {"seed": -1}, {"task": "sentiment"}], ids=str)
def test_the_same_seed_gives_the_same_splits_and_another_seed_or_task_gives_others(changes: dict[str, object]) -> None:
    split = Split(0.2, 10, 0.8)
    first = assigned(singles(50), split)
    assert first == assigned(singles(50), split)
    other = assigned(singles(50), split, **changes)  # type: ignore[arg-type]
    assert first.generative != other.generative
    assert first.encoder != other.encoder


def test_every_text_is_as_likely_as_another_to_be_tested() -> None:
    tested = Counter(
        i
        for seed in range(400)
        for i, split in assigned(singles(20), Split(0.2, 5, 0.8), seed).generative.items()
        if split == "test"
    )
    assert min(tested.values()) > 65  # 100 are expected, with a standard deviation of 8.7
    assert max(tested.values()) < 135


@pytest.mark.parametrize("count", range(2, 12))
@pytest.mark.parametrize(
    "split", [Split(0.2, 3, 0.8), Split(0.2, 8, 0.8), Split(0.2, 1, 0.8), Split(0.01, 3, 0.5)], ids=str
)
def test_every_split_has_a_text_or_there_is_an_error(count: int, split: Split) -> None:
    try:
        found = assigned(singles(count), split)
    except DataError:
        return
    assert set(found.generative.values()) == {"prompt", "test", "validation"}
    assert set(found.encoder.values()) == {"train", "test", "validation"}


@pytest.mark.parametrize(
    ("members", "split", "message"),
    [
        (singles(3), Split(0.2, 3, 0.8), r"'qa': 3 kept texts are too few .* lower data\.split\.test to at most 1$"),
        (singles(10), Split(0.2, 8, 0.8), r"10 kept texts are too few .* lower data\.split\.test to at most 7$"),
        (singles(10), Split(0.01, 3, 0.8), r"10 kept texts are too few for data\.split\.prompt=0\.01"),
        (singles(1), Split(0.2, 3, 0.8), "1 kept texts are too few"),
        ([], Split(0.2, 3, 0.8), "0 kept texts are too few"),
    ],
)
def test_too_few_texts_is_an_error_that_says_what_to_lower(
    members: list[list[str]], split: Split, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        assigned(members, split)


def test_what_the_error_says_helps() -> None:
    assert Counter(assigned(singles(10), Split(0.2, 7, 0.6)).generative.values())["test"] == 7


def test_families_too_large_to_divide_are_named_as_the_reason() -> None:
    with pytest.raises(DataError, match=r"belong together|near cop|group"):
        assigned([[f"{n}" for n in range(20)]], Split(0.2, 3, 0.8))
