"""The disturbed texts of runs drawn again from text, seed and settings, each once for all runs that share it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from noisyhealth.cell import Cell
from noisyhealth.dataset import build
from noisyhealth.dataset.design import Design, Disturbance
from noisyhealth.perturbations.engine import OutOfReach
from noisyhealth.perturbations.homophone import Homophone
from noisyhealth.perturbations.mixture import Mixture
from noisyhealth.records import Example, Variant, Word
from noisyhealth.text.datamuse import Datamuse
from noisyhealth.text.tagger import Tagger

Levels = Mapping[str, Variant | OutOfReach]


@dataclass
class Redraw:
    """Draws, and remembers what was drawn."""

    _words: dict[tuple[Tagger, str], list[Word]] = field(default_factory=dict)
    _levels: dict[tuple[str, Example], Levels] = field(default_factory=dict)

    def variants(self, cell: Cell, examples: Sequence[Example]) -> list[Variant | OutOfReach]:
        """Return each example at the cell's level, or why it cannot reach it.

        Raises DataError where sound-alikes came from a service and the file with its answers is not here.
        """
        design = cell.design
        [disturbance] = [offline(one) for one in design.disturbances if one.name == cell.perturb]
        named = ("perturb", "seed", "draw", "valid_pos", "protect")
        shared = json.dumps([design.task, dict(disturbance.levels), *(cell.resolved[name] for name in named)])
        self._tag(design.tagger, [getattr(example, disturbance.field) for example in examples])
        for example in examples:
            if (shared, example) not in self._levels:
                self._levels[shared, example] = self._drawn(example, disturbance, design)
        return [self._levels[shared, example][cell.level] for example in examples]

    def _tag(self, tagger: Tagger, texts: Sequence[str]) -> None:
        new = list(dict.fromkeys(text for text in texts if (tagger, text) not in self._words))
        for text, words in zip(new, tagger.tag(new), strict=True):
            self._words[tagger, text] = words

    def _drawn(self, example: Example, disturbance: Disturbance, design: Design) -> Levels:
        words = self._words[design.tagger, getattr(example, disturbance.field)]
        return build.levels(example, words, disturbance, design)


def offline(disturbance: Disturbance) -> Disturbance:
    """Return the disturbance without the service it may ask, whose kept answers are all that counts."""
    change = disturbance.change
    if isinstance(change, Homophone) and isinstance(change.sounds, Datamuse):
        return replace(disturbance, change=replace(change, sounds=replace(change.sounds, url="")))
    if isinstance(change, Mixture):
        parts = {name: offline(part) if isinstance(part, Disturbance) else part for name, part in change.parts.items()}
        return replace(disturbance, change=replace(change, parts=parts))
    return disturbance
