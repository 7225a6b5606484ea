"""RQ3: whether it matters that disturbed words are medical."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisyhealth.analysis.medical import Correlation, bins, spearman
from noisyhealth.analysis.mixed import Effect, MixedResult
from noisyhealth.report.figures.medical import medical
from noisyhealth.report.outline import Section, Table
from noisyhealth.report.sections.frames import p_text

if TYPE_CHECKING:
    import pandas as pd

_BINS = (
    "Scores by the share of medical terms among the edited words, in per cent (0-25: above 0 and up to 25). n replies"
    " to as many different disturbed texts as `texts` says; clean_mean: the same texts undisturbed, for texts with "
    "many medical terms may be harder from the start. Where every score is 0 or 1 (binary) the mean says more than "
    "the median."
)
_SPEARMAN = (
    "Spearman's correlation of that share with the score over texts (rows of one text averaged first); p is not "
    "corrected for the number of rows."
)
_MIXED = (
    "Linear mixed model per text: score ~ medical share + number of edits + perturbation + level, random intercept of"
    " the text (of its group, where it has one); scores averaged over models first. medical: points of the score "
    "between none and all edited words being medical, at the same number of edits; edits: points for one more edited "
    "word. With scores of 0 and 1 it is a linear probability model."
)


def section(weights: str, items: pd.DataFrame, found: list[MixedResult]) -> Section:
    """Return the section of one set of weights; the frame of answers is of it alone, `found` is its mixed models."""
    binned = bins(items)
    correlations = [*spearman(items, ("weights", "task")), *spearman(items)]
    return Section(
        title=f"Do medical words matter more? (RQ3, weights: {weights})",
        sentences=tuple(map(_sentence, found)),
        figures=medical(binned),
        tables=(
            Table(f"medical_bins_{weights}", "Scores by share of medical terms", _own(binned), _BINS),
            Table(f"medical_mixed_{weights}", "Mixed model", _own(_mixed(found)), _MIXED),
            Table(f"medical_spearman_{weights}", "Rank correlations", _own(_spearman(correlations)), _SPEARMAN),
        ),
    )


def _own(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=["weights"])


def _mixed(found: list[MixedResult]) -> pd.DataFrame:
    import pandas as pd

    shared = ("weights", "task", "n", "groups", "models", "incomplete", "unedited")
    return pd.DataFrame(
        [
            {
                **{name: getattr(one, name) for name in shared},
                **_effect("medical", one.medical),
                **_effect("edits", one.edits),
                **{"between": one.between, "within": one.within, "note": one.note},
            }
            for one in found
        ]
    )


def _effect(name: str, effect: Effect | None) -> dict[str, Any]:
    return {
        name: effect and effect.estimate,
        **{f"{name}_{end}": effect and getattr(effect, end) for end in ("low", "high", "p")},
    }


def _spearman(found: list[Correlation]) -> pd.DataFrame:
    import pandas as pd

    every = {"model": "all", "level": "all"}
    names = ("n", "replies", "unedited", "rho", "p", "note")
    return pd.DataFrame([{**every, **one.among, **{name: getattr(one, name) for name in names}} for one in found])


def _sentence(one: MixedResult) -> str:
    if one.medical is None:
        return f"{one.task}: no model of medical words, {one.note.rstrip('.')}."
    effect = one.medical
    if effect.p < 0.05:
        way = "costs" if effect.estimate < 0 else "spares"
        said = f"disturbing medical words {way} more than others"
    else:
        said = "whether the disturbed words are medical makes no difference that can be told from chance"
    return (
        f"{one.task}: {said} ({10 * effect.estimate:+.1f} points for each tenth more of them, 95 % interval "
        f"{10 * effect.low:+.1f} to {10 * effect.high:+.1f}, {p_text(effect.p)}; {one.groups} texts, the number of "
        "edits held fixed)."
    )
