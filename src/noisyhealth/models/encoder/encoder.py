"""An encoder of the BERT family that is fine-tuned once and then answers: labels, or spans of a note.

fit(training) -> remembered;  predict(queries) -> fit made or found in `<cache>/fits/<key>/` -> replies
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from noisyhealth.errors import ConfigError
from noisyhealth.models.encoder.recipe import CURVES, FACTS, Recipe, fit_key, labels_of
from noisyhealth.models.model import FREE, Price
from noisyhealth.models.weights import Source, as_mapping, made_once
from noisyhealth.records import Fit, Query, Reply, Training
from noisyhealth.text.prompt import Wording

if TYPE_CHECKING:
    from noisyhealth.models.encoder.read import Window
    from noisyhealth.models.encoder.reply import Fitted

_PREDICT_BATCH = 32  # texts; decides speed and, as all rounding, the last digits of scores


@dataclass(kw_only=True)
class Encoder:
    """A Model that fine-tunes `source` on the training examples before it first predicts.

    `cache`: the folder that fits are kept in. `epochs`: at most; training stops after `patience` epochs
    without a better validation score. `batch_size`: texts a step on a device, times `accumulate` steps.
    `max_length`: word pieces read at once. `pooling`: "mean" of all pieces or "cls", the first one.
    `warmup`: fraction of all steps, 0 to 1. `precision`: "auto" or one of Lightning's names.
    `gradient_clip`: the largest norm of a step's gradients, 0 for any.
    `class_weights`: "none", or "balanced": each label counts the same in the loss, however rare it is.
    For answers that are spans: `stride` is how many pieces neighbouring windows share, `longest` the most
    words of an answer. `frozen`: how many of the lowest layers, and the embeddings below them, stay as
    pretrained; 0 trains everything.
    """

    name: str
    source: Source
    cache: str
    seed: int
    epochs: int
    learning_rate: float
    batch_size: int
    max_length: int
    pooling: str
    warmup: float
    weight_decay: float
    patience: int
    accelerator: str
    devices: int
    accumulate: int
    precision: str = "auto"
    stride: int = 64
    longest: int = 30
    frozen: int = 0
    class_weights: str = "none"
    gradient_clip: float = 1.0
    _training: Training | None = field(default=None, init=False, repr=False)
    _key: str | None = field(default=None, init=False, repr=False)

    @property
    def batch(self) -> bool:
        """No: it answers at once."""
        return False

    @property
    def label(self) -> str:
        """The name with the weights behind it."""
        return f"{self.name}({self.source.name})"

    def check(self) -> None:
        """Raise WeightsError when the weights cannot be had, ConfigError for a setting no fit can use."""
        self._recipe().check()
        self.source.check()
        self._check_frozen()

    def fit(self, wording: Wording, training: Training) -> None:
        """Remember the examples; `predict` fine-tunes on them. An encoder is asked without words."""
        self._training, self._key = training, None

    def signature(self) -> Mapping[str, object]:
        """Return name, weights, fit and precision."""
        return {
            "model": self.name,
            **as_mapping(self.source),
            "fit": self._fit_key(),
            "dtype": self._recipe().precision,
        }

    def request(self, query: Query) -> Mapping[str, object]:
        """Return the text, the question and the options."""
        return {"text": query.text, "question": query.question, "options": list(query.options)}

    def price(self) -> Price:
        """Return that nothing is paid."""
        return FREE

    def shots(self) -> tuple[str, ...]:
        """Return that no prompt shows an example."""
        return ()

    def fitted(self) -> Fit | None:
        """Return how the model was fitted, None before it is."""
        folder = self._folder()
        if not folder.exists():
            return None
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        return Fit(self._fit_key(), facts, (folder / CURVES).read_text(encoding="utf-8"))

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Yield one reply a query, short texts first; fine-tunes before the first one where no fit is kept.

        Raises ConfigError when the training texts have other labels than a query offers.
        """
        if not queries:
            return
        assert self._training is not None, "fit() comes before predict()"
        labels = labels_of(self._training)
        # Of no text and of one label alone, the fit itself says what is wrong.
        for query in queries if self._training.train and len(labels) != 1 else ():
            if set(labels) != set(query.options):  # known before hours of fine-tuning
                raise ConfigError(
                    f"query {query.id!r} offers {list(query.options)}, but the encoder is fitted on "
                    f"{list(labels) or 'questions with free answers'}: training texts need these labels and no other"
                )
        fitted = self._fitted()
        order = sorted(((query, fitted.read(query)) for query in queries), key=lambda asked: _size(*asked))
        for at in range(0, len(order), _PREDICT_BATCH):
            yield from fitted.replies(order[at : at + _PREDICT_BATCH])

    def _check_frozen(self) -> None:
        """Raise ConfigError for more frozen layers than there are; without the weights' file the fit says so."""
        if not self.frozen or (path := self.source.config()) is None:
            return
        deep = json.loads(path.read_text(encoding="utf-8")).get("num_hidden_layers")
        if isinstance(deep, int) and self.frozen > deep:
            raise ConfigError(f"model.frozen={self.frozen}, but the weights have {deep} layers: give {deep} or less")

    def _fitted(self) -> Fitted:
        """Return the fit, made first where no one has; it stays in memory for the next cell."""
        from noisyhealth.models.encoder.reply import load_fitted

        assert self._training is not None, "fit() comes before predict()"
        folder = self._folder()
        with made_once(folder) as part:
            if part is not None:
                from noisyhealth.models.encoder.fit import fit  # imports Lightning: 10 seconds

                part.mkdir()
                fit(self._training, self.source.folder(), self._recipe(), part)
        return load_fitted(folder, self.source.folder(), self._recipe())

    def _folder(self) -> Path:
        return Path(self.cache) / "fits" / self._fit_key()

    def _fit_key(self) -> str:
        assert self._training is not None, "fit() comes before signature()"
        if self._key is None:
            self._key = fit_key(self._recipe(), self.source.identity, self._training)
        return self._key

    def _recipe(self) -> Recipe:
        settings = {f.name: getattr(self, f.name) for f in fields(Recipe)}
        accelerator, precision = _settled(self.accelerator, str(self.precision))
        return Recipe(**settings | {"accelerator": accelerator, "precision": precision})


def _size(query: Query, windows: Sequence[Window]) -> tuple[int, str]:
    return sum(map(len, windows)), query.id


@cache
def _settled(accelerator: str, precision: str) -> tuple[str, str]:
    """Return the device and the precision that "auto" stands for on this machine."""
    import torch

    gpu = torch.cuda.is_available()
    device = {"auto": "cuda" if gpu else "cpu", "gpu": "cuda"}.get(accelerator, accelerator)
    if precision != "auto":
        return device, {"32": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}.get(precision, precision)
    if device == "cuda":
        fast = gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = device == "cpu" and (torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())
    return device, "bf16-mixed" if fast else "32-true"
