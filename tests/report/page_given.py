"""Invented material for a page: a report as a study may give it, and examples with disturbed texts and replies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from noisyhealth.report.items import Items
from noisyhealth.report.outline import Figure, Report, Section, Table

MODELS = ("gpt (SmolLM2-135M)", "llama (SmolLM2-135M)", "bluebert (MiniLM-L6)")
PERTURBS, LEVELS = ("typo", "homophone", "redact"), ("low", "mid", "high")
RATES = {"low": 0.1, "mid": 0.25, "high": 0.45}
MEDICAL = {
    "metformin": "drug",
    "amlodipine": "drug",
    "naproxen": "drug",
    "prednisolone": "drug",
    "pain": "",
    "nausea": "",
}
LABELS = {
    "sentiment": ("positive", "negative", "neutral"),
    "condition": ("digestive system diseases", "cardiovascular diseases", "neoplasms"),
}
TEXTS = {
    "sentiment": (
        ("Week three on metformin and the nausea has finally gone 🎉 I can eat breakfast again.", "positive"),
        (
            "Four hours in the waiting room and the doctor never even looked at my knee. I am not going back.",
            "negative",
        ),
        ("My flu clinic is open on Tuesday and Thursday from nine until noon.", "neutral"),
        ("Naproxen did nothing for the pain in my left hip, and now my stomach hurts too 😩", "negative"),
    ),
    "condition": (
        (
            "Twelve patients with refractory reflux were followed after a partial wrap. Acid exposure fell in ten of "
            "them, and none needed a second operation within two years. Two reported bloating that settled without "
            "treatment.",
            "digestive system diseases",
        ),
        (
            "We measured the arterial pressure of 84 adults who took amlodipine at night or in the morning. The hour "
            "made no difference at twelve weeks, though dips during sleep were deeper after the evening dose.",
            "cardiovascular diseases",
        ),
    ),
    "qa": (
        (
            "Seen in the rheumatology clinic with her daughter. Stiffness of both shoulders for five weeks, worst in "
            "the morning, no headache and no trouble with her sight. Inflammatory markers raised. I have started "
            "prednisolone 15 mg and will see her again in three weeks; she knows to ring the same day if her vision "
            "changes. Her other tablets stay as they are. ",
            "the inflammatory markers were raised and both shoulders were stiff",
        ),
    ),
}
QUESTION = "Why was prednisolone started?"


def report(study: str = "demo", warning: str = "", *, drawn: bool = False) -> Report:
    """Return a report with sections and tables of all kinds, and with figures, which take their time."""
    sections = [section if drawn else replace(section, figures=()) for section in _sections()]
    return Report(study, warning, _SUMMARY, tuple(sections))


def items(each: int = 3, seed: int = 0, tasks: Sequence[str] = tuple(TEXTS), longer: int = 1) -> Items:
    """Return every text `each` times, disturbed in nine ways and answered by three models; `longer` repeats a note."""
    rng = Random(seed)
    examples = [
        _example(task, f"{task}-{at * each + copy + 1:03}", text * (longer if task == "qa" else 1), target, rng)
        for task in tasks
        for at, (text, target) in enumerate(TEXTS[task])
        for copy in range(each)
    ]
    return Items(
        f"Shown are {len(examples)} of 600 texts: of every task the first by their ids' hash.", tuple(examples)
    )


def _example(task: str, name: str, text: str, target: str, rng: Random) -> dict[str, Any]:
    variants = [
        {"perturb": perturb, "level": level, "edits": edits(text, perturb, RATES[level], rng)}
        for perturb in PERTURBS
        for level in LEVELS
    ]
    return {
        "task": task, "weights": "embedded", "id": name, "text": text, "question": QUESTION if task == "qa" else "",
        "target": target, "field": "text", "graded": task not in LABELS, "variants": variants,
        "replies": [_replies(task, model, target, rng) for model in MODELS],
    }  # fmt: skip


def only(example: Mapping[str, Any], edits: Sequence[Any], **change: Any) -> dict[str, Any]:
    """Return an example with nothing but one disturbed text, typo at level low."""
    replies = [{**reply, "cells": reply["cells"][:1]} for reply in example["replies"]]
    variants = [{"perturb": "typo", "level": "low", "edits": edits}]
    return {**example, "variants": variants, "replies": replies, **change}


def edits(text: str, perturb: str, rate: float, rng: Random) -> list[list[Any]]:
    """Return the edits of a share of a text's words, as the page takes them."""
    spots, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        if word.strip(".,;").isalpha() and len(word.strip(".,;")) > 3:
            spots.append((at, word.strip(".,;")))
        at += len(word)
    drawn = sorted(rng.sample(spots, max(1, round(rate * len(spots)))))
    return [[start, word, *_made(word, perturb, rng), *_touched(word)] for start, word in drawn]


