"""A text and a closed set of labels: `sentiment` and `condition` of the study.

Sentiment: is the writer of a message content or not? (tweets, two classes)
    "New inhaler and no wheeze all week, so relieved" -> positive
Condition: which disease is an abstract about? (medical abstracts, three classes)
    "Carcinoma of the gallbladder. Gallbladder cancer remains difficult ..." -> digestive

Source: Joshi et al. 2026, Methods, "Study Design" and "Metrics for Evaluation".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from noisyhealth.analysis.intervals import Interval, bootstrap_f1, clustered_wilson
from noisyhealth.errors import ConfigError
from noisyhealth.metrics import classification
from noisyhealth.records import Answer, Example, Query, Reply, Scores
from noisyhealth.text.choice import check_forms
from noisyhealth.text.prompt import Wording
from noisyhealth.text.reply import check_reading, read_label

ORDERS = ("given", "reversed")
LABELS = "{labels}"


@dataclass(frozen=True)
class Classification:
    """A closed task; `labels` are all its classes, in the order of its tables.

    `aliases`: for a label, other forms of its word that count as it in a reply. `reading`: lenient, strict or last
    (`text/reply.py` has the rules). `label_order`: in which order the instruction names the labels where it says
    `{labels}`: as given, or reversed. Raises ConfigError for fewer than two labels, a reading or order there is not and
    a form of two labels.
    """

    name: str
    labels: tuple[str, ...]
    wording: Wording
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reading: str = "lenient"
    headline: str = "accuracy"
    scenarios: tuple[str, ...] = ("accuracy", "precision_macro", "recall_macro", "f1_macro")
    label_order: str = "given"

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise ConfigError(f"task.labels={list(self.labels)} of task {self.name}: a closed task has at least two")
        check_reading(self.reading, self.name)
        check_forms(self.labels, self.aliases, self.name)
        object.__setattr__(self, "wording", replace(self.wording, instruction=self._instruction()))

    def _instruction(self) -> str:
        """Return the instruction with the labels named in their order."""
        instruction = self.wording.instruction
        if self.label_order not in ORDERS:
            raise ConfigError(f"task.label_order={self.label_order!r} of task {self.name}: give {' or '.join(ORDERS)}")
        if self.label_order != "given" and LABELS not in instruction:
            raise ConfigError(
                f"task.label_order={self.label_order} of task {self.name}: its instruction {instruction!r} names the "
                f"labels itself: say {LABELS} in task.wording.instruction where they are to stand"
            )
        *first, last = self.labels if self.label_order == "given" else self.labels[::-1]
        return instruction.replace(LABELS, " or ".join([*([", ".join(first)] if first else []), last]))

    def check(self) -> None:
        """Need nothing."""

    def query(self, example: Example) -> Query:
        """Return the question which of the labels fits the text."""
        return Query(example.id, example.text, example.question, self.labels)

    def read(self, reply: Reply) -> Answer:
        """Return the one label in the reply."""
        return read_label(reply, self.labels, self.aliases, self.reading)

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """Return accuracy, precision, recall and F1 over all answers, unread ones wrong."""
        return classification.scores([e.target for e in examples], [a.value for a in answers], self.labels)

    def right(self, example: Example, answer: Answer) -> float:
        """Return 1 when the label is the target, else 0."""
        return float(answer.value == example.target)

    def intervals(self, examples: Sequence[Example], answers: Sequence[Answer], seed: int) -> dict[str, Interval]:
        """Return Wilson's interval of the accuracy and a bootstrap's of macro F1, where it has one."""
        groups = [e.group for e in examples]
        right = [self.right(e, a) for e, a in zip(examples, answers, strict=True)]
        f1 = bootstrap_f1([e.target for e in examples], [a.value for a in answers], self.labels, seed, groups)
        return {"accuracy": clustered_wilson(right, groups), **({"f1_macro": f1} if f1 else {})}
