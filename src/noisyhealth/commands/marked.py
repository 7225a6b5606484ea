"""One text, disturbed as the cells of a configuration would, with its edits marked for the eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from noisyhealth import settings
from noisyhealth.cell import NONE
from noisyhealth.dataset import build
from noisyhealth.perturbations.engine import OutOfReach, Unit, quota, total
from noisyhealth.records import Edit, Example, Variant, Word
from noisyhealth.sources.examples import fingerprint

if TYPE_CHECKING:
    from rich.text import Text

_UNITS = {Unit.WORDS: "words", Unit.VALID_WORDS: "words that may be disturbed", Unit.CHARS: "characters"}


def show(cfg: DictConfig, text: str) -> bool:
    """Print a text at one level of a perturbation, its edits marked; return whether it can be given the dose.

    The id of the text, which the draw depends on, is that of a file without a column of ids.
    """
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    design = settings.design(cfg)
    if cfg.perturb.name == NONE:
        console.print(f"perturb={NONE}: nothing is disturbed", text, sep="\n", markup=False)
        return True
    [disturbance] = [one for one in design.disturbances if one.name == cfg.perturb.name]
    level = str(cfg.level.name)
    [words] = design.tagger.tag([text])
    made = build.levels(Example(fingerprint(text), text, "", text), words, disturbance, design)[level]
    rate, unit = disturbance.levels[level], Unit(disturbance.unit)
    whole = total(text, words, unit)
    asked = f"{rate:.0%} of {whole} {_UNITS[unit]}, {quota(whole, rate)}"
    console.print(f"perturb={disturbance.name} level={level}: {asked}", markup=False)
    if isinstance(made, OutOfReach):
        console.print(f"This text cannot be given that dose: {made}. {_reach(words)}", markup=False)
        return False
    console.print(marked(text, made.edits, colours=console.is_terminal))
    console.print(_dose(made), markup=False)
    for edit in made.edits:
        console.print(f"  {_told(edit)}", markup=False)
    return True


def marked(text: str, edits: Sequence[Edit], *, colours: bool) -> Text:
    """Return a text with what was there and what came: in colours, or as "[before → after]".

    >>> marked("I feel pain", [Edit(7, "pain", "pian", "transpose", "NOUN", True, 2)], colours=False).plain
    'I feel [pain → pian]'
    """
    from rich.text import Text

    shown, at = Text(), 0
    for edit in sorted(edits):
        shown.append(text[at : edit.start])
        if colours:
            shown.append(edit.before, "strike red").append(edit.after, "bold green")
        else:
            shown.append(f"[{edit.before} → {edit.after or 'nothing'}]")
        at = edit.start + len(edit.before)
    return shown.append(text[at:])


def _told(edit: Edit) -> str:
    """Return an edit in words.

    >>> _told(Edit(0, "denies", "denied", "substitute", "VERB", False, 0, ("negation",)))
    'denies → denied: substitute, VERB, negation'
    """
    about = [edit.op, edit.pos, *(["medical"] if edit.medical else []), *edit.flags]
    return f"{edit.before} → {edit.after or 'nothing'}: {', '.join(about)}"


def _dose(made: Variant) -> str:
    dose = made.dose
    return (
        f"{len(made.edits)} of {dose.total_words} words changed ({dose.words:.1%}), "
        f"{dose.edit_distance} {'character' if dose.edit_distance == 1 else 'characters'} ({dose.characters:.1%})"
    )


def _reach(words: Sequence[Word]) -> str:
    return f"It has {len(words)} words, {sum(word.valid for word in words)} of which may be disturbed."
