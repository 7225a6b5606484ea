"""Tables to compute from, and what R computes from them.

The tables of `fixtures/` are invented numbers, drawn once. `scripts/statistics.R` writes `fixtures/expected.csv`
from them; its first rows name the versions of R and of its packages.
"""

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "fixtures"


def table(name: str) -> pd.DataFrame:
    """One of the tables, as `table("plain")`."""
    return pd.read_csv(FOLDER / f"{name}.csv")


def expected(data: str, test: str) -> dict[str, float]:
    """R's numbers by quantity, for one test of one table."""
    rows = pd.read_csv(FOLDER / "expected.csv", dtype=str)
    found = rows[(rows["data"] == data) & (rows["test"] == test)]
    assert not found.empty, f"expected.csv has no {test} of {data}: add it to scripts/statistics.R"
    return {str(name): float(number) for name, number in zip(found["quantity"], found["value"], strict=True)}
