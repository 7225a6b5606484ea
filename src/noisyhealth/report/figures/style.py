"""How figures look: order of names, colours, sizes.

A figure is as wide as a column of a paper (3.5 inches, 336 CSS pixels), so it is read unscaled in print and on a
telephone. Colours are those of Okabe & Ito (2008, Color Universal Design), the first of them apart in luminance too;
nothing is told by colour alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

WIDTH = 3.5  # inches
SMALL, NORMAL = 8.0, 9.0  # points
INK, FAINT = "#000000", "#CCCCCC"
COLOURS = ("#0072B2", "#E69F00", "#000000", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#F0E442")
HATCHES = ("", "////", "", "....", "xxxx", "\\\\\\\\", "++++", "----")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = (
    "-", "--", ":", "-.", (0, (5, 1)), (0, (1, 3)), (0, (3, 1, 1, 1)), (0, (7, 3))
)  # fmt: skip
_STUDY = {
    "task": ("sentiment", "condition", "qa"),
    "perturb": ("typo", "homophone", "redact"),
    "level": ("low", "mid", "high"),
}


def ordered(column: str, names: Iterable[object]) -> list[str]:
    """Return the names once each: those of the study in its order, then the others in theirs.

    >>> ordered("level", ["extreme", "high", "low", "high"])
    ['low', 'high', 'extreme']
    """
    found = list(dict.fromkeys(map(str, names)))
    known = [name for name in _STUDY.get(column, ()) if name in found]
    return known + [name for name in found if name not in known]


def fractions(column: pd.Series) -> pd.Series:
    """Return the column as floats; None is NaN."""
    import pandas as pd

    return pd.to_numeric(column.astype(object), errors="coerce").astype(float)


def per_cent(number: float) -> str:
    """Return a fraction as per cent with its sign and a true minus.

    >>> per_cent(-0.123), per_cent(0.0), per_cent(0.04), per_cent(34.5)
    ('−12', '0', '+4', '+3k')
    """
    whole = round(100 * number)
    size = f"{abs(whole)}" if abs(whole) < 1000 else f"{abs(whole) // 1000}k"
    return ("+" if whole > 0 else "−" if whole < 0 else "") + size


def label(name: str, width: int, lines: int = 2) -> str:
    r"""Return a name in lines of so many characters, its middle cut out where it needs more; $ is no formula.

    >>> label("meta-llama/Llama-3.1-8B-Instruct", 16)
    'meta-llama/\nLlama-3.…nstruct'
    >>> label("gpt(SmolLM2-135M)", 15)
    'gpt\n(SmolLM2-135M)'
    >>> label("a very long name", 10, 1), label("short", 10)
    ('a ver…name', 'short')
    """
    broken = _broken(name, width)
    if len(broken) > lines:
        last = "".join(broken[lines - 1 :])
        head = width // 2
        broken[lines - 1 :] = [f"{last[:head].rstrip()}…{last[head + 1 - width :].lstrip()}"]
    return "\n".join(one.rstrip() for one in broken).replace("$", r"\$")


def _broken(name: str, width: int) -> list[str]:
    """Return the name in pieces of at most so many characters, broken after a space or a mark where one is."""
    before, mark, weights = name.partition("(")
    if before and mark and max(len(before), len(mark + weights)) <= width < len(name):
        return [before, mark + weights]  # "gpt(SmolLM2-135M)": who, and played by what
    pieces = [""]
    for word in re.findall(r"[^\s/_-]*[\s/_-]?", name):
        for at in range(0, len(word), width):
            part = word[at : at + width]
            if len((pieces[-1] + part).rstrip()) <= width:
                pieces[-1] += part
            else:
                pieces.append(part)
    return pieces


def labels(names: Sequence[str], width: int, lines: int) -> dict[str, str]:
    """Return the labels of models: without their organisation (all up to the last /) where they stay apart without it.

    Names that would look alike once cut have their number in front.

    >>> labels(["meta-llama/Llama-3.1-8B", "gpt"], 15, 1), labels(["a/gpt", "b/gpt"], 9, 1)
    ({'meta-llama/Llama-3.1-8B': 'Llama-3.1-8B', 'gpt': 'gpt'}, {'a/gpt': 'a/gpt', 'b/gpt': 'b/gpt'})
    >>> labels(["a-much-too-long-name", "a-much-too-good-name"], 9, 1)
    {'a-much-too-long-name': '1 a-…name', 'a-much-too-good-name': '2 a-…name'}
    """
    last = {name: name.rstrip("/").rpartition("/")[2] for name in names}
    kept = last if len(set(last.values())) == len(last) else {name: name for name in names}
    found = {name: label(one, width, lines) for name, one in kept.items()}
    seen = Counter(found.values())
    return {
        name: one if seen[one] == 1 else label(f"{at} {kept[name]}", width, lines)
        for at, (name, one) in enumerate(found.items(), 1)
    }


def file_name(*parts: str) -> str:
    """Return a name for a file from names of anything.

    >>> file_name("heatmap", "study", "a task/b")
    'heatmap_study_a-task-b'
    """
    return "_".join(re.sub(r"[^\w.]+", "-", part) for part in parts if part)


def share_of_words(rates: Iterable[float]) -> str:
    """Return the shares of words that a level stands for, "" where none is known.

    >>> share_of_words([0.3, 0.5]), share_of_words([0.1]), share_of_words([])
    ('30–50 %', '10 %', '')
    """
    known = sorted({round(100 * rate, 6) for rate in rates if not math.isnan(rate)})
    return "–".join(f"{rate:.3g}" for rate in dict.fromkeys(known[:1] + known[-1:])) + (" %" if known else "")


def listed(names: Sequence[str]) -> str:
    """Return names as a part of a sentence; of many only their number.

    >>> listed(["gpt", "llama"]), listed(["a"] * 9)
    ('gpt and llama', '9 of them')
    """
    if len(names) > 6:
        return f"{len(names)} of them"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def colour(at: int) -> str:
    """Return the colour of the name that stands at this place; after eight they come again, as do the others."""
    return COLOURS[at % len(COLOURS)]


def hatch(at: int) -> str:
    """Return the hatch of bars."""
    return HATCHES[at % len(HATCHES)]


def marker(at: int) -> str:
    """Return the marker of points."""
    return MARKERS[at % len(MARKERS)]


def line(at: int) -> Any:
    """Return the style of lines."""
    return LINES[at % len(LINES)]


def canvas(height: float, width: float = WIDTH) -> Drawing:
    """Return an empty drawing of so many inches; nothing global is touched."""
    from matplotlib.figure import Figure as Drawing

    return Drawing(figsize=(width, height), layout="constrained", facecolor="white")


def plain(axes: Axes, *, grid: Literal["x", "y", ""] = "y") -> None:
    """Take from axes what carries no information, and set the size of what stays."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)
    axes.tick_params(labelsize=SMALL, width=0.6, length=2.5, pad=2)
    if grid:
        axes.grid(axis=grid, color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)


