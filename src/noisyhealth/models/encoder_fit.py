"""Fine-tuning of an encoder by Lightning: the data, the loop, and the folder that a fit leaves."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.utilities.seed import isolate_rng
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassF1Score

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.models.encoder_net import (
    Batch,
    Classifier,
    Extractor,
    Window,
    batch_of,
    load_body,
    load_config,
    load_tokenizer,
    read_note,
    read_text,
    target_of,
)
from noisyhealth.models.recipe import Recipe, versions
from noisyhealth.models.spans import nearest_passage
from noisyhealth.records import Example, Training

Item: TypeAlias = tuple[Window, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learnt from: windows with their targets.

    `labels`: the classes in the order of the scores, empty for spans. `unusable`: examples of train and
    validation left out because their answer shares no word with their note.
    """

    train: list[Item]
    validation: list[Item]
    labels: tuple[str, ...]
    unusable: int


def extracts(training: Training) -> bool:
    """Return whether answers are spans of the text: they are when the examples bring their own questions.

    A task that asks the same of every text leaves `Example.question` empty, and has labels.
    """
    return any(example.question for example in (*training.train, *training.validation))


def fit(training: Training, weights: Path, recipe: Recipe, folder: Path) -> None:
    """Fine-tune the weights and fill `folder` with `model.safetensors`, `fit.json` and `metrics.csv`.

    Raises ConfigError or DataError for settings or examples that cannot be learnt from.
    """
    recipe.check()
    begun = time.monotonic()
    tokenizer = load_tokenizer(weights, recipe.max_length)
    config = load_config(weights, recipe.max_length)
    with isolate_rng(), _deterministic():
        lightning.seed_everything(recipe.seed, workers=True, verbose=False)
        lesson = (_span_lesson if extracts(training) else _label_lesson)(training, tokenizer, recipe)
        body = load_body(weights, config)
        network = Classifier(body, recipe.pooling, len(lesson.labels)) if lesson.labels else Extractor(body)
        tuner = Tuner(network, recipe, len(lesson.labels))
        epochs, score = _run(tuner, Batches(lesson, recipe, tokenizer.pad_token_id), recipe, folder)
    facts = {
        "kind": "choice" if lesson.labels else "span",
        "labels": lesson.labels,
        "train": len(training.train),
        "validation": len(training.validation),
        "unusable": lesson.unusable,
        "epochs": epochs,
        "score": tuner.watched,
        "validation_score": score,
        "seconds": time.monotonic() - begun,
        "threads": torch.get_num_threads(),
        "versions": dict(versions()),
        "recipe": asdict(recipe),
    }
    (folder / "fit.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")


