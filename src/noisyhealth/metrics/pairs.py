"""The one condition every metric shares: as many answers as references, and at least one."""

from collections.abc import Sequence

from noisyhealth.errors import DataError


def check(references: Sequence[str], candidates: Sequence[str]) -> None:
    """Raise DataError unless the two are equally long and not empty.

    >>> check(["2.5 mg"], ["2.5 mg daily"])
    """
    if len(references) != len(candidates):
        raise DataError(
            f"{len(references)} references but {len(candidates)} answers: give one answer for each "
            'reference, in the same order ("" where a reply could not be read)'
        )
    if not references:
        raise DataError("0 answers to score: a score needs at least one; check which examples were kept")
