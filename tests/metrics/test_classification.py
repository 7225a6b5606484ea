"""Accuracy, precision, recall and F1, against scikit-learn."""

import random

import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from noisyhealth.errors import DataError
from noisyhealth.metrics.classification import scores

YES_NO = ["yes", "no"]


def test_one_unread_reply_in_a_thousand_moves_macro_f1_by_a_half_thousandth() -> None:
    targets = YES_NO * 500
    found = scores(targets, ["", *targets[1:]], YES_NO)
    # 499 of 500 hits and no false one: 998/999; the other label stays at 1.
    assert found["f1_macro"] == pytest.approx((998 / 999 + 1) / 2, abs=1e-12)
    assert found["accuracy"] == 0.999


@pytest.mark.parametrize(
    ("targets", "values", "name", "expected"),
    [
        (["yes", "no"], ["yes", "no"], "f1_macro", 1.0),
        (["yes", "no"], ["", ""], "f1_macro", 0.0),
        (["yes", "no"], ["", ""], "accuracy", 0.0),
        (["yes", "yes", "no"], ["yes", "maybe", "no"], "precision_macro", 1.0),
        (["yes", "yes", "no"], ["yes", "maybe", "no"], "recall_macro", 0.75),
        (["yes", "yes", "yes", "no"], ["yes", "yes", "no", "no"], "recall_weighted", 0.75),
        (["yes", "yes", "yes", "no"], ["yes", "yes", "no", "no"], "precision_weighted", 0.875),
        (["yes"], ["yes"], "f1_macro", 0.5),  # "no" is neither target nor value: 0
        (["yes"], ["yes"], "f1_weighted", 1.0),
    ],
)
def test_scores_are_those_computed_by_hand(targets: list[str], values: list[str], name: str, expected: float) -> None:
    assert scores(targets, values, YES_NO)[name] == pytest.approx(expected, abs=1e-12)


def test_an_accuracy_is_exact_so_that_a_change_of_five_percent_is_exact() -> None:
    targets = ["yes"] * 100
    assert scores(targets, ["yes"] * 57 + [""] * 43, YES_NO)["accuracy"] == 0.57


@pytest.mark.parametrize("seed", range(30))
def test_scores_agree_with_scikit_learn_given_the_labels(seed: int) -> None:
    rng = random.Random(seed)
    labels = [f"label {index}" for index in range(rng.randint(1, 6))]
    n = rng.randint(1, 80)
    targets = rng.choices(labels[: rng.randint(1, len(labels))], k=n)
    values = [t if rng.random() < 0.5 else rng.choice([*labels, "", "no label"]) for t in targets]
    expected = {"accuracy": accuracy_score(targets, values)}
    for average in ("macro", "weighted"):
        three = precision_recall_fscore_support(targets, values, labels=labels, average=average, zero_division=0)
        expected |= {f"{name}_{average}": three[at] for at, name in enumerate(("precision", "recall", "f1"))}
    assert scores(targets, values, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("targets", "values", "labels", "message"),
    [
        ([], [], YES_NO, "0 answers"),
        (["yes"], [], YES_NO, "1 references but 0 answers"),
        (["yes", "si"], ["yes", "yes"], YES_NO, "target 'si' of example 1"),
        (["yes"], ["yes"], ["yes", "yes"], "repeat one"),
    ],
)
def test_what_cannot_be_scored_is_named(targets: list[str], values: list[str], labels: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        scores(targets, values, labels)
