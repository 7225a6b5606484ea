"""Detector: a text with many words that no table knows is flagged as risky before it is asked.

The answers stay as they are; what the flag is worth is told beside them. How many unknown words are too many is chosen
on clean validation texts: so many that few of those would be flagged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.metrics.ranking import auroc
from noisyhealth.mitigations.mitigation import Alike, Input, Learned, Seen, as_it_came, on_both
from noisyhealth.records import Answer, Scores, Variant
from noisyhealth.text.vocabulary import Vocabulary, judged

_RISK = "risk"


@dataclass(frozen=True)
class Detect:
    """Flags a text whose risk, the share of its words that are unknown, is above a threshold.

    `false_alarms`: the most of the clean validation texts that may be flagged, a fraction from 0 to 1; the threshold is
    the least risk among theirs that holds it. `shortest`: words of fewer letters are not looked at.
    """

    name: str
    false_alarms: float
    shortest: int

    def __post_init__(self) -> None:
        """Raise ConfigError for a share that is none."""
        if not 0 <= self.false_alarms < 1:
            raise ConfigError(f"mitigate.false_alarms={self.false_alarms}: give a fraction of texts from 0 to below 1")
        if self.shortest < 1:
            raise ConfigError(f"mitigate.shortest={self.shortest}: give a whole number of 1 or more")

    def learn(self, texts: Sequence[str]) -> Learned:
        """Return the risk of each text. Raises DataError where there is none."""
        if not texts:
            raise DataError("mitigate=detect: no validation text to choose the threshold by: give data.split.test less")
        return {_RISK: [self.risk(text) for text in texts]}

    def risk(self, text: str) -> float:
        """Return the share of a text's words that are unknown, 0 to 1; 0 for a text without any to look at."""
        looked = [piece.text.lower() for piece in judged(text) if len(piece.text) >= self.shortest]
        return fmean(piece not in Vocabulary() for piece in looked) if looked else 0.0

    def ask(self, inputs: Sequence[Input]) -> list[tuple[Variant, ...]]:
        """Return each text as it came."""
        return [(as_it_came(one),) for one in inputs]

    def look(self, original: str, came: Variant, copies: Sequence[Variant]) -> Scores:
        """Return the risk of the text as it came."""
        return {_RISK: self.risk(came.text)}

    def choose(self, answers: Sequence[Answer], alike: Alike) -> int:
        """Take the only answer."""
        return 0

    def measure(self, seen: Seen, clean: Seen | None, learned: Learned) -> Scores:
        """Return how many texts are flagged, how right answers to flagged and other texts are, and AUROCs of the risk.

        An AUROC, 0 to 1, is how often a text of one kind has the higher risk than one of the other (equal risks count a
        half): disturbed against clean, and answered wrongly against rightly. None where one of the kinds is not there.
        """
        risks = sorted(learned[_RISK])
        threshold = risks[ceil((1 - self.false_alarms) * len(risks) - 1e-9) - 1]
        found = on_both(lambda one: _flagged(one, threshold), seen, clean)
        if clean:
            texts = [*seen.facts, *clean.facts]
            disturbed = [at < len(seen.facts) for at in range(len(texts))]
            found |= _told("detect/auroc_disturbed", [facts[_RISK] for facts in texts], disturbed)
        return {"detect/threshold": threshold, "detect/validation_n": len(risks), **found}


def _flagged(seen: Seen, threshold: float) -> Scores:
    """Return the metrics of one version of the texts."""
    risks = [facts[_RISK] for facts in seen.facts]
    found: Scores = {"detect/n": len(risks), "detect/flagged": fmean(risk > threshold for risk in risks)}
    for name, flagged in (("flagged", True), ("unflagged", False)):
        rights = [right for risk, right in zip(risks, seen.right, strict=True) if (risk > threshold) is flagged]
        found[f"detect/{name}_n"] = len(rights)
        if rights:
            found[f"detect/right_{name}"] = fmean(rights)
    if set(seen.right) <= {0.0, 1.0}:  # a free answer is more or less right
        found |= _told("detect/auroc_wrong", risks, [right == 0 for right in seen.right])
    return found


def _told(name: str, risks: Sequence[float], positive: Sequence[bool]) -> Scores:
    """Return an AUROC with how many texts of each kind it is of."""
    found: Scores = {f"{name}_n": len(risks), f"{name}_positive_n": sum(positive)}
    area = auroc(risks, positive)
    return found if area is None else {**found, name: area}
