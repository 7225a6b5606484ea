"""Which span of a note stands nearest to a reference answer, and where whole words begin and end. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from noisyhealth.text.words import spans as words_of


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a text, in characters from `start` up to, not with, `end`.

    `f1`: how much its words agree with the reference answer's, 0 to 1.
    """

    start: int
    end: int
    f1: float


def nearest_passage(text: str, answer: str, *, longest: int) -> Passage | None:
    """Return the run of at most `longest` words with the best word F1, or None when no word is shared.

    Words are compared without case and outer punctuation. F1 is SQuAD's (Rajpurkar et al. 2016,
    doi:10.18653/v1/D16-1264), articles kept. Of equals the one with the fewest words wins, then the first.

    >>> nearest_passage("No fever. Took 2.5 mg of Warfarin, then slept.", "warfarin 2.5 mg", longest=30)
    Passage(start=15, end=33, f1=0.8571428571428571)
    """
    words = words_of(text)
    wanted = Counter(word.text.casefold() for word in words_of(answer))
    found = [word.text.casefold() for word in words]
    best: tuple[float, int, int, int] | None = None  # F1, -words, -first word, words: the greatest wins
    for first, word in enumerate(found):
        # A best span begins and ends with a word of the answer: without any other it would score higher.
        if word in wanted:
            f1, count = _best_from(found[first : first + longest], wanted)
            best = max(best, (f1, -count, -first, count)) if best else (f1, -count, -first, count)
    if best is None:
        return None
    f1, _, first, count = best[0], best[1], -best[2], best[3]
    last = words[first + count - 1]
    return Passage(words[first].start, last.start + len(last.text), f1)


def word_bounds(text: str) -> list[tuple[int, int]]:
    """Return where each word of a text starts and ends, in characters."""
    return [(word.start, word.start + len(word.text)) for word in words_of(text)]


def word_index(bounds: Sequence[tuple[int, int]], place: int) -> int:
    """Return the number of the word that a character belongs to; punctuation belongs to the word before it.

    >>> [word_index([(0, 2), (4, 9)], place) for place in (0, 2, 4, 8, 9)]
    [0, 0, 1, 1, 1]
    """
    return max(0, bisect_right(bounds, place, key=lambda bound: bound[0]) - 1)


def whole_words(bounds: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """Return the span widened so that it tears no word.

    >>> whole_words([(0, 2), (4, 9)], 5, 7)
    (4, 9)
    """
    for left, right in bounds:
        if left < start < right:
            start = left
        if left < end < right:
            end = right
    return start, end


def _best_from(found: Sequence[str], wanted: Counter[str]) -> tuple[float, int]:
    """Return the best F1 of the runs that begin with the first word, and the words of the shortest such run."""
    left, total, shared, best = wanted.copy(), wanted.total(), 0, (0.0, 0)
    for count, word in enumerate(found, start=1):
        if left[word] > 0:
            left[word] -= 1
            shared += 1
            f1 = 2 * shared / (count + total)
            if f1 > best[0]:
                best = (f1, count)
    return best
