"""Spelling repair: unknown words become the known word that they were most likely meant to be.

    "I have a headahce all weke" -> "I have a headache all week"

A noisy channel without context: the fewest typing errors between the two, then the commonest word (M. D. Kernighan,
K. W. Church, W. A. Gale, "A Spelling Correction Program Based on a Noisy Channel Model", COLING 1990).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noisyhealth.errors import ConfigError
from noisyhealth.mitigations.mitigation import Alike, Input, Learned, Seen, on_both
from noisyhealth.perturbations.engine import replay
from noisyhealth.records import Answer, Dose, Edit, Scores, Variant
from noisyhealth.text.flags import flags
from noisyhealth.text.vocabulary import Piece, Vocabulary, judged
from noisyhealth.text.words import spans


@dataclass(frozen=True)
class Spelling:
    """Repairs words of `shortest` letters or more, over at most one typing error for each `letters_per_error` letters.

    `commonness`: how common a word must be that is put in over one error, over two, and so on (10 times the common
    logarithm of its count in books). Left alone: known words, and those that `judged` leaves out.
    """

    name: str
    shortest: int
    letters_per_error: int
    commonness: Sequence[int]

    def __post_init__(self) -> None:
        """Raise ConfigError for a number below 1, or no error to be repaired."""
        for name in ("shortest", "letters_per_error"):
            if getattr(self, name) < 1:
                raise ConfigError(f"mitigate.{name}={getattr(self, name)}: give a whole number of 1 or more")
        if not self.commonness:
            raise ConfigError("mitigate.commonness=[]: give a number for each error over which a word is repaired")

    def learn(self, texts: Sequence[str]) -> Learned:
        """Learn nothing: the words are those of the package's tables."""
        return {}

    def ask(self, inputs: Sequence[Input]) -> list[tuple[Variant, ...]]:
        """Return each text repaired."""
        return [(self._repaired(one),) for one in inputs]

    def look(self, original: str, came: Variant, copies: Sequence[Variant]) -> Scores:
        """Count, of the words that were edited, those that are as they were; of the others, those that are not."""
        repairs = list(copies[0].edits)
        undone = otherwise = 0
        for start, edit in _places(came.edits):
            inside = [one for one in repairs if start <= one.start < start + len(edit.after)]
            repairs = [one for one in repairs if one not in inside]
            again = replay(edit.after, [one._replace(start=one.start - start) for one in inside])
            undone += again == edit.before
            otherwise += bool(inside) and again != edit.before
        words = len(spans(came.text)) - sum(bool(edit.after) for edit in came.edits)
        numbers = {"edits": len(came.edits), "undone": undone, "otherwise": otherwise}
        return {**numbers, "words": words, "damaged": len({one.word for one in repairs})}

    def choose(self, answers: Sequence[Answer], alike: Alike) -> int:
        """Take the only answer."""
        return 0

    def measure(self, seen: Seen, clean: Seen | None, learned: Learned) -> Scores:
        """Return how many edits were undone, and how many words that nobody had touched were changed."""
        return on_both(_counted, seen, clean)

    def _repaired(self, one: Input) -> Variant:
        edits = tuple(edit for piece in judged(one.text) if (edit := self._repair(piece)))
        return Variant(one.id, replay(one.text, edits), edits, Dose())

    def _repair(self, piece: Piece) -> Edit | None:
        """Return the edit of an unknown run of letters into the word that was meant; None where it is left alone."""
        small, words, size = piece.text.lower(), Vocabulary(), len(piece.text)
        least = self.commonness[: size // self.letters_per_error]
        if size < self.shortest or not least or small in words or not (meant := words.nearest(small, least)):
            return None
        meant = meant.capitalize() if piece.text[0].isupper() else meant
        touched = tuple(dict.fromkeys((*flags(piece.text), *flags(meant))))
        return Edit(piece.start, piece.text, meant, "repair", "", False, piece.word, touched)


def _places(edits: Sequence[Edit]) -> Iterator[tuple[int, Edit]]:
    """Yield each edit with where it begins in the text that it led to."""
    moved = 0
    for edit in sorted(edits):
        yield edit.start + moved, edit
        moved += len(edit.after) - len(edit.before)


def _counted(seen: Seen) -> Scores:
    names = ("edits", "undone", "otherwise", "words", "damaged")
    counts = {name: sum(facts[name] for facts in seen.facts) for name in names}
    found = {f"repair/{name}": count for name, count in counts.items()}
    if counts["edits"]:
        found["repair/undone_share"] = counts["undone"] / counts["edits"]
    return found | ({"repair/damaged_share": counts["damaged"] / counts["words"]} if counts["words"] else {})
