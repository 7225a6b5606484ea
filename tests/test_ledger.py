"""The file in which the processes of a sweep note what became of its cells, on a disk that has no more room."""

import subprocess
import sys
from pathlib import Path

import pytest

from noisyhealth import study
from noisyhealth.study import Ledger, Record

# A file may grow to so many bytes: the system then writes what there is room for, and no more.
LIMITED = """
import resource, sys
from pathlib import Path
from noisyhealth import study
from noisyhealth.study import Ledger, Record
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    Ledger(Path(sys.argv[1])).add(Record("second", "k2", study.DONE, "run"))
except OSError as error:
    print(error.filename, error)
"""
FIRST = Record("first · é", "k1", study.DONE, "run")
THIRD = Record("third", "k3", study.FAILED, error="why")


@pytest.mark.parametrize("room", [0, 1, 2, 30, 80])
def test_a_line_that_the_disk_had_no_room_for_is_told_and_spoils_no_other(tmp_path: Path, room: int) -> None:
    ledger = Ledger(tmp_path / "cells.jsonl")
    ledger.add(FIRST)
    limit = ledger.path.stat().st_size + room
    command = [sys.executable, "-c", LIMITED, str(ledger.path), str(limit)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert str(ledger.path) in told or "File too large" in told
    assert ledger.path.stat().st_size == limit
    assert ledger.read() == [FIRST]
    ledger.add(THIRD)
    assert ledger.read() == [FIRST, THIRD]
