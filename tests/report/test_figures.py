"""Figures are asked for what they draw: heights, texts, colours in grey, and texts that lie on each other."""

import io
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from noisyhealth.analysis import impact
from noisyhealth.analysis.medical import bins
from noisyhealth.report.figures import categories, dose, drops, heatmap, medical, style
from noisyhealth.report.figures.categories import FACES
from noisyhealth.report.figures.heatmap import MISSING, UNDEFINED
from noisyhealth.report.outline import Figure

HEADLINES = {"sentiment": "accuracy", "condition": "accuracy", "qa": "rougeL", "triage": "f1"}
RATES = {"low": 0.1, "mid": 0.3, "high": 0.5}
MODELS = ("gpt-4o-mini", "meta-llama/Llama-3.1-8B-Instruct", "bionlp/bluebert_pubmed_mimic_uncased_L-12")
FORTY = tuple(f"organisation/model-{at}-{3 * at}B-Instruct" for at in range(40))


def scores(
    models: Sequence[str] = MODELS,
    tasks: Sequence[str] = ("qa", "condition", "sentiment"),
    perturbs: Sequence[str] = ("redact", "typo", "homophone"),
    levels: Sequence[str] = ("high", "low", "mid"),
) -> pd.DataFrame:
    """A believable frame, in no order: redaction costs most, some scenarios improve."""
    rng = np.random.default_rng(0)
    rows = []
    for task in tasks:
        names = ("rougeL",) if task == "qa" else ("accuracy", "f1")
        for model in models:
            clean = {name: float(rng.uniform(0.3, 0.8)) for name in names}
            for perturb in perturbs:
                for level in levels:
                    rate = RATES.get(level, 0.7) * (0.6 if perturb == "homophone" and level != "low" else 1)
                    cost = {"typo": 0.3, "homophone": 0.1, "redact": 0.9}.get(perturb, 0.5) * rate
                    for name in names:
                        value = clean[name] * (1 - cost + float(rng.normal(0, 0.04)))
                        row = {"task": task, "model": model, "weights": "study", "perturb": perturb, "level": level}
                        row |= {"score_name": name, "n": 100, "value": value, "baseline": clean[name], "rate": rate}
                        row |= {"value_low": value - 0.04, "value_high": value + 0.05, "run_id": "r"}
                        rows.append(row)
    return marked(pd.DataFrame(rows))