class Tuner(lightning.LightningModule):
    """Trains a network with AdamW, the rate rising over the warm-up and falling to zero after it."""

    def __init__(self, network: Classifier | Extractor, recipe: Recipe, labels: int) -> None:
        super().__init__()
        self.network = network
        self.recipe = recipe
        self.f1 = MulticlassF1Score(labels, average="macro") if labels else None

    @property
    def watched(self) -> str:
        """The number that decides which epoch is kept."""
        return "validation_f1" if self.f1 else "validation_loss"

    def on_fit_start(self) -> None:
        """Switch dropout on: transformers loads weights in eval mode, and Lightning leaves it so."""
        self.train()

    def training_step(self, batch: Batch, _: int) -> Tensor:
        """Return the loss of a batch."""
        loss = self.network.loss(self.network(batch), batch)
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=len(batch["target"]), sync_dist=True)
        return loss

    def validation_step(self, batch: Batch, _: int) -> None:
        """Record loss and F1 of a batch."""
        scores, size = self.network(batch), len(batch["target"])
        self.log("validation_loss", self.network.loss(scores, batch), batch_size=size, sync_dist=True)
        if self.f1:
            self.f1.update(scores, batch["target"][:, 0])
            self.log("validation_f1", self.f1, batch_size=size)

    def configure_optimizers(self) -> Any:
        """Return AdamW, without decay for biases and norms, and its schedule, one step a batch."""
        named = [(name, p) for name, p in self.named_parameters() if p.requires_grad]
        plain = [p for name, p in named if p.ndim < 2]
        decayed = [p for name, p in named if p.ndim >= 2]
        groups = [{"params": decayed, "weight_decay": self.recipe.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.recipe.learning_rate)
        steps = max(1, int(self.trainer.estimated_stepping_batches))
        rising = max(1, round(self.recipe.warmup * steps))

        def share(step: int) -> float:
            return min((step + 1) / rising, (steps - step) / max(1, steps - rising), 1.0)

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Batches(lightning.LightningDataModule):
    """The batches of a lesson, in an order that the seed decides."""

    def __init__(self, lesson: Lesson, recipe: Recipe, pad: int) -> None:
        super().__init__()
        self.lesson, self.recipe, self.pad = lesson, recipe, pad

    def train_dataloader(self) -> DataLoader[Item]:
        """Return the training batches, shuffled anew each epoch."""
        order = torch.Generator().manual_seed(self.recipe.seed)
        return self._loader(self.lesson.train, shuffle=True, generator=order)

    def val_dataloader(self) -> DataLoader[Item]:
        """Return the validation batches, shortest first, so that little is filled up."""
        return self._loader(sorted(self.lesson.validation, key=lambda item: len(item[0])))

    def _loader(self, items: list[Item], **settings: Any) -> DataLoader[Item]:
        # A list is a map-style dataset to torch in all but its type.
        data: Any = items
        return DataLoader(data, batch_size=self.recipe.batch_size, collate_fn=self._collate, num_workers=0, **settings)

    def _collate(self, items: Sequence[Item]) -> Batch:
        batch = batch_of([window for window, _ in items], self.pad)
        return batch | {"target": torch.tensor([target for _, target in items])}


def _label_lesson(training: Training, tokenizer: Any, recipe: Recipe) -> Lesson:
    """Return texts with the index of their label."""
    _need_examples(training)
    labels = tuple(sorted({example.target for example in (*training.train, *training.validation)}))
    if len(seen := {example.target for example in training.train}) < 2:
        raise ConfigError(
            f"all {len(training.train)} training texts are labelled {seen.pop()!r}, so there is nothing to tell apart: "
            "give data with two labels or more, or another seed for the split"
        )

    def items(examples: Sequence[Example]) -> list[Item]:
        return [
            (read_text(tokenizer, example.text, recipe.max_length), (labels.index(example.target),))
            for example in _ordered(examples)
        ]

    return Lesson(items(training.train), items(training.validation), labels, unusable=0)


def _span_lesson(training: Training, tokenizer: Any, recipe: Recipe) -> Lesson:
    """Return windows over notes with the pieces where the span nearest to the answer begins and ends."""
    _need_examples(training)

    def items(example: Example) -> list[Item]:
        found = nearest_passage(example.text, example.target, longest=recipe.longest)
        windows = read_note(
            tokenizer, example.question, example.text, max_length=recipe.max_length, stride=recipe.stride
        )
        return [(window, target_of(window, found.start, found.end)) for window in windows] if found else []

    train, validation = ([items(e) for e in _ordered(part)] for part in (training.train, training.validation))
    for name, part in (("training", train), ("validation", validation)):
        if not any(part):
            raise DataError(
                f"none of the {len(part)} {name} answers shares a word with its note: an encoder answers with a span "
                "of the note, so give data whose answers stand in the notes"
            )
    return Lesson(sum(train, []), sum(validation, []), (), [*train, *validation].count([]))


def _need_examples(training: Training) -> None:
    for name, part in (("train", training.train), ("validation", training.validation)):
        if not part:
            raise DataError(
                f"the {name} set is empty, and fine-tuning needs one: give more texts, or lower data.test_size or the "
                "share that goes to the other sets"
            )


def _ordered(examples: Sequence[Example]) -> list[Example]:
    """Return the examples by id, so that the order of a file decides nothing."""
    return sorted(examples, key=lambda example: example.id)


def _run(tuner: Tuner, batches: Batches, recipe: Recipe, folder: Path) -> tuple[int, float]:
    """Train, leave the best weights and the curves in `folder`; return the epochs run and the best score."""
    mode = "max" if tuner.f1 else "min"
    best = ModelCheckpoint(dirpath=folder / "checkpoints", monitor=tuner.watched, mode=mode, save_weights_only=True)
    stop = EarlyStopping(monitor=tuner.watched, mode=mode, patience=recipe.patience)
    with _quiet():
        trainer = _trainer(recipe, folder, [best, stop, LearningRateMonitor("epoch")])
        trainer.fit(tuner, datamodule=batches)
    state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
    weights = {name.removeprefix("network."): v.contiguous() for name, v in state.items() if name.startswith("network.")}
    save_file(weights, folder / "model.safetensors")
    shutil.rmtree(folder / "checkpoints")
    assert best.best_model_score is not None
    return trainer.current_epoch, float(best.best_model_score)


def _trainer(recipe: Recipe, folder: Path, callbacks: list[Callback]) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator=recipe.accelerator,
        devices=recipe.devices,
        precision=recipe.precision,  # type: ignore[arg-type]  # Lightning names the bad one itself
        max_epochs=recipe.epochs,
        accumulate_grad_batches=recipe.accumulate,
        gradient_clip_val=1.0,
        deterministic=True,
        callbacks=callbacks,
        logger=CSVLogger(folder, name="", version=""),
        log_every_n_steps=1,
        num_sanity_val_steps=0,
        enable_progress_bar=sys.stdout.isatty(),
        enable_model_summary=False,
        default_root_dir=folder,
    )


@contextmanager
def _deterministic() -> Iterator[None]:
    """Undo after the fit what `deterministic=True` switches on for the whole process."""
    before = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's notes on hardware and its tips, and one warning that does not apply here."""
    logger = logging.getLogger("pytorch_lightning.utilities.rank_zero")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # The items are lists of numbers in memory: a worker process would only cost its start.
            warnings.filterwarnings("ignore", ".*does not have many workers.*")
            yield
    finally:
        logger.setLevel(level)