def _made(word: str, perturb: str, rng: Random) -> tuple[str, str]:
    at = rng.randrange(1, len(word) - 1)
    if perturb == "typo":
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :], "transpose"
    return (word.replace("ee", "ea") + "e", "near") if perturb == "homophone" else ("", "redact")


def _touched(word: str) -> tuple[int, list[str]]:
    flags = [flag for flag in [MEDICAL.get(word.lower(), "")] if flag]
    if word.lower() in ("none", "never", "without", "nothing"):
        flags.append("negation")
    return int(word.lower() in MEDICAL), flags


def _replies(task: str, model: str, target: str, rng: Random) -> dict[str, Any]:
    clean = _answer(task, target, rng)
    cells = []
    for perturb in PERTURBS:
        for level in LEVELS:
            cell = clean if rng.random() < 0.55 else _answer(task, target, rng)
            cells.append({"perturb": perturb, "level": level, **cell, "flip": _flip(clean, cell)})
    return {"model": model, "clean": clean, "cells": cells}


def _answer(task: str, target: str, rng: Random) -> dict[str, Any]:
    if rng.random() < 0.08:
        return {"value": "", "reply": "I am not able to tell from this text", "outcome": "unparsed", "right": 0}
    if task == "qa":
        words = target.split()
        kept = words[: rng.randrange(2, len(words) + 1)]
        share = round(2 * len(kept) / (len(words) + len(kept)), 3)
        return {"value": " ".join(kept), "reply": f"Because {' '.join(kept)}.", "outcome": "scored", "right": share}
    label = target if rng.random() < 0.6 else rng.choice(LABELS[task])
    return {"value": label, "reply": f"Answer: {label}", "outcome": "scored", "right": int(label == target)}


def _flip(clean: dict[str, Any], cell: dict[str, Any]) -> str:
    before, after = clean["right"] >= 0.5, cell["right"] >= 0.5
    if before != after:
        return "right to wrong" if before else "wrong to right"
    return "same" if clean["value"] == cell["value"] or before else "wrong to other"


_SUMMARY = (
    "Of 324 scenarios, 201 stayed stable, 74 decreased, 31 improved and 12 dropped by half or more.",
    "Redaction did most harm: the mean F1 fell by 14.2 % at the highest level (95 % interval 9.8 to 18.5 %).",
    "Models differed less than perturbations did: Friedman's test over models p = .062, over perturbations p < .001.",
    "With 60 texts a cell, a change of less than about 8 points of accuracy cannot be told from chance.",
)


