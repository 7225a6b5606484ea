"""Ablations: what one setting does, all else held."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

from noisyhealth.report import ablation
from noisyhealth.report.answers import PLACE
from noisyhealth.report.figures.ablation import ablation as figure
from noisyhealth.report.outline import Figure, Section, Table
from noisyhealth.report.sections.frames import holm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from noisyhealth.report.ablation import Answered, Variances
    from noisyhealth.report.factors import Design

_VALUES = (
    "A row a cell; the factor's reference is its first value, {}. baseline and value: the score on clean and on "
    "disturbed texts, n of them; change is relative to baseline. difference: value less that of the reference, all "
    "other settings the same, text by text, with a 95 % interval (paired BCa bootstrap) and p of no difference (exact "
    "McNemar test of an accuracy, else paired bootstrap); p_holm corrected for all rows of this table. Where the "
    "setting changes which texts are tested there is none, and the note says so. Tokens, seconds and US dollars are "
    "those of one disturbed text, as they were when each was first asked; the seconds are of its replies alone, by the "
    "clock, with what else the machine did, and without what a mitigation does beside asking."
)
_VARIANCE = (
    "Variance of the score of a single text (0 to 1) over all combinations of texts and values, by ANOVA estimators "
    "for a complete crossed design; a negative estimate counts as 0. Of a source with several names: what belongs to "
    "their combination alone; the last is what is left. score_sd: how much a cell's score of n texts moves by this "
    "source alone, as a standard deviation. Draws are made text by text, so another draw shows in text × draw. The "
    "share of a setting that was chosen (shots, temperature) is that of the values chosen."
)


def section(found: Sequence[tuple[Design, Sequence[Answered]]], seed: int) -> Section:
    """Return the section of all designs, each with its disturbed cells."""
    sentences: list[str] = []
    figures: list[Figure] = []
    tables: list[Table] = []
    names: set[str] = set()
    for design, own in found:
        for factor in design.names:
            name = _name(f"ablation_{factor}", names)
            frame = _frame(design, factor, own, seed)
            sentences.append(_sentence(design, factor, frame))
            figures += figure(name, factor, design.values, frame)
            held = [f"{other} {_listed(design.values[other])}" for other in design.names if other != factor]
            title = " under each ".join([f"Ablation of {factor}", *([" and ".join(held)] if held else [])])
            tables.append(Table(name, title, frame, _VALUES.format(design.values[factor][0])))
        if varied := ablation.variances(design, own):
            name = _name("variance_" + "_".join(design.names), names)
            title = f"Variance of single answers by text, {', '.join(design.names)}"
            tables.append(Table(name, title, _components(varied), _VARIANCE))
    return Section("Ablations: what does a setting do?", tuple(sentences), tuple(figures), tuple(tables))


def _name(wanted: str, taken: set[str]) -> str:
    """Return a name that no other table has, and take it."""
    name = next(one for at in range(1, len(taken) + 2) if (one := wanted if at == 1 else f"{wanted}_{at}") not in taken)
    taken.add(name)
    return name


def _listed(values: Sequence[str]) -> str:
    return "/".join(values)


def _frame(design: Design, factor: str, cells: Sequence[Answered], seed: int) -> pd.DataFrame:
    """Return the table of one factor."""
    import pandas as pd

    table = pd.DataFrame(list(ablation.rows(design, factor, cells, seed)))
    table["p_holm"] = holm(table["p"])
    others = [name for name in design.names if name != factor]
    last = ["prompt_tokens", "reply_tokens", "seconds", "usd", "method", "note", "run_id"]
    first = [*PLACE, factor, *others, "score_name", "n", "baseline", "value", "change", "category"]
    return table[[*first, "difference", "difference_low", "difference_high", "p", "p_holm", *last]]


def _sentence(design: Design, factor: str, frame: pd.DataFrame) -> str:
    """Return what the table says in short."""
    reference, *others = design.values[factor]
    head = f"{factor} (reference {reference}, against {', '.join(others)}): "
    tested = frame[frame["difference"].notna()]
    if tested.empty:
        return head + "no value is compared text by text; the table's notes say why."
    sure = int((tested["p_holm"].astype(float) < 0.05).sum())
    far = tested.iloc[int(tested["difference"].astype(float).abs().to_numpy().argmax())]
    place = " · ".join(str(far[name]) for name in PLACE[1:])
    if not far["difference"]:
        return f"{head}none of {len(tested)} scores differs (n = {far['n']})."
    return (
        f"{head}{sure} of {len(tested)} differences are beyond chance (p < .05 after Holm's correction). The largest: "
        f"{far['difference']:+.3f} {far['score_name']} with {far[factor]} ({place}, n = {far['n']})."
    )


def _components(found: Sequence[Variances]) -> pd.DataFrame:
    """Return a row a source of each place."""
    import pandas as pd

    columns = [*PLACE, "score_name", "n", "source", "df", "variance", "share", "score_sd", "note"]
    return pd.DataFrame([row for one in found for row in _sources(one)], columns=columns)


def _sources(one: Variances) -> Iterator[Mapping[str, object]]:
    head = {**dict(zip(PLACE, one.place, strict=True)), "score_name": one.score, "n": one.n}
    if one.note:
        yield {**head, "source": "", "df": None, "variance": None, "share": None, "score_sd": None, "note": one.note}
    for part in one.found:
        over = one.n if "text" in part.sources else 1
        yield {
            **head,
            "source": " × ".join(part.sources),
            **{"df": part.df, "variance": part.variance, "share": part.share},
            "score_sd": sqrt(part.variance / over),
            "note": "estimated below 0, taken as 0" if part.estimate < 0 else "",
        }
