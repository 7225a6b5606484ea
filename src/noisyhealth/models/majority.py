"""The commonest training answer, whatever is asked: the floor, and what smoke runs use."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from noisyhealth.models.model import FREE, Price
from noisyhealth.records import Query, Reply, Training
from noisyhealth.text.prompt import Wording


@dataclass
class Majority:
    """Replies with the answer that most training examples have; ties go to the first by name."""

    name: str = "majority"
    _answer: str = field(default="", init=False)

    @property
    def batch(self) -> bool:
        """No: it answers at once."""
        return False

    @property
    def label(self) -> str:
        """Who answers."""
        return self.name

    def check(self) -> None:
        """Need nothing."""

    def fit(self, wording: Wording, training: Training) -> None:
        """Count the training answers."""
        counts = Counter(e.target for e in training.train)
        self._answer = min(counts, key=lambda answer: (-counts[answer], answer))

    def signature(self) -> Mapping[str, object]:
        """Return the answer that was found."""
        return {"model": self.name, "answer": self._answer}

    def request(self, query: Query) -> Mapping[str, object]:
        """Return the query."""
        return {"text": query.text, "question": query.question}

    def price(self) -> Price:
        """Return that nothing is paid."""
        return FREE

    def shots(self) -> tuple[str, ...]:
        """Return that no prompt shows an example."""
        return ()

    def fitted(self) -> None:
        """Return that nothing is fine-tuned."""
        return

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Yield the same answer for every query."""
        for query in queries:
            yield Reply(query.id, self._answer, "stop", 0, 0, 0.0)
