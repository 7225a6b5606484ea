"""The study's published numbers (Joshi et al. 2026, Results, RQ1 and Table 2), from scores built to have them."""

from itertools import product

import pandas as pd
import pytest

from noisyhealth.analysis import impact
from noisyhealth.analysis.association import association
from noisyhealth.report.rounding import rounded
from noisyhealth.report.summary import summary

PUBLISHED = {"increase": 38, "stable": 113, "decrease": 104, "catastrophic": 15}
SHARES = {"increase": 14.07, "stable": 41.85, "decrease": 38.52, "catastrophic": 5.56}
CHANGED = {"increase": 0.88, "stable": 0.78, "decrease": 0.6, "catastrophic": 0.3}
MODELS, PERTURBS, LEVELS = ("gpt", "llama", "bluebert"), ("typo", "homophone", "redact"), ("low", "mid", "high")


@pytest.fixture
def scores() -> pd.DataFrame:
    """270 scenarios over 3 tasks, 3 models and 9 disturbances; 12 of the 15 catastrophic ones are gpt's."""
    closed = ("accuracy", "precision_macro", "recall_macro", "f1_macro")
    tasks = {"sentiment": closed, "condition": closed, "qa": ("rougeL", "bleu")}
    keys = [
        dict(zip(impact.KEY, (task, model, "study", perturb, level, name), strict=True))
        for task, model, perturb, level in product(tasks, MODELS, PERTURBS, LEVELS)
        for name in tasks[task]
    ]
    gpt = iter([key for key in keys if key["model"] == "gpt"])
    worst = [next(gpt) for _ in range(12)] + [key for key in keys if key["model"] != "gpt"][:3]
    rest = [key for key in keys if key not in worst]
    names = [name for name in ("increase", "stable", "decrease") for _ in range(PUBLISHED[name])]
    found = [*((key, "catastrophic") for key in worst), *zip(rest, names, strict=True)]
    rows = [{**key, "value": CHANGED[name], "baseline": 0.8, "run_id": str(key)} for key, name in found]
    frame = pd.DataFrame(rows).assign(n=1000, unread=0, unread_clean=0)
    both = zip(frame["value"], frame["baseline"], strict=True)
    return frame.assign(category=[str(impact.category(value, baseline)) for value, baseline in both])


def test_the_published_counts_and_shares_are_printed(scores: pd.DataFrame) -> None:
    table = impact.category_table(scores, ["weights"])
    assert table.loc[0, ["n", *PUBLISHED]].to_dict() == {"n": 270, **PUBLISHED}
    for name, share in SHARES.items():
        assert 100 * table.loc[0, f"{name}_share"] == pytest.approx(share, abs=0.005)
        assert rounded(table).loc[0, f"{name}_share"] == f"{share:.1f} %"
    assert summary(scores)[0].startswith(
        "Of 270 scenarios (weights: study), 38 (14.1%) improved, 113 (41.9%) stayed stable, 104 (38.5%) decreased, "
        "15 (5.6%) dropped catastrophically."
    )


@pytest.mark.parametrize("factor", ["model", "task"])
def test_chi_squared_has_the_published_degrees_of_freedom(scores: pd.DataFrame, factor: str) -> None:
    found = association(scores, factor)
    assert (found.df, found.n, found.dropped) == (6, 270, ())
