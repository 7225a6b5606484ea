"""What a sweep may spend: never more, however many processes ask at once."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from noisyhealth.errors import StoreError
from noisyhealth.tracking.budget import Budget


@pytest.mark.parametrize(
    ("calls", "usd", "costs", "granted"),
    [
        (None, None, [1.0] * 5, 5),
        (3, None, [1.0] * 5, 3),
        (0, None, [0.0] * 5, 0),
        (9, None, [1.0] * 5, 5),
        (None, 2.5, [1.0] * 5, 2),
        (None, 0.3, [0.1] * 5, 3),  # .1 + .1 + .1 is .30000000000000004 in floats
        (None, 0.0, [0.0] * 5, 5),  # what costs nothing needs no money
        (None, 1.0, [2.0, 0.1], 0),  # in order: a cheaper call does not overtake
        (2, 2.5, [1.0] * 5, 2),
        (4, 2.5, [1.0] * 5, 2),
        (4, 2.5, [], 0),
    ],
)
def test_calls_are_granted_in_order_while_there_is_room(
    tmp_path: Path, calls: int | None, usd: float | None, costs: Sequence[float], granted: int
) -> None:
    assert Budget(tmp_path / "b.sqlite", calls, usd).reserve(costs) == granted


def test_what_was_reserved_is_gone_and_what_was_not_spent_comes_back(tmp_path: Path) -> None:
    budget = Budget(tmp_path / "b.sqlite", calls=4, usd=4.0)
    assert budget.reserve([1.0] * 3) == 3
    assert budget.reserve([1.0] * 3) == 1
    assert budget.reserve([1.0]) == 0
    budget.settle(-2, -3.0)  # two were not made, and the other two cost half
    assert budget.spent() == (2, 1.0)
    assert budget.reserve([1.0] * 3) == 2


def test_without_a_limit_no_file_is_made(tmp_path: Path) -> None:
    budget = Budget(tmp_path / "b.sqlite")
    assert budget.reserve([1.0]) == 1
    budget.settle(0, 1.0)
    assert not budget.path.exists()


def _ask(path: Path) -> int:
    return sum(Budget(path, calls=100).reserve([0.0] * 7) for _ in range(10))


def test_processes_that_ask_at_once_get_no_more_than_there_is(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        assert sum(pool.map(_ask, [tmp_path / "b.sqlite"] * 4)) == 100


def test_a_file_that_cannot_be_used_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "b.sqlite").write_text("no database, but long enough to be taken for one" * 40)
    with pytest.raises(StoreError, match=r"b\.sqlite"):
        Budget(tmp_path / "b.sqlite", calls=1).reserve([0.0])
