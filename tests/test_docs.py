"""Every command in README.md and docs/ runs, or says what it needs ("# needs a key").

Models are played by `model=majority`, on few texts: what is tested is that a command does what its page says, not what
a model answers. docs/audit.md and docs/extend.md have tests of their own, which run them as they stand.
"""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment

from noisyhealth import settings
from noisyhealth.tracking.store import Store

pytestmark = pytest.mark.slow
ELSEWHERE = ("audit.md", "extend.md", "decisions.md", "log.md")
PAGES = [REPOSITORY / "README.md", *sorted(p for p in (REPOSITORY / "docs").glob("*.md") if p.name not in ELSEWHERE)]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
BEGINS = ("python ", "make ", "scripts/", ".venv/", "pip ", "apt-get ", "OPENAI_API_KEY=")
INLINE = re.compile(r"`(python run\.py [^`]+)`")


def commands(page: Path) -> list[str]:
    """Return the commands of a page's shell blocks, each on one line, with its comment."""
    blocks = [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == "bash"]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("export ")]


COMMANDS = [pytest.param(line, id=f"{page.name}-{line[:60]}") for page in PAGES for line in commands(page)]
ASKS_NOTHING = ("# needs", "# after")


def words(line: str) -> list[str]:
    """Return a command's words as the shell has them, without its comment."""
    listed = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True)
    return listed.stdout.split("\0")[:-1]


def composes(line: str) -> None:
    """Check that all settings of a command exist, without running it."""
    given = [word for word in words(line)[2:] if word != "-m" and not word.startswith("hydra")]
    known = [word for word in given if not word.startswith("experiment=")]
    assert settings.compose(REPOSITORY / "conf", [re.sub(r"^(\w+=\w+),[\w,]+$", r"\1", word) for word in known])


@pytest.fixture(scope="module")
def folder(audited: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study "demo", its report, and a file of messages."""
    place = tmp_path_factory.mktemp("docs") / "work"
    shutil.copytree(audited, place)
    rows = [json.loads(line) for line in (REPOSITORY / SAMPLE).read_text(encoding="utf-8").splitlines()]
    moods = {"positive": "happy", "negative": "sad"}
    with (place / "messages.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerows([("id", "content", "mood"), *((r["id"], r["text"], moods[r["target"]]) for r in rows)])
    return place


SAMPLE = "src/noisyhealth/data/sample/sentiment.jsonl"


def cheap(line: str, folder: Path) -> str:
    """Return a command with its models played by the majority and few texts."""
    runs = Store(f"sqlite:///{folder}/mlflow.db", "", "demo", str(folder / "lock")).runs("tags.kind = 'cell'")
    ids = iter([run.info.run_id for run in runs] * 2)
    line = re.sub(r"\bRUN_ID\b", lambda _: next(ids), line.partition(" #")[0].strip())
    line = re.sub(r"\bmodel=[\w,]+", "model=majority", line)
    line = re.sub(r" model\.\w+=\S+", "", line)
    if "experiment=" in line and "model=" not in line:
        line += " model=majority"
    line = re.sub(r"^python (run|analyze)\.py", rf"python {REPOSITORY}/\1.py", line)
    line = re.sub(r"^python scripts/", f"python {REPOSITORY}/scripts/", line)
    return re.sub(r" data\.split\.test=\S+", "", line) + " data.split.test=6" if "run.py" in line else line


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_docs_runs_or_says_what_it_needs(line: str, folder: Path, shared_cache: Path) -> None:
    if any(mark in line for mark in ASKS_NOTHING):
        if "run.py" in line:
            composes(line)
        return
    if line.startswith("make "):
        shown = subprocess.run(
            ["make", "-n", words(line)[1]], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert shown.returncode == 0, shown.stderr
        return
    ended = subprocess.run(
        ["bash", "-euc", cheap(line, folder)],
        cwd=folder,
        env=environment(shared_cache, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_stands_where_the_tests_find_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    hidden = [line for kind, block in BLOCK.findall(text) if kind != "bash" for line in block.splitlines()]
    assert not [line for line in hidden if line.startswith(BEGINS)]
    for line in INLINE.findall(text):
        composes(line)


@pytest.mark.parametrize("page", [*PAGES, *(REPOSITORY / "docs" / name for name in ELSEWHERE)], ids=lambda p: p.name)
def test_every_link_of_the_docs_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)|src=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
        target = "".join(link)
        assert "://" in target or (page.parent / target).exists(), target