def marked(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its changes, None where there is none, and its categories."""
    both = list(zip(frame["value"], frame["baseline"], strict=True))
    changes = pd.Series([impact.change(*one) for one in both], index=frame.index, dtype=object)
    return frame.assign(change=changes, category=[str(impact.category(*one)) for one in both])


def replies(tasks: Sequence[str] = ("sentiment", "qa"), levels: Sequence[str] = ("low", "mid", "high")) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        {"task": task, "model": "gpt", "weights": "study", "perturb": "typo", "level": level, "id": f"t{at}"}
        | {"group": "", "right": score if task == "qa" else float(score > 0.5), "clean_right": 1.0, "edits": 9}
        | {"medical": share}
        for task in tasks
        for level in levels
        for at, (score, share) in enumerate(zip(rng.random(90), rng.choice([0, 0.2, 0.4, 0.7], 90), strict=True))
    ]
    rows.append({**rows[0], "id": "alone", "medical": 1.0})
    return pd.DataFrame(rows)


def gaps() -> pd.DataFrame:
    """Two models; the first has no qa under typo low that counts, and sentiment under redact mid was never run."""
    frame = scores(MODELS[:2])
    at = (frame["model"] == MODELS[0]) & (frame["task"] == "qa") & (frame["perturb"] == "typo")
    frame.loc[at & (frame["level"] == "low"), "baseline"] = 0.0
    absent = (frame["task"] == "sentiment") & (frame["perturb"] == "redact") & (frame["level"] == "mid")
    return marked(frame[~(absent & (frame["model"] == MODELS[0]))])


FRAMES: Mapping[str, pd.DataFrame] = {
    "three models": scores(),
    "gaps": gaps(),
    "one model": scores(MODELS[:1]),
    "40 models": scores(FORTY, ["qa"]),
    "one level": scores(MODELS[:2], levels=["mid"]),
    "one task": scores(MODELS[:2], ["qa"]),
    "one perturbation": scores(MODELS[:1], perturbs=["redact"]),
    "one cell": scores(MODELS[2:], ["qa"], ["typo"], ["low"]),
    "unknown names": scores(("a$b$c", "gpt"), ("triage", "sentiment"), ("slang", "typo"), ("extreme", "low")),
    "nothing defined": marked(scores(MODELS[:2], ["qa"], ["typo"]).assign(baseline=0.0)),
}


@cache
def drawn(name: str) -> tuple[Figure, ...]:
    """Every figure of one of the frames."""
    frame = FRAMES[name]
    return (*drops(frame), *categories(frame), *dose(frame, HEADLINES), *heatmap(frame, HEADLINES))


@cache
def medical_drawn() -> tuple[Figure, ...]:
    return medical(bins(replies()))


@cache
def shown(figure: Figure) -> list[Text]:
    """All texts that a reader sees; labels of ticks outside of an axis are never drawn."""
    figure.drawing.draw_without_rendering()
    hidden = set()
    for axis in (axis for axes in figure.drawing.axes for axis in (axes.xaxis, axes.yaxis)):
        seen = axis._update_ticks()  # type: ignore[attr-defined]
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        hidden |= {label for tick in ticks if tick not in seen for label in (tick.label1, tick.label2)}
    texts = figure.drawing.findobj(Text)
    return [text for text in texts if text.get_visible() and text.get_text().strip() and text not in hidden]


def words(figure: Figure) -> str:
    return " ".join(text.get_text().replace("\n", "") for text in shown(figure))


def plotted(axes: Axes) -> dict[str, ErrorbarContainer]:
    return {str(one.get_label()): one for one in axes.containers if isinstance(one, ErrorbarContainer)}


@pytest.mark.parametrize("name", FRAMES)
def test_no_text_lies_on_another_or_leaves_the_figure_and_all_can_be_read(name: str) -> None:
    for figure in drawn(name):
        _read(figure)


def test_the_texts_of_the_medical_figure_can_be_read() -> None:
    _read(*medical_drawn())


def _read(figure: Figure) -> None:
    texts = shown(figure)
    assert len(texts) > 5
    assert min(text.get_fontsize() for text in texts) >= 8
    boxes = np.array([text.get_window_extent().extents for text in texts])
    whole = figure.drawing.bbox
    outside = (boxes[:, :2] < -1).any(axis=1) | (boxes[:, 2] > whole.x1 + 1) | (boxes[:, 3] > whole.y1 + 1)
    assert [text for text, out in zip(texts, outside, strict=True) if out] == []
    low, high = boxes[:, :2] + 0.8, boxes[:, 2:] - 0.8  # pixels, at 100 an inch
    over = ((low[:, None] < high[None]) & (low[None] < high[:, None])).all(axis=2)
    assert [(texts[a], texts[b]) for a, b in np.argwhere(np.triu(over, 1))] == []


@pytest.mark.parametrize("name", FRAMES)
def test_a_figure_is_as_wide_as_a_column_and_no_longer_than_a_page(name: str) -> None:
    for figure in drawn(name):
        width, height = figure.drawing.get_size_inches()
        assert width == pytest.approx(3.5)
        assert height < 11.7


@pytest.mark.parametrize("name", FRAMES)
def test_every_figure_has_a_name_for_a_file_a_title_and_a_sentence_of_its_data(name: str) -> None:
    found = [*drawn(name), *medical_drawn()]
    assert len({figure.name for figure in found}) == len(found)
    for figure in found:
        assert figure.name.replace("-", "").isidentifier()
        assert "study" in figure.title
        assert figure.alt.endswith(".")
        assert "nan" not in figure.alt
        assert "study" in figure.alt


def test_the_same_frame_makes_the_same_files() -> None:
    def saved(figure: Figure, kind: str) -> bytes:
        out = io.BytesIO()
        given = {"dpi": 200} if kind == "png" else {"metadata": {"Date": None}}
        with mpl.rc_context({"svg.hashsalt": "noisyhealth"}):
            figure.drawing.savefig(out, format=kind, **given)  # type: ignore[arg-type]
        return out.getvalue()

    def made() -> list[Figure]:
        frame = FRAMES["one cell"]
        return [*drops(frame), *dose(frame, HEADLINES), *heatmap(frame, HEADLINES), *categories(frame)[:1]]

    for first, again in zip([*made(), *medical_drawn()], [*made(), *medical(bins(replies()))], strict=True):
        svg = saved(first, "svg")
        assert svg == saved(again, "svg"), first.name
        assert svg == saved(first, "svg"), f"{first.name}, saved again"
    assert saved(first, "png") == saved(again, "png"), first.name


def test_nothing_global_is_touched() -> None:
    before = dict(mpl.rcParams)
    drops(FRAMES["one model"])
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("make", [drops, categories, lambda f: dose(f, HEADLINES), lambda f: heatmap(f, HEADLINES)])
def test_an_empty_frame_makes_no_figure_and_weights_never_share_one(make) -> None:  # type: ignore[no-untyped-def]
    frame = FRAMES["one cell"]
    assert make(frame.iloc[:0]) == ()
    alone = make(frame)
    both = make(pd.concat([frame, frame.assign(weights="embedded")]))
    assert len(both) == 2 * len(alone)
    assert {figure.name.replace("embedded", "study") for figure in both} == {figure.name for figure in alone}


def test_bins_of_no_reply_make_no_figure() -> None:
    assert medical(bins(replies().iloc[:0])) == ()


# Drops


@pytest.mark.parametrize("name", ["three models", "gaps", "40 models", "unknown names", "one model"])
def test_a_bar_is_as_high_as_the_mean_of_its_scenarios_and_a_circle_that_of_its_model(name: str) -> None:
    frame = FRAMES[name]
    (figure,) = [one for one in drawn(name) if one.name == "drops_study"]
    (axes,) = figure.drawing.axes
    tasks, perturbs = style.ordered("task", frame["task"]), style.ordered("perturb", frame["perturb"])
    known = frame.assign(change=frame["change"].astype(float))
    expected = known.groupby(["perturb", "task"])["change"].mean()
    bars = [one.patches[0] for one in axes.containers if isinstance(one, BarContainer)]
    assert [bar.get_height() for bar in bars] == pytest.approx(
        [100 * expected[perturb, task] for perturb in perturbs for task in tasks]
    )
    models = known.groupby(["perturb", "task", "model"], sort=False)["change"].mean().dropna()
    points = sorted(y for one in axes.collections for y in np.asarray(one.get_offsets())[:, 1])
    assert points == pytest.approx(sorted(100 * models) if frame["model"].nunique() > 1 else [])
    for (perturb, task), mean in expected.items():
        assert f"{perturb} {style.per_cent(mean)} %" in figure.alt.split(f"{task}: ")[1]


def test_scenarios_without_a_change_are_counted_and_their_bar_is_marked() -> None:
    frame = scores(tasks=("qa", "sentiment"))
    frame.loc[(frame["task"] == "qa") & (frame["perturb"] == "typo"), "baseline"] = 0.0
    frame = frame[~((frame["task"] == "sentiment") & (frame["perturb"] == "redact"))]
    (figure,) = drops(marked(frame))
    assert "9 of 63 scenarios without a clean score" in figure.note
    assert len([one for one in figure.drawing.axes[0].containers if isinstance(one, BarContainer)]) == 4
    assert {"n/a", "not run"} <= {text.get_text() for text in shown(figure)}
    assert "typo no value" in figure.alt


# Dose


def test_a_line_goes_from_clean_through_the_levels_with_its_intervals() -> None:
    frame = FRAMES["three models"]
    (figure,) = [one for one in drawn("three models") if one.name == "dose_study"]
    panels = np.array(figure.drawing.axes).reshape(3, 3)
    for row, model in enumerate(MODELS):
        for column, task in enumerate(("sentiment", "condition", "qa")):
            lines = plotted(panels[row, column])
            assert list(lines) == ["typo", "homophone", "redact"]
            for perturb, line in lines.items():
                cells = frame[(frame["model"] == model) & (frame["task"] == task) & (frame["perturb"] == perturb)]
                cells = cells[cells["score_name"] == HEADLINES[task]].set_index("level").loc[["low", "mid", "high"]]
                y = np.asarray(line.lines[0].get_ydata())
                assert y == pytest.approx([cells["baseline"].iloc[0], *cells["value"]])
                ends = [np.asarray(one)[:, 1] for one in line.lines[2][0].get_segments()]
                assert np.ptp(ends[0]) == pytest.approx(0), "the clean score has no interval"
                assert [tuple(one) for one in ends[1:]] == [
                    pytest.approx(pair) for pair in zip(cells["value_low"], cells["value_high"], strict=True)
                ]
    ticks = [text.get_text() for text in panels[-1, 0].get_xticklabels()]
    assert ticks == ["clean", "low 10 %", "mid 18–30 %", "high 30–50 %"]


def test_a_level_that_was_not_run_is_a_gap_in_its_line_and_a_model_without_a_task_is_marked() -> None:
    frame = FRAMES["gaps"]
    (figure,) = [one for one in drawn("gaps") if one.name == "dose_study"]
    y = plotted(figure.drawing.axes[0])["redact"].lines[0].get_ydata()
    assert list(np.isnan(np.asarray(y))) == [False, False, True, False]
    few = frame[frame["perturb"] == "redact"]
    (other,) = dose(few[~((few["model"] == MODELS[1]) & (few["task"] == "qa"))], HEADLINES)
    assert "not run" in [text.get_text() for text in shown(other)]


def test_many_models_are_one_line_of_means_with_the_range() -> None:
    frame = FRAMES["40 models"]
    (figure,) = [one for one in drawn("40 models") if one.name == "dose_study"]
    assert "mean over 40 models" in figure.note
    line = plotted(figure.drawing.axes[0])["redact"]
    cells = frame[(frame["task"] == "qa") & (frame["perturb"] == "redact") & (frame["level"] == "high")]
    assert np.asarray(line.lines[0].get_ydata())[-1] == pytest.approx(cells["value"].mean())
    assert list(line.lines[2][0].get_segments()[-1][:, 1]) == pytest.approx(
        [cells["value"].min(), cells["value"].max()]
    )


def test_scores_without_intervals_or_rates_are_drawn_too() -> None:
    bare = scores(MODELS[:1], ["qa"]).drop(columns=["value_low", "value_high", "rate"])
    (figure,) = dose(bare, HEADLINES)
    assert [text.get_text() for text in figure.drawing.axes[0].get_xticklabels()] == ["clean", "low", "mid", "high"]
    nan = scores(MODELS[:1], ["qa"]).assign(value_low=np.nan, value_high=np.nan)
    assert len(dose(nan, HEADLINES)) == 1


def test_more_than_three_tasks_make_more_figures() -> None:
    frame = scores(MODELS[:1], ["a", "b", "c", "d"], ["typo"])
    found = dose(frame, dict.fromkeys("abcd", "f1"))
    assert [figure.name for figure in found] == ["dose_study_1", "dose_study_2"]
    assert dose(frame, {}) == ()


# Categories


@pytest.mark.parametrize(("outer", "inner"), [("model", "task"), ("perturb", "level")])
@pytest.mark.parametrize("name", ["gaps", "40 models", "nothing defined", "unknown names"])
def test_every_count_stands_in_its_bar_or_above_it(name: str, outer: str, inner: str) -> None:
    frame = FRAMES[name]
    expected = frame.groupby([outer, inner, "category"]).size()
    found = [one for one in drawn(name) if one.name.startswith(f"categories_{outer}")]
    numbers = [int(text.get_text()) for one in found for text in one.drawing.axes[0].texts if text.get_text().isdigit()]
    assert sorted(numbers) == sorted(expected)
    widths = [p.get_width() for one in found for c in one.drawing.axes[0].containers for p in c.patches]  # type: ignore[attr-defined]
    totals = frame.groupby([outer, inner]).size()
    assert sorted(widths) == pytest.approx(sorted(expected / totals[expected.index.droplevel("category")].to_numpy()))
    assert sum(widths) == pytest.approx(len(totals)), "every bar is whole"


def test_a_bar_has_the_studys_order_and_a_thin_segment_its_count_above_it() -> None:
    frame = scores(MODELS[:1], ["qa"], ["typo"], ["low"])
    frame = pd.concat([frame.assign(score_name=f"s{at}") for at in range(100)], ignore_index=True)
    counts = {"increase": 1, "stable": 60, "decrease": 36, "catastrophic": 2, "undefined": 1}
    frame["category"] = [name for name, count in counts.items() for _ in range(count)]
    figure = categories(frame)[0]
    axes = figure.drawing.axes[0]
    assert [one.patches[0].get_gid() for one in axes.containers] == list(counts)  # type: ignore[attr-defined]
    at = {text.get_text(): text for text in axes.texts}
    middle = at["60"].get_position()[1]
    assert at["36"].get_position()[1] == middle
    assert at["2"].get_position()[1] < middle, "above: the axis points down"
    assert at["n 100"] is not None


def test_more_than_eight_models_make_more_figures_and_each_model_is_in_one() -> None:
    found = [one for one in drawn("40 models") if one.name.startswith("categories_model")]
    assert [one.name for one in found] == [f"categories_model_study_{at}" for at in range(1, 6)]
    told = [words(one) for one in found]
    assert all(sum(model[-16:] in text for text in told) >= 1 for model in FORTY)


# Medical


def test_points_are_the_median_with_quartiles_and_the_mean_of_scores_of_0_and_1() -> None:
    table = bins(replies())
    (figure,) = medical_drawn()
    for axes, task, what in zip(figure.drawing.axes, ("sentiment", "qa"), ("mean", "median"), strict=True):
        assert axes.get_ylabel() == f"{what} score"
        for level, line in plotted(axes).items():
            rows = table[(table["task"] == task) & (table["level"] == level) & (table["texts"] >= 10)]
            y = np.asarray(line.lines[0].get_ydata())
            assert y[~np.isnan(y)] == pytest.approx(rows[what])
            if what == "median":
                segments = [one[:, 1] for one in line.lines[2][0].get_segments() if len(one)]
                assert np.array(segments) == pytest.approx(rows[["q1", "q3"]].to_numpy())
    assert [text.get_text().split("\n")[0] for text in axes.get_xticklabels()] == [
        "0",
        "0–25",
        "25–50",
        "50–75",
        "75–100",
    ]


def test_the_number_of_texts_stands_below_each_bin_and_few_are_an_open_marker() -> None:
    table = bins(replies())
    (figure,) = medical_drawn()
    axes = figure.drawing.axes[0]
    for text in axes.get_xticklabels():
        name, *counts = text.get_text().replace("–", "-").split("\n")
        for level, count in zip(("low", "mid", "high"), counts, strict=True):
            rows = table[(table["task"] == "sentiment") & (table["level"] == level) & (table["bin"] == name)]
            assert int(count) == rows["texts"].sum()
    (few,) = [line for line in axes.lines if line.get_label() == "low, few"]
    assert few.get_markerfacecolor() == "white"
    assert int((~np.isnan(np.asarray(few.get_ydata(), dtype=float))).sum()) == 1


# Heat map


@pytest.mark.parametrize("name", ["three models", "gaps", "40 models", "unknown names", "one cell", "nothing defined"])
def test_a_cell_has_the_rounded_change_of_the_headline_and_a_gap_is_marked(name: str) -> None:
    frame = FRAMES[name]
    models = list(dict.fromkeys(frame["model"]))
    levels = [
        (perturb, level)
        for perturb in style.ordered("perturb", frame["perturb"])
        for level in style.ordered("level", frame["level"])
    ]
    panels = [axes for one in drawn(name) if "heatmap" in one.name for axes in one.drawing.axes if axes.patches]
    head = frame[frame["score_name"] == frame["task"].map(HEADLINES)]
    for axes, task in zip(
        [a for a in panels if a.get_title(loc="left")], style.ordered("task", frame["task"]), strict=True
    ):
        changes = head[head["task"] == task].set_index(["model", "perturb", "level"])["change"]
        keys = [(model, *pair) for model in models for pair in levels]
        expected = [
            MISSING if key not in changes else UNDEFINED if pd.isna(changes[key]) else style.per_cent(changes[key])
            for key in keys
        ]
        cells = [text for text in axes.texts if text.get_position()[1] % 1 == 0.5]
        assert [text.get_text() for text in cells] == expected
        squares = [one for one in axes.patches if isinstance(one, Rectangle)]
        assert [bool(one.get_hatch()) for one in squares] == [text in {MISSING, UNDEFINED} for text in expected]
        for text, square in zip(cells, squares, strict=True):
            pair = style.luminance(str(text.get_color())), style.luminance(square.get_facecolor())
            assert (max(pair) + 0.05) / (min(pair) + 0.05) >= 4.5, "WCAG 2.2, contrast of text"


def test_missing_and_undefined_cells_are_both_seen() -> None:
    texts = [text.get_text() for one in drawn("gaps") if "heatmap" in one.name for text in shown(one)]
    assert (texts.count(UNDEFINED), texts.count(MISSING)) == (1, 1)
    (figure,) = [one for one in drawn("gaps") if one.name == "heatmap_study"]
    assert "1 cells undefined, 1 not run" in figure.alt


def test_many_models_have_a_figure_a_task_and_no_two_the_same_label() -> None:
    found = [one for one in drawn("40 models") if "heatmap" in one.name]
    assert [one.name for one in found] == [f"heatmap_study_{task}" for task in ("qa",)]
    for figure in found:
        labels = [text.get_text() for text in figure.drawing.axes[0].get_yticklabels()]
        assert len(set(labels)) == 40


# Style


def test_names_stand_in_the_studys_order_and_unknown_ones_follow() -> None:
    assert style.ordered("perturb", ["slang", "redact", "typo"]) == ["typo", "redact", "slang"]
    (figure,) = [one for one in drawn("unknown names") if one.name == "drops_study"]
    legend = [text.get_text() for text in figure.drawing.legends[0].get_texts()]
    assert legend == ["typo", "slang"]
    assert "a$b$c" in words(drawn("unknown names")[1]).replace(r"\$", "$"), "a dollar begins no formula"


def test_the_three_perturbations_are_apart_in_grey_and_the_others_by_hatch_marker_and_line() -> None:
    bright = sorted(116 * style.luminance(colour) ** (1 / 3) for colour in style.COLOURS[:3])  # L* of CIELAB
    assert all(b - a > 20 for a, b in pairwise(bright))
    for marks in (style.MARKERS, style.LINES, list(zip(style.COLOURS, style.HATCHES, strict=True))):
        assert len(set(map(str, marks))) == 8


def test_the_categories_are_apart_in_grey() -> None:
    bright = sorted(116 * style.luminance(face) ** (1 / 3) for face in FACES.values())
    assert all(b - a > 10 for a, b in pairwise(bright))


def test_the_colours_of_the_heat_map_grow_brighter_all_the_way() -> None:
    bright = [style.luminance(colormaps["cividis"](at / 100)) for at in range(101)]
    assert all(a < b for a, b in pairwise(bright))


def test_luminance_is_that_of_wcag() -> None:
    assert style.luminance("#0072B2") == pytest.approx(0.1525, abs=5e-4)  # by hand: .2126 R + .7152 G + .0722 B
    assert style.luminance("#777777") == pytest.approx(0.1845, abs=5e-4)
    assert (style.on("white"), style.on("#000000")) == ("black", "white")
