"""What an answer that does not follow from the text would score: the floor of a closed task."""

from collections.abc import Sequence


def constant(targets: Sequence[str], labels: int) -> dict[str, float]:
    """Return each score (0 to 1) of always giving the commonest of the right answers, of `labels` labels.

    With a share s of that answer its recall is 1, its precision s; every other label has neither, 0 by the rule of
    `metrics.classification`.

    >>> {name: round(score, 3) for name, score in constant(["a", "a", "a", "b"], 2).items() if "macro" in name}
    {'precision_macro': 0.375, 'recall_macro': 0.5, 'f1_macro': 0.429}
    """
    share = max(targets.count(target) for target in set(targets)) / len(targets)
    own = {"precision": share, "recall": 1.0, "f1": 2 * share / (1 + share)}
    means = {f"{name}_macro": score / labels for name, score in own.items()}
    return {"accuracy": share, **means, **{f"{name}_weighted": score * share for name, score in own.items()}}
