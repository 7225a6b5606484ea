"""Texts drawn again: in this process, from a source that has `random()` alone, and in other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from random import Random
from typing import Any

from omegaconf import OmegaConf

from noisyhealth import settings
from noisyhealth.contract.texts import Text
from noisyhealth.dataset import build
from noisyhealth.dataset.design import Design, Disturbance
from noisyhealth.errors import ConfigError, DataError
from noisyhealth.perturbations.engine import Key, OutOfReach, ranked
from noisyhealth.records import Example, Variant, Word

Levels = Mapping[str, Variant | OutOfReach]


class OtherDrawError(Exception):
    """Something else than `random()` was drawn."""


class Strict(Random):
    """A random source that has nothing but `random()`, whose numbers are those of every Python."""

    _made = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._made = True

    def seed(self, *given: Any, **named: Any) -> None:
        """Seed it once, when it is made: seeded anew it would forget the study's seed."""
        if self._made:
            _refuses(self)
        super().seed(*given, **named)


def _refuses(self: Random, *_: object, **__: object) -> None:
    raise OtherDrawError("it draws from its random source by another method than random()")


for _name in set(dir(Random)) - {"random", "seed"}:
    if not _name.startswith("_"):
        setattr(Strict, _name, _refuses)


def own(design: Design, name: str) -> Disturbance:
    """Return the disturbance of that name; raises ConfigError for one that changes nothing, as the baseline."""
    for one in design.disturbances:
        if one.name == name and one.change is not None:
            return one
    raise ConfigError(f"perturb={name} disturbs nothing: there is nothing to check")


def levels(text: Text, disturbance: Disturbance) -> Levels:
    """Return a text at every level, as a build of the dataset draws it."""
    return build.levels(text.example, text.words, disturbance, text.design)


def key(text: Text, disturbance: Disturbance, level: str) -> Key:
    """Return where the randomness of a text comes from."""
    design = text.design
    drawn = "" if disturbance.nested else level
    return Key(design.seed, design.task, text.example.id, disturbance.name, drawn, design.draw)


def strictly(text: Text, disturbance: Disturbance) -> None:
    """Draw a text from the source that has `random()` alone; raises OtherDrawError."""
    assert disturbance.change is not None
    for _ in ranked(text.body, text.words, disturbance.change, Strict(0)):
        pass


def digest(found: Levels) -> str:
    """Return a hash of a text at every level, the same in every process."""
    return sha256(repr(sorted(found.items())).encode(errors="surrogatepass")).hexdigest()[:16]


def elsewhere(
    config: Mapping[str, Any], texts: Sequence[Text], name: str, hash_seeds: Sequence[str]
) -> list[list[str]]:
    """Return the digests of the texts as other processes draw them, one a PYTHONHASHSEED, all at once.

    `config`: the settings, resolved. Raises DataError where a process fails.
    """
    rows = [
        [text.design.task, text.example.id, text.body, text.field, [asdict(word) for word in text.words]]
        for text in texts
    ]
    given = json.dumps({"config": dict(config), "name": name, "rows": rows})
    command = [sys.executable, "-c", f"from {__name__} import child; child()"]
    started = []
    for seed in hash_seeds:
        # What this process can import, that one can.
        there = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=there))
    found = []
    for process in started:
        out, said = process.communicate(given)
        if process.returncode:
            raise DataError(f"perturb={name} cannot be drawn in another process: {said.strip().splitlines()[-1]}")
        found.append(out.split())
    return found


def child() -> None:
    """Print the digest of every text on standard input: what `elsewhere` starts."""
    given = json.load(sys.stdin)
    design = settings.design(OmegaConf.create(given["config"]))
    disturbance = own(design, given["name"])
    for task, name, body, field, words in given["rows"]:
        asked = replace(design, task=task)
        text = Text(asked, Example(name, body, "", body), field, tuple(Word(**word) for word in words))
        print(digest(levels(text, disturbance)))
