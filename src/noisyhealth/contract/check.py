"""A perturbation checked against every rule of the contract."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from noisyhealth.contract import draw, rules
from noisyhealth.contract.draw import Levels, OtherDrawError
from noisyhealth.contract.rules import RULES, Fault
from noisyhealth.contract.texts import SENTENCE, Text
from noisyhealth.dataset.design import Design, Disturbance
from noisyhealth.errors import DataError
from noisyhealth.perturbations.engine import Change, OutOfReach
from noisyhealth.records import Example, Variant

LEAST = 1000.0
"""Words a second: 1,000 abstracts at three levels in about ten minutes."""

HASH_SEEDS = ("1", "2")  # of other processes: what depends on the order of a set differs in one of them


@dataclass(frozen=True)
class Found:
    """What came of the rules. `faults`: by rule, empty where it holds. `speed`: words a second."""

    faults: Mapping[str, tuple[str, ...]]
    texts: int
    changes: int
    speed: float

    @property
    def holds(self) -> bool:
        """Whether every rule does."""
        return not any(self.faults.values())

    def more(self, faults: Sequence[Fault]) -> Found:
        """Return the same with further faults."""
        return replace(self, faults={rule: (*old, *_of(rule, faults)) for rule, old in self.faults.items()})


@dataclass(frozen=True)
class Reach:
    """How many of a task's usable texts reach each level, and how many are kept: reach all that their build asks."""

    task: str
    texts: int
    reached: Mapping[str, int]
    kept: int


def check(
    config: Mapping[str, Any],
    disturbance: Disturbance,
    texts: Sequence[Text],
    *,
    least: float = LEAST,
    hash_seeds: Sequence[str] = HASH_SEEDS,
) -> Found:
    """Return what came of every rule but the reach of the levels.

    `config`: the settings that other processes make the perturbation from.
    """
    faults: list[Fault] = list(rules.of_settings(disturbance))
    changes, whole = 0, []
    for text in texts:
        before = len(faults)
        made = list(_changes(text, disturbance, faults))
        changes += len(made)
        faults += [fault for at, change in made for fault in rules.of_change(text, at, change)]
        # The engine refuses a text whose changes are wrong, and that was told.
        if not any(rule in ("rate", "replay", "protection", "unicode") for rule, _ in faults[before:]):
            whole.append(text)
    drawn, seconds = _drawn(whole, disturbance, faults)
    for text, found in drawn:
        try:
            faults += rules.of_levels(text, disturbance, found)
        except Exception as error:  # it could be drawn before
            faults.append(("determinism", f"{text.body[:60]!r} drawn again raises {type(error).__name__}: {error}"))
    faults += _otherwise(config, disturbance, drawn, hash_seeds)
    words = sum(len(text.words) for text, _ in drawn)
    faults += rules.of_speed(words, seconds, least)
    return Found({rule: _of(rule, faults) for rule in RULES}, len(texts), changes, words / max(seconds, 1e-9))


def _of(rule: str, faults: Sequence[Fault]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(told for of, told in faults if of == rule))


def _changes(text: Text, disturbance: Disturbance, faults: list[Fault]) -> Iterator[tuple[int, Any]]:
    """Yield what each valid word of a text becomes, and note what is raised."""
    assert disturbance.change is not None
    for at, word in enumerate(text.words):
        if word.valid:
            rng = draw.key(text, disturbance, f"word {at}").rng()
            try:
                made = disturbance.change(word, text.body, rng)
            except Exception as error:  # whatever a user's code may raise
                faults.append(("unicode", f"{word.text!r} raises {type(error).__name__}: {error}"))
            else:
                if isinstance(made, Change):
                    yield at, made
                elif made is not None:
                    faults.append(("replay", f"{word.text!r} gives {made!r}: give a Change, or None"))


def _drawn(
    texts: Sequence[Text], disturbance: Disturbance, faults: list[Fault]
) -> tuple[list[tuple[Text, Levels]], float]:
    """Return the texts that can be drawn at their levels, and the seconds that took; note what is raised."""
    found, start = [], time.perf_counter()
    for text in texts:
        try:
            found.append((text, draw.levels(text, disturbance)))
        except DataError as error:  # the engine's own word for a change that is none
            faults.append(("rate", str(error)))
        except Exception as error:
            faults.append(("unicode", f"{text.body[:60]!r} raises {type(error).__name__}: {error}"))
    return found, time.perf_counter() - start


def _otherwise(
    config: Mapping[str, Any],
    disturbance: Disturbance,
    drawn: Sequence[tuple[Text, Levels]],
    hash_seeds: Sequence[str],
) -> Iterator[Fault]:
    """Yield what comes out otherwise when it is drawn in other ways."""
    texts, first = [text for text, _ in drawn], [draw.digest(found) for _, found in drawn]
    for text in texts:
        try:
            draw.strictly(text, disturbance)
        except OtherDrawError as error:
            yield "determinism", str(error)
            break
        except Exception as error:
            yield "determinism", f"{text.body[:60]!r} drawn from another seed raises {type(error).__name__}: {error}"
    again = [_digest(text, disturbance) for text in texts]
    back = [_digest(text, disturbance) for text in reversed(texts)][::-1]
    ways: dict[str, Sequence[str]] = {"the second time": again, "in another order of the texts": back}
    try:
        for seed, found in zip(hash_seeds, draw.elsewhere(config, texts, disturbance.name, hash_seeds), strict=True):
            ways[f"in another process (PYTHONHASHSEED={seed})"] = found
    except DataError as error:
        yield "determinism", str(error)
    yield from rules.of_draws(texts, first, ways)


def _digest(text: Text, disturbance: Disturbance) -> str:
    """Return the digest of a text drawn again, or what that raises."""
    try:
        return draw.digest(draw.levels(text, disturbance))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def shown(design: Design, disturbance: Disturbance) -> Levels:
    """Return the sentence of the cards at every level."""
    [words] = design.tagger.tag([SENTENCE])
    example = Example("card", SENTENCE, "", SENTENCE)
    return draw.levels(Text(design, example, disturbance.field, tuple(words)), disturbance)


@dataclass
class Reaching:
    """Counts which texts reach which levels, and remembers those of the perturbations that every design keeps."""

    _known: dict[tuple[str, str, str], bool]

    def of(self, texts: Sequence[Mapping[str, Text]], disturbance: Disturbance) -> Reach:
        """Return the reach of a perturbation on a task's texts, given by the field that is disturbed."""
        reached: Counter[str] = Counter(dict.fromkeys(disturbance.levels, 0))
        kept = 0
        for fields in texts:
            found = draw.levels(fields[disturbance.field], disturbance)
            reached.update(level for level, variant in found.items() if isinstance(variant, Variant))
            whole = not any(isinstance(variant, OutOfReach) for variant in found.values())
            design = fields[disturbance.field].design
            others = [one for one in design.disturbances if one.name != disturbance.name]
            kept += whole and all(self._whole(fields[one.field], one) for one in others)
        return Reach(design.task if texts else "", len(texts), dict(reached), kept)

    def _whole(self, text: Text, disturbance: Disturbance) -> bool:
        place = (text.design.task, text.example.id, repr(disturbance))
        if place not in self._known:
            found = draw.levels(text, disturbance)
            self._known[place] = not any(isinstance(variant, OutOfReach) for variant in found.values())
        return self._known[place]
