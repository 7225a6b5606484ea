"""How numbers are shown: one rule for the terminal, Markdown and the page, from a frame to a frame of strings.

What is written to files to be read on keeps every digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

EMPTY = ""


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame as strings, in the same order; a named index becomes the first columns.

    p values (`p`, `p_…`, `…_p`) are "<.001", ">.999" or three digits without a leading zero; shares (`share`, `shares`,
    `share_…`, `…_share`, `…_shares`; fractions, 0 to 1) per cent with one digit; other fractions three digits; None,
    NaN and NaT empty; booleans yes or no. Names and ids stand in full.

    >>> import pandas as pd
    >>> rounded(pd.DataFrame({"model": "gpt", "n": 20, "drop_share": 0.25, "q": 7.0625, "p": 0.00002}, [0])).iloc[0]
    model            gpt
    n                 20
    drop_share    25.0 %
    q              7.062
    p              <.001
    Name: 0, dtype: object
    """
    import pandas as pd

    flat = with_index(frame)
    shown = [_column(str(name), list(flat.iloc[:, at])) for at, name in enumerate(flat.columns)]
    rows = pd.DataFrame(dict(enumerate(shown)), index=flat.index, dtype=object)
    rows.columns = flat.columns
    return rows


def numeric(frame: pd.DataFrame) -> list[bool]:
    """Return which columns of `rounded(frame)` hold nothing but numbers, and are set to the right.

    >>> import pandas as pd
    >>> numeric(pd.DataFrame({"model": ["gpt", "llama"], "n": [20, None], "note": [None, None]}))
    [False, True, False]
    """
    flat = with_index(frame)
    return [_numbers(list(flat.iloc[:, at])) for at in range(flat.shape[1])]


def with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its index as columns where it has a name, else without."""
    named = any(name is not None for name in frame.index.names)
    return frame.reset_index(drop=not named)


def _column(name: str, values: Sequence[Any]) -> list[str]:
    if _is_p(name):
        return [_shown(value, _p) for value in values]
    if _is_share(name):
        return [_shown(value, _per_cent) for value in values]
    if _were_whole(values):
        return [_shown(value, lambda number: f"{number:.0f}") for value in values]
    return [_shown(value, _decimal) for value in values]


def _shown(value: Any, number: Any) -> str:
    if isinstance(value, str):
        return value
    if _missing(value):
        return EMPTY
    if _is_bool(value):
        return "yes" if value else "no"
    if isinstance(value, Real):
        return str(number(value))
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(one, number) for one in value)
    return str(value)


def _p(value: Real) -> str:
    p = float(value)
    if not 0 <= p <= 1:  # no p value: a column may be called so by chance
        return _decimal(value)
    if p < 0.001:
        return "<.001"
    if p == 1:
        return "1.000"
    return f"{p:.3f}".removeprefix("0") if p < 0.9995 else ">.999"


def _per_cent(value: Real) -> str:
    return f"{_plain_zero(f'{100 * float(value):.1f}')} %"


def _decimal(value: Real) -> str:
    return str(int(value)) if isinstance(value, Integral) else _plain_zero(f"{float(value):.3f}")


def _plain_zero(text: str) -> str:
    """Return the text without a sign where nothing but zeros is left."""
    return text.removeprefix("-") if not text.strip("-0.") else text


def _were_whole(values: Sequence[Any]) -> bool:
    """Tell whether whole numbers became floats only because one is missing."""
    there = [value for value in values if not _missing(value)]
    gaps = len(there) < len(values)
    return gaps and bool(there) and all(isinstance(value, float) and value.is_integer() for value in there)


def _numbers(values: Sequence[Any]) -> bool:
    there = [value for value in values if not _missing(value)]
    return bool(there) and all(isinstance(value, Real) and not _is_bool(value) for value in there)


def _missing(value: Any) -> bool:
    if isinstance(value, str):  # most cells are: the rest takes ten times as long
        return False
    import pandas as pd

    if value is None or value is pd.NaT or value is pd.NA:
        return True
    return isinstance(value, Real) and math.isnan(float(value))


def _is_bool(value: Any) -> bool:
    import numpy as np

    return isinstance(value, (bool, np.bool_))


def _is_p(name: str) -> bool:
    return name == "p" or name.startswith("p_") or name.endswith("_p")


def _is_share(name: str) -> bool:
    return name in ("share", "shares") or name.startswith("share_") or name.endswith(("_share", "_shares"))
