"""Texts handed over as batches: each once, whatever process died on the way."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from tqdm import tqdm

from noisyhealth.models.chat import fault, lines
from noisyhealth.models.chat.intent import Intent, Intents

if TYPE_CHECKING:
    from openai import OpenAI

# Of one batch: https://platform.openai.com/docs/guides/batch, "Rate limits".
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000

_WINDOW: Final = "24h"  # the only one that there is
# A list may be slow to show a new batch, which nobody may pay for twice: how long it is looked for, in seconds.
UNSEEN_SECONDS = 120.0
_CLOCKS_SECONDS = 3600.0  # that this machine's clock may be ahead of the provider's


@dataclass(frozen=True)
class Handover:
    """What puts the texts of one model into batches. `poll_seconds`: between two looks. `retries`: of creating one."""

    peer: fault.Peer
    intents: Intents
    poll_seconds: float
    retries: int

    def held(self, made: OpenAI, bodies: Mapping[str, Mapping[str, object]]) -> dict[str, Intent]:
        """Return the batch that has each query; what no batch holds yet is handed over."""
        with self.intents.lock():
            held: dict[str, Intent] = {}
            for intent in self._open(made):
                if own := {key: intent for key in intent.keys if key in bodies and key not in held}:
                    held |= own
                    say(f"{intent.batch}, handed over before, has {len(own):,} texts of {self.peer.label}.")
            written = {key: lines.line(key, body) for key, body in bodies.items() if key not in held}
            for part in lines.cut(written, MOST_REQUESTS, MOST_BYTES):
                intent = self._submitted(made, part)
                held |= dict.fromkeys(part, intent)
                say(
                    f"{len(part):,} texts of {self.peer.label} are handed over as {intent.batch}; it may take "
                    f"{_WINDOW}, and is looked after every {self.poll_seconds:g} s."
                )
        return held

    def _open(self, made: OpenAI) -> list[Intent]:
        """Return the intents that became batches; the others are dropped."""
        intents = self.intents.read()
        known = self._known(made, [intent for intent in intents if not intent.batch])
        for at, intent in enumerate(intents):
            if not intent.batch and intent.id in known:
                intents[at] = replace(intent, batch=known[intent.id])
                self.intents.write(intents[at])
            elif not intent.batch:
                self.given_up(made, intent, intent.file)
        return [intent for intent in intents if intent.batch]

    def given_up(self, made: OpenAI, intent: Intent, file: str) -> None:
        """Forget an intent that is no batch, and delete what was uploaded for it: patients' texts."""
        if file:
            delete(made, file)
        self.intents.drop(intent)

    def _known(self, made: OpenAI, intents: Sequence[Intent]) -> dict[str, str]:
        """Return the provider's batches by the intents that became them, looked for until none can appear any more."""
        if not intents:
            return {}
        ages = [time.time() - intent.asked for intent in intents if intent.asked]
        until = time.monotonic() + min(max([0.0, *(UNSEEN_SECONDS - age for age in ages)]), UNSEEN_SECONDS)
        since = min(intent.asked for intent in intents) - _CLOCKS_SECONDS
        while True:
            known = self._listed(made, since)
            left = until - time.monotonic()
            if left <= 0 or all(intent.id in known for intent in intents):
                return known
            time.sleep(min(self.poll_seconds, left))

    def _listed(self, made: OpenAI, since: float) -> dict[str, str]:
        """Return the provider's batches by their intents, back to a time: an account's list may be long."""
        found: dict[str, str] = {}
        for one in made.batches.list(limit=100):  # the newest first
            if isinstance(one.created_at, int) and one.created_at < since:
                break
            found[(one.metadata or {}).get("intent", "")] = one.id
        return found

    def _submitted(self, made: OpenAI, part: Mapping[str, bytes]) -> Intent:
        """Return the intent that became a batch."""
        intent = Intent(uuid4().hex, self.intents.endpoint, tuple(part))
        self.intents.write(intent)
        file = made.files.create(file=("noisyhealth.jsonl", b"".join(part.values())), purpose="batch")
        intent = self._created(made, replace(intent, file=file.id))
        self.intents.write(intent)
        return intent

    def _created(self, made: OpenAI, intent: Intent) -> Intent:
        """Return the intent with the name of a new batch.

        The client may not repeat this by itself: where an answer was lost, the batch may be there.
        """
        import openai

        once = made.with_options(max_retries=0)
        for left in range(self.retries, -1, -1):
            intent = replace(intent, asked=time.time())
            self.intents.write(intent)
            try:
                made_of_it = once.batches.create(
                    input_file_id=intent.file,
                    endpoint=lines.ROUTE,
                    completion_window=_WINDOW,
                    metadata={"intent": intent.id},
                )
                return replace(intent, batch=made_of_it.id)
            except openai.APIError as error:
                refused = self.peer.advice(error)
                if refused and left == self.retries:  # after a lost answer there may be a batch that reads the file
                    self.given_up(made, intent, intent.file)
                if refused or not left:
                    raise
            time.sleep(self.poll_seconds)
            if name := self._known(made, [intent]).get(intent.id):
                return replace(intent, batch=name)
        raise AssertionError("the last try returns or raises")


def delete(made: OpenAI, file: str) -> None:
    """Delete what was uploaded, if that can be done. Another process may be about to read what came back."""
    import openai

    with suppress(openai.APIError):
        made.with_options(max_retries=0).files.delete(file)


def say(what: str, file: Any = None) -> None:
    """Print above any bar."""
    tqdm.write(what, file=file)
