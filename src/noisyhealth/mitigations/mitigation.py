"""What is done about disturbed input: before a text is asked, and with the answers to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from noisyhealth.records import Answer, Dose, Scores, Variant

Learned: TypeAlias = Mapping[str, Sequence[float]]
Alike: TypeAlias = Callable[[Answer, Answer], float]


@dataclass(frozen=True, slots=True)
class Input:
    """A text as it came in, clean or disturbed: in use nobody knows which. `id` is its example's."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one version of the texts, clean or disturbed; in each part a place a text.

    `facts`: what `look` found. `answers`: those to its copies, of which number `chosen` counts. `right`: how right that
    answer is, 0 to 1.
    """

    facts: tuple[Scores, ...]
    answers: tuple[tuple[Answer, ...], ...]
    chosen: tuple[int, ...]
    right: tuple[float, ...]


class Mitigation(Protocol):
    """A way to make answers suffer less, or to know when they may.

    Whatever is random must follow from its settings and the input alone: a run that is checked later makes everything
    again. Of a run that keeps no texts only numbers are left, so `measure` counts with what `look` found.
    """

    @property
    def name(self) -> str:
        """What it is called: `mitigate=` this, the name of its file in conf/mitigate."""
        ...

    def learn(self, texts: Sequence[str]) -> Learned:
        """Return, as named lists of numbers, what it takes from clean validation texts; nothing where it learns not."""
        ...

    def ask(self, inputs: Sequence[Input]) -> list[tuple[Variant, ...]]:
        """Return what is asked in place of each text: one copy or several, with its edits on the text as it came in."""
        ...

    def look(self, original: str, came: Variant, copies: Sequence[Variant]) -> Scores:
        """Return numbers on one text, for `measure`; only here is known what the text was, and how it was disturbed."""
        ...

    def choose(self, answers: Sequence[Answer], alike: Alike) -> int:
        """Return which of the answers to the copies of a text counts; `alike` says from 0 to 1 how alike two are."""
        ...

    def measure(self, seen: Seen, clean: Seen | None, learned: Learned) -> Scores:
        """Return its own metrics, each with its n, on a cell's texts and (None for the baseline) on the clean ones."""
        ...


def as_it_came(one: Input) -> Variant:
    """Return a text as a copy without edits."""
    return Variant(one.id, one.text, (), Dose())


def on_both(of: Callable[[Seen], Scores], seen: Seen, clean: Seen | None) -> Scores:
    """Return the metrics of a cell's texts, and under `clean_` names those of the clean ones."""
    return of(seen) | ({f"clean_{name}": value for name, value in of(clean).items()} if clean else {})
