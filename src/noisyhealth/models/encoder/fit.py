"""Fine-tuning of an encoder by Lightning: the data, the loop, and the folder that a fit leaves."""

from __future__ import annotations

import csv
import json
import logging
import math
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.plugins.environments import LightningEnvironment  # type: ignore[attr-defined]
from pytorch_lightning.utilities.seed import isolate_rng
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassF1Score

from noisyhealth.errors import ConfigError
from noisyhealth.models.encoder.lesson import Item, Lesson, label_lesson, span_lesson
from noisyhealth.models.encoder.net import Classifier, Extractor, freeze, load_body, load_config
from noisyhealth.models.encoder.read import Batch, batch_of, load_tokenizer
from noisyhealth.models.encoder.recipe import CURVES, FACTS, WEIGHTS, Recipe, labels_of, versions
from noisyhealth.records import Training


def fit(training: Training, weights: Path, recipe: Recipe, folder: Path) -> None:
    """Fine-tune the weights and fill `folder` with the network (`WEIGHTS`), what was done (`FACTS`) and `CURVES`.

    Raises ConfigError or DataError for settings or examples that cannot be learnt from.
    """
    recipe.check()
    started, begun = time.time(), time.monotonic()
    tokenizer = load_tokenizer(weights, recipe.max_length)
    config = load_config(weights, recipe.max_length)
    with isolate_rng(), _deterministic(), _one_process():
        lightning.seed_everything(recipe.seed, workers=True, verbose=False)
        lesson = (label_lesson if labels_of(training) else span_lesson)(training, tokenizer, recipe)
        body = load_body(weights, config, recipe.pooling if labels_of(training) else "mean")
        freeze(body, recipe.frozen)
        network = Classifier(body, recipe.pooling, _weights(lesson, recipe)) if lesson.labels else Extractor(body)
        tuner = Tuner(network, recipe, len(lesson.labels))
        epochs, score = _run(tuner, Batches(lesson, recipe, tokenizer.pad_token_id), recipe, folder)
    facts = {
        "kind": "choice" if lesson.labels else "span",
        "labels": lesson.labels,
        "label_counts": lesson.counts,
        "train": len(training.train),
        "validation": len(training.validation),
        "unusable": lesson.unusable,
        "epochs": epochs,
        "score": tuner.watched,
        "validation_score": score,
        "begun": started,
        "seconds": time.monotonic() - begun,
        "threads": torch.get_num_threads(),
        "versions": dict(versions()),
        "recipe": asdict(recipe),
    }
    (folder / FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")


def _weights(lesson: Lesson, recipe: Recipe) -> list[float]:
    """Return what each label counts in the loss; balanced: the inverse of its share, as scikit-learn's."""
    if recipe.class_weights == "none":
        return [1.0] * len(lesson.labels)
    counts = [lesson.counts[label]["train"] for label in lesson.labels]
    return [sum(counts) / len(counts) / count for count in counts]


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
        self.log("train_loss", loss, on_step=True, on_epoch=False, batch_size=len(batch["target"]))
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


def _run(tuner: Tuner, batches: Batches, recipe: Recipe, folder: Path) -> tuple[int, float]:
    """Train, leave the best weights and the curves in `folder`; return the epochs run and the best score."""
    mode = "max" if tuner.f1 else "min"
    best = ModelCheckpoint(dirpath=folder / "checkpoints", monitor=tuner.watched, mode=mode, save_weights_only=True)
    stop = EarlyStopping(monitor=tuner.watched, mode=mode, patience=recipe.patience)
    with _quiet():
        trainer = _trainer(recipe, folder, [best, stop, LearningRateMonitor("step")])
        trainer.fit(tuner, datamodule=batches)
    epochs, score = _scores(folder / CURVES, tuner.watched, max if tuner.f1 else min, recipe)
    state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
    prefix = "network."
    weights = {name.removeprefix(prefix): v.contiguous() for name, v in state.items() if name.startswith(prefix)}
    save_file(weights, folder / WEIGHTS)
    shutil.rmtree(folder / "checkpoints")
    return epochs, score


def _scores(curves: Path, watched: str, best: Callable[[list[float]], float], recipe: Recipe) -> tuple[int, float]:
    """Return the epochs run and the best score; raise ConfigError where a loss is no number any more.

    Read from the curves, because the callbacks of spawned processes keep theirs to themselves.
    """
    with curves.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    losses = [float(row[name]) for row in rows for name in ("train_loss", "validation_loss") if row[name]]
    if not all(map(math.isfinite, losses)):
        raise ConfigError(
            f"the fit diverged, its loss is no number any more: with model.precision={recipe.precision} "
            f"model.learning_rate={recipe.learning_rate} is too high; lower it, or raise model.warmup"
        )
    scores = [float(row[watched]) for row in rows if row[watched]]
    return len(scores), best(scores)


def _trainer(recipe: Recipe, folder: Path, callbacks: list[Callback]) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator=recipe.accelerator,
        devices=recipe.devices,
        # The other launcher starts the whole script again, and that copy would wait for this fit's lock.
        strategy="auto" if str(recipe.devices) == "1" else "ddp_spawn",
        # A fit is one process that starts its own: what Slurm says of tasks is about cells.
        plugins=[LightningEnvironment()],
        precision=recipe.precision,  # type: ignore[arg-type]  # Lightning names the bad one itself
        max_epochs=recipe.epochs,
        accumulate_grad_batches=recipe.accumulate,
        gradient_clip_val=recipe.gradient_clip,
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
def _one_process() -> Iterator[None]:
    """Keep Lightning from asking, wherever Slurm is installed, whether the fit was meant for `srun`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The `srun` command is available")
        yield


@contextmanager
def _deterministic() -> Iterator[None]:
    """Undo after the fit what seeds and `deterministic=True` leave in the whole process."""
    before = torch.are_deterministic_algorithms_enabled()
    names = ("PL_GLOBAL_SEED", "PL_SEED_WORKERS", "CUBLAS_WORKSPACE_CONFIG")
    variables = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's notes on hardware, its tips, and two warnings that nobody who runs a fit can act on."""
    logger = logging.getLogger("pytorch_lightning.utilities.rank_zero")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # The items are lists of numbers in memory: a worker process would only cost its start.
            warnings.filterwarnings("ignore", ".*does not have many workers.*")
            # Lightning 2.6 names a class of torch that torch 2.13 is about to drop.
            warnings.filterwarnings("ignore", ".*LeafSpec.* is deprecated", FutureWarning)
            yield
    finally:
        logger.setLevel(level)
