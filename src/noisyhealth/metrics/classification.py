"""Accuracy, precision, recall and F1 over the labels that the task names."""

from collections.abc import Sequence

from noisyhealth.errors import DataError
from noisyhealth.metrics import pairs
from noisyhealth.records import Scores


def scores(targets: Sequence[str], values: Sequence[str], labels: Sequence[str]) -> Scores:
    """Return accuracy and macro and weighted precision, recall and F1, each 0 to 1.

    A value that is no label ("" for an unread reply) is wrong whatever the target and never a
    class of its own: the means run over `labels` alone. A ratio with nothing to divide by is 0,
    so a label that is neither a target nor a value has 0 everywhere, pulls the macro means down
    and weighs nothing in the weighted ones. Both rules are those of scikit-learn's
    `precision_recall_fscore_support(labels=labels, zero_division=0)`.

    Raises DataError for no targets, unequal lengths, repeated labels, a target that is no label.

    >>> found = scores(["yes", "yes", "no"], ["yes", "", "no"], labels=["yes", "no"])
    >>> round(found["accuracy"], 3), round(found["f1_macro"], 3), round(found["precision_macro"], 3)
    (0.667, 0.833, 1.0)
    """
    pairs.check(targets, values)
    _check_labels(targets, labels)
    counts = _counts(targets, values, labels)
    support = [hit + missed for hit, _, missed in counts]
    per_label = {
        "precision": [_ratio(hit, hit + false) for hit, false, _ in counts],
        "recall": [_ratio(hit, hit + missed) for hit, _, missed in counts],
        "f1": [_ratio(2 * hit, 2 * hit + false + missed) for hit, false, missed in counts],
    }
    result = {"accuracy": sum(hit for hit, _, _ in counts) / len(targets)}
    for name, each in per_label.items():
        result[f"{name}_macro"] = sum(each) / len(labels)
        weighted = sum(score * weight for score, weight in zip(each, support, strict=True))
        result[f"{name}_weighted"] = weighted / len(targets)
    return result


def _counts(targets: Sequence[str], values: Sequence[str], labels: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (true positives, false positives, false negatives) of each label, by torchmetrics.

    Whatever is no label shares one class behind the last, whose counts are left out. Counts,
    not torchmetrics' own ratios: those are 32-bit floats, off by 1e-8, which would move a
    change of exactly -5 % over the edge of its category.
    """
    import torch
    from torchmetrics.functional.classification import multiclass_stat_scores

    index = {label: position for position, label in enumerate(labels)}
    unread = len(labels)
    table = multiclass_stat_scores(
        torch.tensor([index.get(value, unread) for value in values]),
        torch.tensor([index[target] for target in targets]),
        num_classes=unread + 1,
        average=None,
    )
    return [(int(hit), int(false), int(missed)) for hit, false, _, missed, _ in table[:unread].tolist()]


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _check_labels(targets: Sequence[str], labels: Sequence[str]) -> None:
    if len(set(labels)) != len(labels):
        raise DataError(f"labels {list(labels)} repeat one: name each label of the task once")
    known = set(labels)
    for row, target in enumerate(targets):
        if target not in known:
            raise DataError(
                f"target {target!r} of example {row} is none of the task's labels {list(labels)}: "
                "correct the data, or add the label to the task"
            )
