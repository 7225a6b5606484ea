from random import Random

import pytest

from noisyhealth.models.encoder.spans import nearest_passage, whole_words, word_bounds
from noisyhealth.text.words import spans

NOTE = "He takes aspirin 75 mg daily. Aspirin 75 mg was begun in May, after the second stroke."


@pytest.mark.parametrize(
    ("answer", "expected", "f1"),
    [
        ("after the second stroke", "after the second stroke", 1.0),
        ("AFTER the second stroke!", "after the second stroke", 1.0),
        ("stroke", "stroke", 1.0),
        ("aspirin 75 mg", "aspirin 75 mg", 1.0),  # twice in the note: the first wins
        ("the stroke", "the second stroke", 0.8),
        ("daily aspirin", "daily. Aspirin", 1.0),  # any order, and shorter than "aspirin 75 mg daily"
        ("mg of warfarin", "mg", 0.5),
        ("May June", "May", 2 / 3),
        ("May June after", "May, after", 0.8),
    ],
)
def test_the_nearest_passage_has_the_best_word_f1_and_the_fewest_words(answer: str, expected: str, f1: float) -> None:
    found = nearest_passage(NOTE, answer, longest=30)
    assert found is not None
    assert NOTE[found.start : found.end] == expected
    assert found.f1 == pytest.approx(f1)


@pytest.mark.parametrize("answer", ["", "warfarin", "...", "🙂"])
def test_an_answer_that_shares_no_word_with_the_note_has_no_passage(answer: str) -> None:
    assert nearest_passage(NOTE, answer, longest=30) is None
    assert nearest_passage("", answer, longest=30) is None


def test_a_passage_is_no_longer_than_the_cap() -> None:
    found = nearest_passage(NOTE, NOTE, longest=4)
    assert found is not None
    assert len(NOTE[found.start : found.end].split()) == 4
    assert found.start == 0


def test_no_other_span_is_better_or_equal_and_shorter() -> None:
    rng = Random(1)
    for _ in range(200):
        text = " ".join(rng.choices("abcde", k=rng.randint(1, 9)))
        answer = " ".join(rng.choices("abcdef", k=rng.randint(1, 4)))
        assert _place(nearest_passage(text, answer, longest=5)) == _by_trying_all(text, answer, 5)


def test_whole_words_are_not_torn() -> None:
    text = "(mild) dyspnoea, 2.5 mg"
    bounds = word_bounds(text)
    assert [text[a:b] for a, b in bounds] == ["mild", "dyspnoea", "2.5", "mg"]
    assert whole_words(bounds, 9, 18) == (7, 20)
    assert whole_words(bounds, 7, 15) == (7, 15)
    assert whole_words(bounds, 0, 16) == (0, 16)


def _place(found: object) -> tuple[int, int] | None:
    return None if found is None else (found.start, found.end)  # type: ignore[attr-defined]


def _by_trying_all(text: str, answer: str, longest: int) -> tuple[int, int] | None:
    words, wanted = spans(text), [w.text for w in spans(answer)]
    tried = []
    for i in range(len(words)):
        for j in range(i + 1, min(i + longest, len(words)) + 1):
            found = [w.text for w in words[i:j]]
            shared = sum(min(found.count(w), wanted.count(w)) for w in set(found))
            tried.append((-2 * shared / (len(found) + len(wanted)), j - i, i))
    best = min(tried)
    return None if best[0] == 0 else (words[best[2]].start, words[best[2] + best[1] - 1].start + 1)
