"""MLflow's pages as `make ui` opens them, in a real browser: what a reader sees of the runs of a study."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from conftest import REPOSITORY, chromium, environment, execute, listening

from noisyhealth.tracking import ui
from noisyhealth.tracking.store import Store

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=window.caught=1>"
SECONDS = 150_000  # milliseconds that a page may take on a busy machine


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A folder with the runs of a sweep over texts that would run a script, were they taken for HTML."""
    folder = tmp_path_factory.mktemp("looked at")
    sample = files("noisyhealth.data").joinpath("sample/sentiment.jsonl").read_text(encoding="utf-8")
    with (folder / "messages.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "target"])
        writer.writerows([f"{row['text']} {HOSTILE}", row["target"]] for row in map(json.loads, sample.splitlines()))
    ended = execute(
        folder, shared_cache, "run.py", "-m", "model=majority", "perturb=none,typo", "level=low,mid", "study=looked at",
        "data=files", "data.source.paths.sentiment=messages.csv", "data.split.test=12",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def served(study: Path) -> Iterator[SimpleNamespace]:
    """The server that `make ui` starts, its process, and what it printed first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "noisyhealth", "ui", "--port", str(port)]
    with (study / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=study, env=environment(study), stdout=log, stderr=log, start_new_session=True
        )
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
        while not answers(url):
            assert process.poll() is None, (study / "server.log").read_text()
            assert time.monotonic() < deadline, (study / "server.log").read_text()
            time.sleep(0.2)
        yield SimpleNamespace(url=url, port=port, said=(study / "server.log").read_text())
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def answers(url: str) -> bool:
    with suppress(OSError), urlopen(f"{url}/health", timeout=2) as answer:
        return bool(answer.status == 200)
    return False


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Any, served: SimpleNamespace, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a page of the server, wait for texts on it and photograph it; it may ask nobody else for anything.

    NOISYHEALTH_PICTURES names a folder that keeps the photographs.
    """
    strangers: list[str] = []
    context = browser.new_context(viewport={"width": 2000, "height": 1000})
    context.set_default_timeout(SECONDS)

    def open_(place: str, *texts: str, picture: str) -> Any:
        page = context.new_page()
        page.on("request", lambda asked: strangers.append(asked.url) if not is_own(asked.url, served.url) else None)
        page.goto(place if place.startswith("http") else f"{served.url}/{place}")
        for text in texts:
            page.get_by_text(text, exact=True).first.wait_for()
        page.screenshot(path=Path(os.environ.get("NOISYHEALTH_PICTURES", tmp_path)) / f"{picture}.png")
        return page

    yield open_
    context.close()
    assert strangers == []


def is_own(url: str, server: str) -> bool:
    return url.startswith((f"{server}/", "data:", "blob:"))


def cells(folder: Path) -> list[Any]:
    store = Store(f"sqlite:///{folder}/mlflow.db", "", "looked at", str(folder / "lock"))
    return store.runs("tags.kind = 'cell'")


def test_make_ui_starts_what_is_tested_here() -> None:
    recipe = (REPOSITORY / "Makefile").read_text().partition("\nui:")[2].partition("\n\n")[0]
    assert recipe.splitlines()[1:] == ["\t$(BIN)/python -m noisyhealth ui --port $(PORT)"]


def test_the_server_listens_on_loopback_alone(served: SimpleNamespace) -> None:
    assert listening(served.port) == {"127.0.0.1"}


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org"])
def test_the_server_refuses_another_host_name(served: SimpleNamespace, host: str) -> None:
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{served.url}/ajax-api/2.0/mlflow/experiments/search?max_results=1", headers={"Host": host}))
    assert refused.value.code == 403
    refused.value.close()


def test_without_runs_nothing_is_started_and_the_reader_is_told_what_to_do(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "noisyhealth", "ui"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == f"StoreError: {tmp_path}/mlflow.db: no runs there yet; run a cell first, or `make demo`\n"
    assert list(tmp_path.iterdir()) == []


def test_the_address_that_is_printed_lists_the_cells_of_a_study_with_what_makes_them_comparable(
    study: Path, served: SimpleNamespace, opened: Callable[..., Any]
) -> None:
    assert ui.studies(study / "mlflow.db").keys() == {"looked at"}
    [address] = re.findall(r"  looked at: (\S+)", served.said)
    names = [run.info.run_name for run in cells(study)]
    page = opened(address, *names, "Description", "clean/accuracy", picture="cells")
    shown = page.locator("body").inner_text()
    assert len(names) == 3
    # Change and category, in the description, whose end the column cuts off.
    assert len(re.findall(r"accuracy 0\.\d{3} → 0\.\d{3} \([+-]\d+\.\d%, \w+\)", shown)) == 2
    assert [shown.count(f"{name}\n") for name in names] == [1, 1, 1]
    # The sweep's own run is left out, so that no cell hides under its [+].
    assert "3 matching runs" in shown.replace("\n", " ")


def test_a_comparison_of_three_runs_shows_their_names_and_scores(study: Path, opened: Callable[..., Any]) -> None:
    runs = cells(study)
    ids = json.dumps([run.info.run_id for run in runs]).replace(" ", "")
    experiments = json.dumps([runs[0].info.experiment_id])
    page = opened(
        f"#/compare-runs?runs={ids}&experiments={experiments}", *[run.info.run_name for run in runs], "accuracy",
        picture="comparison",
    )  # fmt: skip
    # Names stand in one column and each run's numbers in others.
    for metric in ("accuracy", "n"):
        for score, often in Counter(f"{round(run.data.metrics[metric], 3):g}" for run in runs).items():
            assert page.get_by_text(score, exact=True).count() >= often, metric
    page.get_by_text("clean/accuracy", exact=True).first.scroll_into_view_if_needed()
    page.screenshot(path=Path(os.environ.get("NOISYHEALTH_PICTURES", study)) / "comparison-metrics.png")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("predictions", ("target", "clean_value", "value", "flip")),
        ("variants", ("edited_words", "changes", "disturbed")),
    ],
)
def test_texts_and_answers_are_tables_whose_texts_are_never_run(
    study: Path, opened: Callable[..., Any], name: str, columns: tuple[str, ...]
) -> None:
    run = next(run for run in cells(study) if run.data.tags["level"] == "mid")
    place = f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}/artifacts/{name}.json"
    page = opened(place, *columns, "View as table", picture=name)
    rows = json.loads((study / "mlruns/looked at" / run.info.run_id / "artifacts" / f"{name}.json").read_text())
    assert HOSTILE[:4] in json.dumps(rows), "the texts are what they should be"
    assert page.get_by_text(rows["data"][0][0], exact=True).count() == 1
    assert page.evaluate("window.caught") is None


def test_a_description_is_no_html(study: Path, opened: Callable[..., Any]) -> None:
    store = Store(f"sqlite:///{study}/mlflow.db", "", "looked at", str(study / "lock"))
    run = next(run for run in cells(study) if run.data.tags["level"] == "low")
    note = run.data.tags["mlflow.note.content"]
    assert re.fullmatch(r"accuracy 0\.\d{3} → 0\.\d{3} \([+-]\d+\.\d%, \w+\) on 12 texts", note)
    store.tag(run.info.run_id, "mlflow.note.content", f"{note} {HOSTILE} <script>window.caught=1</script>")
    place = f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
    page = opened(place, "Description", picture="description")
    page.get_by_text(note).first.wait_for()
    assert page.evaluate("window.caught") is None
    store.tag(run.info.run_id, "mlflow.note.content", note)
