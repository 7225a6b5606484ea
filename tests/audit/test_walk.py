"""docs/audit.md: its commands run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment

pytestmark = pytest.mark.slow

COMMANDS = re.findall(r"^```bash\n(.*?)^```", (REPOSITORY / "docs" / "audit.md").read_text("utf-8"), re.M | re.S)


END = "-- end of a command --"


@pytest.fixture(scope="module")
def walked(audited: Path, shared_cache: Path) -> list[str]:
    """What each command printed, one after the other in one shell."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    ended = subprocess.run(
        ["bash", "-euc", "\n".join(f"{command}\necho '{END}'" for command in COMMANDS)],
        cwd=audited,
        env=environment(shared_cache, PATH=path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
    return ended.stdout.split(f"{END}\n")[:-1]


def test_every_command_of_the_walk_from_a_number_to_its_reply_runs(walked: list[str]) -> None:
    number, verified, texts, reply, different, elsewhere = walked
    assert "category" in number
    assert verified.startswith("1 run: 1 the same. Checked: ")
    assert re.search(r"disturbed +0\.\d+ +6", texts)
    assert " -> " in texts
    assert "majority" in reply
    assert 'level.name: "low" → "high"' in different or 'level.name: "high" → "low"' in different
    assert "10 runs: 10 the same." in elsewhere