def _sections() -> Iterator[Section]:
    yield Section(
        "What changed, and by how much",
        (
            "Every score of a cell on disturbed texts is set against the same score on the clean texts. Stable is down "
            "by less than 5 %, catastrophic is down by half or more.",
            "The fine-tuned encoder lost least under typing errors, and most under redaction.",
        ),
        (
            Figure(
                name="levels",
                title="Accuracy falls with the level",
                drawing=_levels(),
                alt="Accuracy of three models at four levels; all fall, redaction most.",
                note="Bars are 95 % intervals by Wilson's method, 60 texts a cell.",
            ),
        ),
        (
            Table(
                name="categories",
                title="Scenarios by category, model and task",
                frame=_categories(),
                note="Shares are of all scenarios of the row.",
            ),
        ),
    )
    yield Section(
        "Is it more than chance?",
        ("Friedman's test ranks the relative changes within blocks; Conover's pairs follow where it rejects.",),
        (),
        (
            Table(
                name="friedman",
                title="Friedman's test of the relative change over each dimension",
                frame=_friedman(),
                note="w is Kendall's W. The test over tasks has one block only, so p was not computed.",
            ),
            Table("scores", "Every scenario", _scores(), "Rates are realised, run ids are MLflow's."),
        ),
    )
    yield Section(
        "Where errors come from",
        ("Medical words were touched in 38.1 % of the disturbed texts, negations in 9.6 %.",),
        (
            Figure(
                name="heat",
                title="Change of macro F1 by perturbation and level",
                drawing=_heat(),
                alt="A grid of three perturbations and three levels; darkest is redaction, high.",
            ),
        ),
    )


def _levels() -> Drawing:
    drawing = Drawing(figsize=(9, 3.6), layout="constrained")
    axes = drawing.subplots(1, 3, sharey=True)
    for axis, perturb, fall in zip(axes, PERTURBS, (0.05, 0.03, 0.09), strict=True):
        for at, (model, colour) in enumerate(zip(MODELS, ("#0b5c6b", "#b5541c", "#5b4a9c"), strict=True)):
            means = [0.82 - 0.06 * at - fall * step for step in range(4)]
            axis.errorbar(range(4), means, yerr=0.05, marker="os^"[at], color=colour, capsize=3, label=model)
        axis.set(title=perturb, xticks=range(4), xticklabels=["none", *LEVELS], ylim=(0.3, 1))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("accuracy")
    axes[2].legend(fontsize=8, frameon=False)
    return drawing


def _heat() -> Drawing:
    drawing = Drawing(figsize=(4.6, 3.2), layout="constrained")
    axis = drawing.subplots()
    shown = axis.imshow([[-2, -5, -9], [-1, -2, -4], [-4, -9, -14]], cmap="cividis")
    axis.set(xticks=range(3), xticklabels=LEVELS, yticks=range(3), yticklabels=PERTURBS)
    drawing.colorbar(shown, label="change, %")
    return drawing


def _categories() -> pd.DataFrame:
    rows = [
        {"weights": "embedded", "model": model, "task": task, "scenarios": 36, "improved": at, "stable": 20 + at,
         "decreased": 12 - at, "catastrophic": 3, "stable_share": (20 + at) / 36}
        for at, model in enumerate(MODELS)
        for task in TEXTS
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _friedman() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "factor": ["perturb", "level", "model", "task"],
            "q": [18.204, 22.51, 5.5625, None],
            "df": [2, 2, 2, None],
            "p": [0.00011, 0.0000129, 0.062, None],
            "w": [0.337, 0.417, 0.103, None],
            "blocks": [27, 27, 27, 1],
            "incomplete": [0, 0, 0, 0],
            "note": ["", "", "", "one block has all scenarios of its kind: the test needs two"],
        }
    )


def _scores() -> pd.DataFrame:
    rng = Random(4)
    rows = [
        {"run_id": f"{rng.getrandbits(128):032x}", "task": task, "model": model, "perturb": perturb, "level": level,
         "metric": "f1_macro", "n": 60, "value": rng.uniform(0.4, 0.8), "baseline": 0.81234,
         "change": rng.uniform(-0.4, 0.05), "p_holm": rng.random() ** 6}
        for task in ("sentiment", "condition")
        for model in MODELS
        for perturb in PERTURBS
        for level in LEVELS
    ]  # fmt: skip
    return pd.DataFrame(rows)
