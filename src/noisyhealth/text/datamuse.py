"""Sound-alikes asked of Datamuse, as the study did: an edge, the only file that asks that service.

`GET https://api.datamuse.com/words?rel_hom=WORD` gives exact homophones, `?sl=WORD` words that sound similar, the
word itself first. Both give a JSON list of `{word, score, numSyllables}`; answers of several words occur.
Free for 100,000 requests a day and non-commercial use (https://www.datamuse.com/api/).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from noisyhealth.errors import DataError
from noisyhealth.text.homophones import SoundAlike

if TYPE_CHECKING:
    import requests

_LONGEST_WAIT = 60  # seconds that a busy service may ask us to wait
_GRADES = {"rel_hom": "exact", "sl": "near"}


@dataclass
class Datamuse:
    """The first word of the service that sounds like another.

    `answers`: the file that keeps every answer, one JSON object a line; a word in it is never asked again,
    so a build can be repeated without the service. `timeout`: seconds a request may take. `retries`: further
    tries after a time-out, a 429 or a 5xx.
    """

    answers: str
    url: str
    timeout: float
    retries: int
    _known: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, word: str) -> SoundAlike | None:
        """Return the first single word that is not the word itself, exact ones before near ones.

        Raises DataError when the service does not answer; what was kept before stays as it was.
        """
        asked = word.lower()
        if not self._known:
            self._known = self._read()
        if asked not in self._known:
            self._keep(asked, {kind: self._ask(kind, asked) for kind in _GRADES})
        for kind, grade in _GRADES.items():
            for answer in self._known[asked][kind]:
                if answer.isalpha() and answer.lower() != asked:
                    return SoundAlike(answer.lower(), grade)
        return None

    def _ask(self, kind: str, word: str) -> list[str]:
        """Return the service's words, as they came."""
        import requests

        try:
            answer = self._session.get(self.url, params={kind: word}, timeout=self.timeout)
            answer.raise_for_status()
            return _words(answer.json())
        except (requests.RequestException, ValueError, RecursionError) as error:
            raise DataError(
                f"{self.url}?{kind}={word} gave no usable answer ({type(error).__name__}): try again later, "
                "or use homophones=table, which needs no network"
            ) from error

    @cached_property
    def _session(self) -> requests.Session:
        import requests
        from requests.adapters import HTTPAdapter, Retry

        session = requests.Session()
        again = Retry(
            self.retries,
            backoff_factor=1.0,
            status_forcelist=(429, 500, 502, 503, 504),
            retry_after_max=_LONGEST_WAIT,
        )
        session.mount(self.url, HTTPAdapter(max_retries=again))
        return session

    def _read(self) -> dict[str, Mapping[str, Sequence[str]]]:
        """Return what the file holds; of two answers to one word the first, which earlier builds used.

        A last line without an end is what a killed process left: that word is asked again. Raises DataError for
        any other line that cannot be read.
        """
        path, known = Path(self.answers), dict[str, Mapping[str, Sequence[str]]]()
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                known.setdefault(row["word"], {kind: row["answers"][kind] for kind in _GRADES})
            except (ValueError, TypeError, KeyError):
                raise DataError(
                    f"{path}, line {number}: not an answer kept from {self.url}: mend or delete it"
                ) from None
        return known

    def _keep(self, word: str, answers: Mapping[str, Sequence[str]]) -> None:
        """Add an answer to the file, unless another process has kept one meanwhile."""
        path = Path(self.answers)
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"), path.open("a+b") as file:
            self._known = self._read()
            if word not in self._known:
                if (size := file.seek(0, os.SEEK_END)) and os.pread(file.fileno(), 1, size - 1) != b"\n":
                    file.truncate(path.read_bytes().rfind(b"\n") + 1)
                file.write((json.dumps({"word": word, "answers": answers}) + "\n").encode())
                self._known[word] = answers


def _words(answer: object) -> list[str]:
    """Return the words of an answer; raises ValueError for anything but a list of objects with a word."""
    if not isinstance(answer, list) or not all(isinstance(r, dict) and isinstance(r.get("word"), str) for r in answer):
        raise ValueError("not a list of words")
    return [row["word"] for row in answer]