def legend(drawing: Drawing, handles: Sequence[Artist], names: Sequence[str], *, columns: int = 3) -> None:
    """Put a legend above everything, to be read by rows: Matplotlib fills columns."""
    columns = min(columns, len(names))
    rows = [at for first in range(columns) for at in range(first, len(names), columns)]
    drawing.legend(
        [handles[at] for at in rows],
        [label(names[at], 20, 1) for at in rows],
        loc="outside upper center",
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
        handlelength=2.2,
        handletextpad=0.5,
        columnspacing=1.2,
        borderpad=0.1,
    )


def settled(drawing: Drawing) -> Drawing:
    """Return the drawing laid out once and for all, so that it is the same each time it is saved."""
    if (engine := drawing.get_layout_engine()) is not None:
        engine.execute(drawing)
    drawing.set_layout_engine("none")
    return drawing


def luminance(colour: str | tuple[float, float, float, float]) -> float:
    """Return how bright a colour is, 0 to 1: what is left of it in grey (ITU-R BT.709, on linear light).

    >>> luminance("#000000"), luminance("#FFFFFF")
    (0.0, 1.0)
    """
    from matplotlib.colors import to_rgb

    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return round(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], 12)


def on(colour: str | tuple[float, float, float, float]) -> str:
    """Return black or white, whichever is read on the colour (contrast after WCAG 2.2)."""
    return "black" if luminance(colour) > 0.179 else "white"
