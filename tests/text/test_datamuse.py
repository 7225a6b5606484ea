"""Datamuse against a real HTTP server on loopback; no public network."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlparse

import pytest

from noisyhealth.errors import DataError
from noisyhealth.text.datamuse import Datamuse
from noisyhealth.text.homophones import SoundAlike

# Answers of the service as they were recorded (November 2026), by kind and word.
RECORDED = {
    ("rel_hom", "course"): ["coarse"],
    ("rel_hom", "sandy"): ["san d", "sandi", "sandie"],
    ("rel_hom", "disease"): [],
    ("sl", "disease"): ["disease", "decease"],
}


class _Service(BaseHTTPRequestHandler):
    asked: ClassVar[list[tuple[str, str]]] = []
    failures: ClassVar[list[tuple[int, str]]] = []

    def do_GET(self) -> None:
        [(kind, [word])] = parse_qs(urlparse(self.path).query).items()
        self.asked.append((kind, word))
        words = [{"word": w, "score": 100} for w in RECORDED.get((kind, word), [])]
        status, body = self.failures.pop(0) if self.failures else (200, json.dumps(words))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[str]:
    _Service.asked.clear()
    _Service.failures.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/words"
        server.shutdown()


def sounds(url: str, folder: Path) -> Datamuse:
    return Datamuse(answers=str(folder / "answers.jsonl"), url=url, timeout=5, retries=1)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("course", SoundAlike("coarse", "exact")),
        ("Course", SoundAlike("coarse", "exact")),
        ("sandy", SoundAlike("sandi", "exact")),  # never an answer of two words
        ("disease", SoundAlike("decease", "near")),  # never the word itself
        ("awake", None),
    ],
)
def test_the_first_single_word_that_is_another_is_taken(
    service: str, tmp_path: Path, word: str, expected: SoundAlike | None
) -> None:
    assert sounds(service, tmp_path)(word) == expected


def test_an_answer_is_kept_and_never_asked_for_again(service: str, tmp_path: Path) -> None:
    first = sounds(service, tmp_path)("disease")
    asked = len(_Service.asked)
    assert sounds("http://127.0.0.1:9/words", tmp_path)("disease") == first
    assert len(_Service.asked) == asked == 2


@pytest.mark.parametrize(
    "failure",
    [
        (200, "not json"),
        (200, '{"word": "x"}'),
        (200, "{}"),
        (200, '""'),
        (200, '[{"word": null}]'),
        (200, '[{"word": true}]'),
        (200, '["heel"]'),
        (200, "[" * 100_000),
        (404, "[]"),
    ],
)
def test_a_bad_answer_is_an_error_and_changes_nothing_kept(
    service: str, tmp_path: Path, failure: tuple[int, str]
) -> None:
    muse = sounds(service, tmp_path)
    muse("course")
    before = (tmp_path / "answers.jsonl").read_bytes()
    _Service.failures.append(failure)
    with pytest.raises(DataError, match="homophones=table"):
        muse("disease")
    assert (tmp_path / "answers.jsonl").read_bytes() == before


def test_a_busy_service_is_asked_again(service: str, tmp_path: Path) -> None:
    _Service.failures.append((429, ""))
    assert sounds(service, tmp_path)("course") == SoundAlike("coarse", "exact")


def test_a_service_that_does_not_answer_in_time_is_an_error_and_changes_nothing_kept(
    service: str, tmp_path: Path
) -> None:
    sounds(service, tmp_path)("course")
    before = (tmp_path / "answers.jsonl").read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/words"
        muse = Datamuse(answers=str(tmp_path / "answers.jsonl"), url=url, timeout=0.2, retries=0)
        assert muse("course") == SoundAlike("coarse", "exact")
        with pytest.raises(DataError, match="disease gave no usable answer"):
            muse("disease")
    assert (tmp_path / "answers.jsonl").read_bytes() == before


def test_a_service_that_stays_busy_is_an_error_and_changes_nothing_kept(service: str, tmp_path: Path) -> None:
    _Service.failures.extend([(429, "")] * 2)
    with pytest.raises(DataError, match="course gave no usable answer"):
        sounds(service, tmp_path)("course")
    assert not (tmp_path / "answers.jsonl").exists()


def test_a_line_that_a_killed_process_left_unfinished_is_asked_again(service: str, tmp_path: Path) -> None:
    sounds(service, tmp_path)("course")
    whole = (tmp_path / "answers.jsonl").read_bytes()
    (tmp_path / "answers.jsonl").write_bytes(whole + b'{"word": "disease", "answ')
    assert sounds(service, tmp_path)("disease") == SoundAlike("decease", "near")
    kept = (tmp_path / "answers.jsonl").read_bytes()
    assert kept.startswith(whole)
    assert [json.loads(line)["word"] for line in kept.splitlines()] == ["course", "disease"]


def test_any_other_broken_line_is_an_error_with_its_number(service: str, tmp_path: Path) -> None:
    sounds(service, tmp_path)("course")
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(DataError, match=r"answers.jsonl, line 2: not an answer"):
        sounds(service, tmp_path)("disease")


def test_of_two_processes_that_ask_the_first_answer_stands_for_both(service: str, tmp_path: Path) -> None:
    one, other = sounds(service, tmp_path), sounds(service, tmp_path)
    one("course"), other("course")
    RECORDED["rel_hom", "sandy"] = ["sandhi"]
    try:
        assert one("sandy") == SoundAlike("sandhi", "exact")
    finally:
        RECORDED["rel_hom", "sandy"] = ["san d", "sandi", "sandie"]
    assert other("sandy") == SoundAlike("sandhi", "exact")
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 2
