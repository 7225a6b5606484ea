"""Printed shapes that are read as others, from the offline table.

The table, `noisyhealth/data/tables/confusions.tsv`, was written by hand; its notice stands beside it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files


@cache
def shapes() -> Mapping[str, Sequence[str]]:
    """Return what is printed with all that may be read instead.

    >>> shapes()["rn"], shapes()["O"]
    (('m',), ('0', 'D', 'Q'))
    """
    table, found = files("noisyhealth").joinpath("data", "tables", "confusions.tsv"), defaultdict(list)
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            printed, read = line.split("\t")
            found[printed].append(read)
    return {printed: tuple(readings) for printed, readings in found.items()}
