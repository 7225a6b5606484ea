"""The floor of a closed task, against the scores that constant answers really get."""

import pytest

from noisyhealth.analysis import floor
from noisyhealth.metrics import classification


@pytest.mark.parametrize(
    ("targets", "labels"),
    [
        (["yes", "yes", "yes", "no"], ["yes", "no"]),
        (["a"] * 8 + ["b"] * 7 + ["c"] * 5, ["a", "b", "c"]),
        (["b"] * 3, ["a", "b", "c"]),
        (["no", "yes"], ["yes", "no"]),
    ],
)
def test_the_floor_of_each_score_is_that_of_always_giving_the_commonest_answer(
    targets: list[str], labels: list[str]
) -> None:
    commonest = max(targets, key=targets.count)
    expected = classification.scores(targets, [commonest] * len(targets), labels)
    assert floor.constant(targets, len(labels)) == pytest.approx(expected, abs=1e-12)
