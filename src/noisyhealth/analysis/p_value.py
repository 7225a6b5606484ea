"""What every p value keeps to."""

import sys


def positive(p: float) -> float:
    """Return p, or the smallest float where it is smaller still: no p value is 0.

    >>> positive(0.04), positive(0.0) > 0
    (0.04, True)
    """
    return max(p, sys.float_info.min)
