"""What the report says in words of its tests of the study's dimensions."""

import pytest

from noisyhealth.analysis.inference import FriedmanResult
from noisyhealth.report.sections.dimensions import _sentence


def friedman(p: float | None, *, blocks: int, note: str = "") -> FriedmanResult:
    q, w, size = (6.5, 0.81, "large") if p is not None else (None, None, "")
    ranks = {"low": 2.0, "high": 1.0} if p is not None else None
    return FriedmanResult("level", ("low", "high"), ("model",), blocks, 0, 2, q, p, w, size, ranks, (), note)


def test_whether_levels_differ_is_told_by_the_test_with_one_score_a_cell() -> None:
    for one, every, verdict in (
        (0.01, 0.2, "Levels differ"),
        (0.2, 0.001, "Levels do not differ by more than chance"),
    ):
        told = _sentence(friedman(every, blocks=4), friedman(one, blocks=2))
        assert told.startswith(f"{verdict} (Friedman's χ²(2) = 6.50, p = ")
        assert "2 blocks, one score a cell; over all scores of the cells, which come from the same replies, p" in told


def test_a_task_without_which_the_verdict_is_another_is_named() -> None:
    without = {"qa": friedman(0.7, blocks=2), "sentiment": friedman(0.02, blocks=2), "new": friedman(None, blocks=0)}
    assert _sentence(friedman(0.01, blocks=4), friedman(0.01, blocks=2), without).startswith(
        "Levels differ, but not without qa (p = .700) (Friedman's"
    )
    assert _sentence(friedman(0.3, blocks=4), friedman(0.3, blocks=2), without).startswith(
        "Levels do not differ by more than chance, but do without sentiment (p = .020) (Friedman's"
    )


@pytest.mark.parametrize("p", [0.001, 0.9])
def test_several_scores_of_one_cell_alone_tell_no_difference(p: float) -> None:
    told = _sentence(friedman(p, blocks=4), friedman(None, blocks=1, note="1 complete block: Friedman's test needs 2"))
    assert told.startswith("Whether levels differ cannot be tested with one score a cell: 1 complete block")


def test_what_no_test_can_tell_has_its_note() -> None:
    told = _sentence(friedman(None, blocks=0, note="2 levels: Friedman's test needs 3"), friedman(None, blocks=0))
    assert told == "Whether levels differ cannot be tested: 2 levels: Friedman's test needs 3."
