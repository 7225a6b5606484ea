"""What was done about disturbed input did: words repaired and damaged, votes, texts flagged.

What it gained and cost in scores stands with the other settings that were varied; here is what only a mitigation has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from noisyhealth.report.outline import Section, Table
from noisyhealth.report.runs import in_order

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

MITIGATE = "mitigate"
# Of each mitigation that has metrics of its own: their prefix, and how to read them.
_NOTES = {
    "repair": (
        "Spelling repair. edits: words that the disturbance had changed; undone: those that the repair made what they "
        "were, exactly; otherwise: those that it made another word (the rest it left). words: words that nobody had "
        "touched; damaged: those that the repair changed. clean_: the same on the clean texts, where a repair may also "
        "mend an error of the writer's own."
    ),
    "vote": (
        "Vote over disturbed copies. n texts, copies asked in their place; agreement: mean share of a text's copies "
        "that gave the answer that counts; unanimous: share of texts where all did; unchanged: share of copies that "
        "could not be disturbed. clean_: the same where the clean texts came in."
    ),
    "detect": (
        "Detector. A text is flagged where its share of unknown words is above the threshold, chosen on validation_n "
        "clean validation texts. n texts, flagged: share of them; right_flagged, right_unflagged: how right the answers"
        " to each kind are (accuracy; ROUGE-L where answers are free), of ..._n texts. auroc_disturbed: how well the "
        "share tells a disturbed text from a clean one; auroc_wrong: a wrong answer from a right one (.5: not at all); "
        "..._positive_n of ..._n texts are disturbed, or answered wrongly. clean_: the same on the clean texts."
    ),
}


def section(runs: Sequence[Run]) -> Section | None:
    """Return the section on a study's runs with a mitigation, None where none has one."""
    own = [run for run in in_order(runs) if MITIGATE in run.data.tags]
    if not own:
        return None
    return Section(
        title="What was done about disturbed input",
        sentences=tuple(_sentences(own)),
        tables=(Table("mitigation_calls", "Calls", _calls(own), _CALLS), *_tables(own)),
    )


_CALLS = (
    "calls: different questions asked in place of n texts, each on its disturbed version; clean_calls: on the clean "
    "ones. Tokens are those of these questions."
)


def _place(run: Run) -> dict[str, Any]:
    tags = run.data.tags
    return {"weights": tags["weights"], "cell": str(run.info.run_name), MITIGATE: tags[MITIGATE]}


def _calls(runs: Sequence[Run]) -> pd.DataFrame:
    import pandas as pd

    names = ("n", "calls", "clean_calls", "tokens/prompt", "tokens/reply", "cost/usd")
    rows = [{**_place(run), **{name: run.data.metrics.get(name) for name in names}} for run in runs]
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def _tables(runs: Sequence[Run]) -> Iterator[Table]:
    """Yield a table for each kind of metrics that a run has, a row a run."""
    import pandas as pd

    for kind, note in _NOTES.items():
        rows = [{**_place(run), **found} for run in runs if (found := _own(run, kind))]
        if rows:
            yield Table(f"mitigation_{kind}", f"Metrics of {rows[0][MITIGATE]}", pd.DataFrame(rows), note)


def _own(run: Run, kind: str) -> dict[str, float]:
    """Return the metrics of one kind: `repair/edits` as edits, `clean_repair/words` as clean_words."""
    found = {}
    for name, value in sorted(run.data.metrics.items(), key=lambda item: (item[0].startswith("clean_"), item[0])):
        head, _, tail = name.partition("/")
        if head in (kind, f"clean_{kind}"):
            found[f"{head.removesuffix(kind)}{tail}"] = value
    return found


def _sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what each mitigation did, added up over its runs on disturbed texts."""
    metrics = [run.data.metrics for run in runs if run.data.tags["perturb"] != "none"]
    repaired = [one for one in metrics if one.get("repair/edits")]
    if repaired:
        edits, undone, words, damaged = (
            sum(one[f"repair/{name}"] for one in repaired) for name in ("edits", "undone", "words", "damaged")
        )
        yield (
            f"Spelling repair undid {undone:,.0f} of {edits:,.0f} edits exactly ({undone / edits:.0%}) and changed "
            f"{damaged:,.0f} of {words:,.0f} words that nobody had touched, in {_cells(repaired)}."
        )
    flagged = [one for one in metrics if one.get("detect/n") and one.get("clean_detect/n")]
    if flagged:
        disturbed, clean = (_flagged(flagged, of) for of in ("detect", "clean_detect"))
        yield f"The detector flagged {disturbed} disturbed texts and {clean} clean ones, in {_cells(flagged)}."


def _flagged(metrics: Sequence[Mapping[str, float]], of: str) -> str:
    """Return how many texts were flagged of how many."""
    flagged = sum(one[f"{of}/flagged"] * one[f"{of}/n"] for one in metrics)
    return f"{flagged:,.0f} of {sum(one[f'{of}/n'] for one in metrics):,.0f}"


def _cells(metrics: Sequence[object]) -> str:
    return f"{len(metrics)} cell{'' if len(metrics) == 1 else 's'}"
