"""Datamuse against a real HTTP server on loopback; no public network."""

import json
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


@pytest.mark.parametrize("failure", [(200, "not json"), (200, '{"word": "x"}'), (404, "[]")])
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
