"""Results of tests as frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def rows(found: Sequence[Any], names: Sequence[str]) -> pd.DataFrame:
    """Return a row a result with the named fields as columns.

    >>> from noisyhealth.analysis.intervals import Interval
    >>> rows([Interval(0.1, 0.2)], ["high"]).to_dict("list")
    {'high': [0.2]}
    """
    import pandas as pd

    return pd.DataFrame([{name: getattr(one, name) for name in names} for one in found], columns=list(names))


def pairs(found: Mapping[str, Sequence[Any]], kind: type) -> pd.DataFrame:
    """Return a row a pair under the factor it belongs to; `kind` is the pairs' class, whose fields are the columns."""
    import pandas as pd

    names = [field.name for field in fields(kind)]
    listed = [
        {"factor": factor, **{n: getattr(one, n) for n in names}} for factor, many in found.items() for one in many
    ]
    return pd.DataFrame(listed, columns=["factor", *names])


def p_text(p: float | None) -> str:
    """Return a p value as sentences have it.

    >>> p_text(0.0312), p_text(1e-9), p_text(None)
    ('p = .031', 'p < .001', 'no p')
    """
    if p is None:
        return "no p"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def holm(p: pd.Series) -> list[float | None]:
    """Return p values corrected by Holm's method (1979); None stays None and is not counted.

    >>> import pandas as pd
    >>> holm(pd.Series([0.01, None, 0.04]))
    [0.02, None, 0.04]
    """
    from statsmodels.stats.multitest import multipletests

    there = p.dropna().astype(float)
    corrected = dict(zip(there.index, multipletests(there, method="holm")[1], strict=True)) if len(there) else {}
    return [float(corrected[at]) if at in corrected else None for at in p.index]
