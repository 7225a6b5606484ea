"""The frozen values that travel between the parts.

    Example -> Word -> Variant (with its Edits) -> Query -> Reply -> Answer -> scores

Nothing here does anything: every rule lives in the part that makes the value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

Scores: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True)
class Example:
    """One text with the answer that counts as right.

    `target` is a label of the task, or a reference answer for free answers.
    `question` is empty where the task asks the same of every text.
    `group` names what must not be torn between splits (a note, a patient); examples
    with the same group share a split.
    """

    id: str
    text: str
    target: str
    question: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: `text` stands in the original from character `start` on.

    `valid`: an adjective, adverb, verb or noun that no rule protects; the only words disturbed.
    `medical`: the word is, or is part of, a medical term.
    """

    text: str
    start: int
    pos: str
    valid: bool
    medical: bool

    @property
    def end(self) -> int:
        """The first character after the word."""
        return self.start + len(self.text)


class Edit(NamedTuple):
    """A span of the original text and what stands there afterwards.

    `start` counts characters of the original. `op` says what was done (for a typo, each
    operation joined by +). `word` is the index of the disturbed word in the text. `flags` name what
    the word was or became that can change a reading: negation, number, laterality, drug.
    """

    start: int
    before: str
    after: str
    op: str
    pos: str
    medical: bool
    word: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dose:
    """What a disturbance really was, for one text.

    `words`, `valid_words`: fraction of them edited, 0 to 1. `edit_distance`: characters inserted, deleted,
    substituted or transposed (optimal string alignment, summed over the edits); `characters`: the same as a
    fraction of the original's characters. `medical`: fraction of the edits that touch a medical word, 0 without edits.
    `total_words`, `total_valid_words`: how many the original has.
    """

    words: float = 0.0
    valid_words: float = 0.0
    characters: float = 0.0
    edit_distance: int = 0
    medical: float = 0.0
    total_words: int = 0
    total_valid_words: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """A text disturbed to one level; replaying `edits` on the original gives `text`."""

    id: str
    text: str
    edits: tuple[Edit, ...]
    dose: Dose


@dataclass(frozen=True, slots=True)
class Query:
    """What a model is asked. It never holds the right answer.

    `options` are the labels to choose from; empty when the answer is free.
    """

    id: str
    text: str
    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Training:
    """The examples a model may learn from; none of them is ever tested on.

    `prompt` is the pool for shots (the study's 20 %). `train` and `validation` are for
    models that are fine-tuned (80/20 of everything but the test set).
    """

    prompt: tuple[Example, ...]
    train: tuple[Example, ...]
    validation: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model gave back to the query `id`, word for word.

    `finish`: "stop" (it ended by itself), "length" (cut at the limit), "choice" (the likeliest
    of the options), "span" (a piece of the text), "refusal" (the model declined), "content_filter" (an answer was
    withheld), "unknown" (the server did not say) or "error" (no reply could be had; `text` is empty, `detail` says
    why). `detail` holds what the model can add: scores of the options, the server's own model name, the request id;
    `usage` is "unknown" there when the server did not count the tokens, which then are 0.
    """

    id: str
    text: str
    finish: str
    prompt_tokens: int
    reply_tokens: int
    seconds: float
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fit:
    """How a model was fine-tuned, as its fit left it on disk.

    `key`: the hash of all that decides the fit. `facts`: settings, sizes, versions, seconds, and the score on the
    validation texts (`validation_score`, of the kind `score` names). `curves`: a CSV table of what was logged, by step.
    """

    key: str
    facts: Mapping[str, object]
    curves: str


class Outcome(StrEnum):
    """What became of one query; over a cell the counts sum to n.

    Only `FAILED` (no reply could be had) makes a cell incomplete. Every other outcome but
    `SCORED` is a wrong answer, counted under its name.
    """

    SCORED = "scored"
    UNPARSED = "unparsed"
    REFUSED = "refused"
    EMPTY = "empty"
    CUT = "cut"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as read: `value` is a label or a free answer, "" unless the outcome is scored."""

    id: str
    reply: str
    value: str
    outcome: Outcome
