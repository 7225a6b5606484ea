"""Write the vendored table of English words and how common each is.

    python scripts/make_words.py PATH/frequency_dictionary_en_82_765.txt

The file is the frequency dictionary of SymSpell as the package symspellpy 6.10.1 has it
(`pip download --no-deps symspellpy==6.10.1`; the package is not imported): words of SCOWL with how often Google's
books have them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src/noisyhealth/data/tables/words.tsv"
TABLE_VERSION = 1
SHORT = {"a", "i"}  # of one letter; other letters stand alone in lists and formulas


def main() -> None:
    """Read the dictionary and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dictionary", type=Path)
    rows = list(_rows(parser.parse_args().dictionary.read_text(encoding="utf-8-sig").splitlines()))
    TABLE.write_text("".join(f"{line}\n" for line in (*_head(len(rows)), *rows)), encoding="utf-8")


def _head(count: int) -> Sequence[str]:
    return (
        f"# English words, table version {TABLE_VERSION}",
        "# Columns: word, how common it is: 10 times the common logarithm of its count in Google's books",
        "# Written by scripts/make_words.py; notice in NOTICE-words.txt",
        "# Source: frequency dictionary of SymSpell as in symspellpy 6.10.1",
        f"# Rows: {count}",
    )


def _rows(lines: Sequence[str]) -> Iterator[str]:
    """Yield a row a word of letters alone, in the order of the alphabet."""
    for line in sorted(lines):
        word, count = line.split()
        if word.isascii() and word.isalpha() and (len(word) > 1 or word in SHORT):
            yield f"{word}\t{round(10 * math.log10(int(count)))}"


if __name__ == "__main__":
    main()
