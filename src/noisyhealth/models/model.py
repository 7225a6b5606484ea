"""What every model can do: learn from training examples, and reply to queries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from types import MappingProxyType
from typing import Protocol

from noisyhealth.records import Fit, Query, Reply, Training
from noisyhealth.text.prompt import Wording


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's owner asks: US dollars a million tokens of prompts and of replies."""

    prompt: float
    reply: float

    def usd(self, prompt_tokens: float, reply_tokens: float) -> float:
        """Return what so many tokens cost in US dollars.

        >>> Price(0.15, 0.60).usd(2_000_000, 1_000_000)
        0.9
        """
        return (self.prompt * prompt_tokens + self.reply * reply_tokens) / 1e6

    def times(self, share: float) -> "Price":
        """Return a share of the price: of a batch, where it costs a fraction.

        >>> Price(0.15, 0.60).times(0.5)
        Price(prompt=0.075, reply=0.3)
        """
        return Price(self.prompt * share, self.reply * share)


FREE = Price(0.0, 0.0)
PACKAGED: Mapping[str, str] = MappingProxyType({})  # no code of the user's


class Model(Protocol):
    """A model that answers. Making one, and `fit`, cost nothing: work begins with `predict`.

    So a cell whose replies are all known never loads weights.
    """

    @property
    def label(self) -> str:
        """Who answers, with the weights that do: "llama(SmolLM2-135M)"."""
        ...

    @property
    def batch(self) -> bool:
        """Whether its replies may take hours, so that all texts of a sweep should be put to it at once."""
        ...

    def check(self) -> None:
        """Raise WeightsError when a key, a package or a hub that `predict` needs is not there."""
        ...

    def fit(self, wording: Wording, training: Training) -> None:
        """Learn: a language model takes its shots, an encoder is fine-tuned before it predicts."""
        ...

    def signature(self) -> Mapping[str, object]:
        """Return all that decides a reply besides the query, as plain JSON values."""
        ...

    def request(self, query: Query) -> Mapping[str, object]:
        """Return what is put to the model for one query, whole, as plain JSON values."""
        ...

    def price(self) -> Price | None:
        """Return what tokens cost, `FREE` where nothing is paid, None where it is not known."""
        ...

    def shots(self) -> Sequence[str]:
        """Return the ids of the examples that every prompt shows, in their order; none where none is shown."""
        ...

    def fitted(self) -> Fit | None:
        """Return how the model was fine-tuned; None where it is not, or where its fit is not made or kept."""
        ...

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Return an iterator of one reply a query, as each arrives, in any order; work may begin before the first."""
        ...


def reply_key(model: Model, query: Query, repeat: int = 0, own: Mapping[str, str] = PACKAGED) -> str:
    """Return the hash under which a reply is kept: of all that decides it, and of nothing else.

    `repeat` tells the times apart that the same is asked; `own` is as in `whole_signature`.
    """
    return key_of(whole_signature(model, own), model.request(query), repeat)


def whole_signature(model: Model, own: Mapping[str, str] = PACKAGED) -> dict[str, object]:
    """Return all that decides a reply besides the query; `own`: hashes of the user's code in it, by module."""
    return {**model.signature(), **({"own_code": dict(own)} if own else {})}


def key_of(signature: Mapping[str, object], request: Mapping[str, object], repeat: int = 0) -> str:
    """Return the same hash from what a model says of itself and what it was asked."""
    whole: dict[str, object] = {"signature": signature, "request": request}
    if repeat:
        whole["repeat"] = repeat
    return sha256(dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
