"""What was found of a perturbation, as one card: examples, reach, rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from noisyhealth.contract.check import Found, Reach
from noisyhealth.contract.rules import RULES
from noisyhealth.contract.texts import SENTENCE
from noisyhealth.dataset.described import joined
from noisyhealth.perturbations.engine import OutOfReach
from noisyhealth.records import Variant

SPEED = "Speed:"
"""How the one line begins that is another on another machine."""

_SHOWN = 3  # of many faults of one rule


@dataclass(frozen=True)
class Card:
    """A perturbation's card.

    `levels`: rates by level; `shown`: the sentence at each, none where it cannot be drawn; `beside`: the perturbations
    that every text must reach too.
    """

    name: str
    levels: Mapping[str, float]
    shown: Mapping[str, Variant | OutOfReach]
    reach: Sequence[Reach]
    beside: Sequence[str]
    found: Found


def markdown(card: Card) -> str:
    """Return the card for a page of the docs."""
    lines = [f"- **{level}**, {100 * rate:g}%: {_marked(card.shown.get(level))}" for level, rate in card.levels.items()]
    lines += ["", f"| texts that reach | {' | '.join(card.levels)} | {_kept(card)} |"]
    lines += ["|---" * (len(card.levels) + 2) + "|"]
    for one in card.reach:
        counts = [*(one.reached[level] for level in card.levels), one.kept]
        lines.append(f"| {one.task} (of {one.texts}) | {' | '.join(map(str, counts))} |")
    holding = [rule for rule in RULES if rule != "speed" and not card.found.faults[rule]]
    lines += ["", f"{joined(holding)} hold on {card.found.changes:,} words of {card.found.texts} texts.".capitalize()]
    lines += [f"{rule} is BROKEN: {told}" for rule, faults in card.found.faults.items() for told in _few(faults)]
    lines += [f"{SPEED} {_round(card.found.speed)} words a second."]
    return "\n".join(lines)


def plain(card: Card) -> str:
    """Return the card for a terminal."""
    lines = [f"perturb={card.name}", "", f"  {'':9}{SENTENCE}"]
    lines += [f"  {level:5}{100 * rate:3g} %{_plain(card.shown.get(level))}" for level, rate in card.levels.items()]
    lines += [""]
    for one in card.reach:
        counts = ", ".join(f"{level} {one.reached[level]}" for level in card.levels)
        lines.append(f"  {one.task}: of {one.texts} texts reach {counts}; {_kept(card)} {one.kept}")
    lines += ["", f"  on {card.found.changes:,} words of {card.found.texts} texts:"]
    for rule, faults in card.found.faults.items():
        lines.append(f"  {rule:12} {'BROKEN' if faults else 'holds '}  {RULES[rule]}")
        lines += [f"  {'':12} - {told}" for told in _few(faults)]
    return "\n".join([*lines, f"  {_round(card.found.speed)} words a second", ""])


def _kept(card: Card) -> str:
    return f"kept beside {joined(card.beside)}" if card.beside else "kept"


def _few(faults: Sequence[str]) -> Iterator[str]:
    yield from faults[:_SHOWN]
    if len(faults) > _SHOWN:
        yield f"and {len(faults) - _SHOWN:,} more"


def _marked(found: Variant | OutOfReach | None) -> str:
    """Return the sentence with what came out of words in bold, and what went struck through."""
    return _with(found, "**{}**", "~~{}~~")


def _plain(found: Variant | OutOfReach | None) -> str:
    return f"  {_with(found, '[{}]', '[-{}-]')}"


def _with(found: Variant | OutOfReach | None, new: str, gone: str) -> str:
    if not isinstance(found, Variant):
        return f"out of reach: {found}" if found else "cannot be drawn"
    text = SENTENCE
    for edit in sorted(found.edits, reverse=True):
        bare = edit.before.rstrip()
        after = new.format(edit.after) if edit.after else gone.format(bare) + edit.before[len(bare) :]
        text = text[: edit.start] + after + text[edit.start + len(edit.before) :]
    return text


def _round(speed: float) -> str:
    """Return a speed with two digits that mean something.

    >>> _round(123456.0), _round(987.0)
    ('120,000', '990')
    """
    return f"{float(f'{speed:.2g}'):,.0f}"
