"""Vote: a question is asked in several further disturbed copies, and the answer of most of them counts.

Whatever one disturbance does to an answer, others may not do. It costs a call a copy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from noisyhealth.dataset.design import Disturbance
from noisyhealth.errors import ConfigError
from noisyhealth.mitigations.mitigation import Alike, Input, Learned, Seen, as_it_came, on_both
from noisyhealth.perturbations.engine import Key, Unit, disturb, ranked
from noisyhealth.records import Answer, Outcome, Scores, Variant, Word
from noisyhealth.text.flags import flags
from noisyhealth.text.tagger import Tagger

_COPIES = "copy"


@dataclass(frozen=True)
class Vote:
    """Asks `copies` copies of each text, an odd number, each with `rate` of its words disturbed anew by `perturb`.

    `rate`: fraction of the perturbation's unit, 0 to 1; a text that cannot reach it is asked as it came. `valid_pos`
    and `protect`: as of the study's disturbances. `seed`, `task`: of the copies' own stream of randomness. Raises
    ConfigError for numbers that cannot be used.
    """

    name: str
    copies: int
    rate: float
    perturb: Disturbance
    valid_pos: Sequence[str]
    protect: Sequence[str]
    seed: int
    task: str

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.copies < 3 or self.copies % 2 == 0:
            raise ConfigError(f"mitigate.copies={self.copies}: give an odd number of 3 or more, so that most can agree")
        if not 0 < self.rate <= 1:
            raise ConfigError(f"mitigate.rate={self.rate}: give a fraction of all words above 0 and up to 1")
        if self.perturb.change is None:
            raise ConfigError("mitigate.perturb is none: copies without a disturbance are one and the same question")

    def learn(self, texts: Sequence[str]) -> Learned:
        """Learn nothing."""
        return {}

    def ask(self, inputs: Sequence[Input]) -> list[tuple[Variant, ...]]:
        """Return the copies of each text."""
        tagger = Tagger(frozenset(self.valid_pos), frozenset(self.protect))
        tagged = tagger.tag([one.text for one in inputs])
        return [tuple(self._drawn(one, words)) for one, words in zip(inputs, tagged, strict=True)]

    def look(self, original: str, came: Variant, copies: Sequence[Variant]) -> Scores:
        """Count the copies that are as the text came."""
        return {"unchanged": sum(not copy.edits for copy in copies)}

    def choose(self, answers: Sequence[Answer], alike: Alike) -> int:
        """Return the answer most like the others: where answers are labels, one of the label that most copies gave.

        Of several the first. What could not be read has no vote; where nothing could, the first answer stands.
        """
        votes = _votes(answers)
        likeness = {at: sum(alike(answers[at], answers[other]) for other in votes if other != at) for at in votes}
        return max(votes, key=lambda at: likeness[at], default=0)

    def measure(self, seen: Seen, clean: Seen | None, learned: Learned) -> Scores:
        """Return how far the copies of a text agree."""
        return on_both(_agreement, seen, clean)

    def _drawn(self, one: Input, words: Sequence[Word]) -> Iterator[Variant]:
        change = self.perturb.change
        if change is None:
            raise AssertionError("checked when it was made")
        for copy in range(self.copies):
            key = Key(self.seed, self.task, one.id, f"{self.name} {self.perturb.name}", draw=copy)
            edits = ranked(one.text, words, change, key.rng(), flags)
            unit = Unit(self.perturb.unit)
            made = disturb(one.text, words, edits, rates={_COPIES: self.rate}, unit=unit, example=one.id)[_COPIES]
            yield made if isinstance(made, Variant) else as_it_came(one)


def _votes(answers: Sequence[Answer]) -> list[int]:
    return [at for at, answer in enumerate(answers) if answer.outcome is Outcome.SCORED]


def _agreement(seen: Seen) -> Scores:
    """Return as means over the texts: the share of copies with the answer that counts, and of texts where all have it.

    `vote/unchanged`: the share of copies that could not be disturbed.
    """
    shares = [
        fmean(one.outcome is Outcome.SCORED and one.value == answers[at].value for one in answers)
        for answers, at in zip(seen.answers, seen.chosen, strict=True)
    ]
    copies = sum(map(len, seen.answers))
    return {
        "vote/n": len(shares),
        "vote/copies": copies,
        "vote/agreement": fmean(shares),
        "vote/unanimous": fmean(share == 1 for share in shares),
        "vote/unchanged": sum(facts["unchanged"] for facts in seen.facts) / copies,
    }
