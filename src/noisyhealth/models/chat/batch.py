"""Texts handed to a provider all at once, for less money and replies within a day: OpenAI's batch API.

Upload, create, poll, collect; https://platform.openai.com/docs/guides/batch. What was handed over is in `intent`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noisyhealth.errors import RefusedError, StoreError
from noisyhealth.models.chat import fault, lines, pace
from noisyhealth.models.chat.endpoint import Address
from noisyhealth.models.chat.handover import Handover, delete, say
from noisyhealth.models.chat.intent import Intent, Intents
from noisyhealth.records import Reply

if TYPE_CHECKING:
    import httpx2
    from openai import APIError, OpenAI
    from openai.types import Batch

_ENDED = {"completed", "failed", "expired", "cancelled"}
_READINGS = 4  # of files that have fewer lines than the provider counts
_NO_BATCHES = "or give model.batch=false where the server has no batch API"
# Why a batch was not begun, as codes of its errors, and what to do.
_NOT_BEGUN = {
    "billing_hard_limit_reached": fault.TOP_UP,
    "insufficient_quota": fault.TOP_UP,
    "token_limit_exceeded": "wait until the account's other batches are done, or raise its limit on waiting tokens",
    "model_not_found": "check weights.gpt.endpoint.model",
}


def client(address: Address, seconds: float, retries: int) -> OpenAI:
    """Return an OpenAI client that turns away what is no answer, and does not try again on a used-up account.

    `seconds`: until a request is given up.
    """
    import httpx2
    from openai import DefaultHttpxClient, OpenAI

    def told(response: httpx2.Response) -> None:
        response.read()
        if pace.used_up(response):
            response.headers["x-should-retry"] = "false"  # the OpenAI client obeys
        if response.is_success and not _is_thing(response):
            # Retried by the OpenAI client as a broken connection is.
            raise httpx2.DecodingError(
                f"the server sent no batch but {response.text[:100]!r}", request=response.request
            )

    timeout = httpx2.Timeout(seconds, connect=min(seconds, pace.CONNECT_SECONDS))
    http = DefaultHttpxClient(timeout=timeout, event_hooks={"response": [told]})
    return OpenAI(base_url=address.url, api_key=address.key, timeout=timeout, max_retries=retries, http_client=http)


@dataclass(frozen=True)
class Batches:
    """The batches of one model. `poll_seconds`: between two looks at one. `retries`: of creating one."""

    opened: Callable[[], OpenAI]
    peer: fault.Peer
    intents: Intents
    poll_seconds: float
    retries: int

    @property
    def _handover(self) -> Handover:
        return Handover(self.peer, self.intents, self.poll_seconds, self.retries)

    def ask(self, bodies: Mapping[str, Mapping[str, object]]) -> Iterator[Reply]:
        """Hand over what no batch holds yet, and return an iterator of the replies, by batch, as each has ended.

        `bodies`: requests by query. A query that a batch ended without has a reply with finish "error". Raises
        RefusedError where the server refuses, or is not there; what it has is collected by the next call.
        """
        with self.opened() as made, self._parting(), self._telling(_NO_BATCHES):
            held = self._handover.held(made, bodies)
        return self._collected(held)

    def _collected(self, held: Mapping[str, Intent]) -> Iterator[Reply]:
        """Yield the replies of the batches, of each when it has ended."""
        waiting = {intent.id: intent for intent in held.values()}
        with self.opened() as made, self._parting():
            for batch, intent in self._endings(made, waiting):
                yield from self._replies(made, batch, intent, [key for key, of in held.items() if of is intent])

    def _endings(self, made: OpenAI, waiting: dict[str, Intent]) -> Iterator[tuple[Batch, Intent]]:
        """Yield each batch when it has ended, and leave it out of those waited for when its replies are kept."""
        import openai

        lost = 0
        while waiting:
            for intent in tuple(waiting.values()):
                try:
                    batch = made.batches.retrieve(intent.batch)
                    lost = 0
                except openai.APIError as error:
                    lost += 1
                    if self.peer.advice(error) or lost >= fault.SILENT:
                        with self._telling("", intent):
                            raise
                    continue
                if batch.status in _ENDED:
                    yield batch, intent
                    del waiting[intent.id]
            if waiting:
                time.sleep(self.poll_seconds)

    def _replies(self, made: OpenAI, batch: Batch, intent: Intent, keys: Sequence[str]) -> Iterator[Reply]:
        """Yield what an ended batch has for queries, then forget that it has them."""
        if batch.status == "failed":
            self._handover.given_up(made, intent, batch.input_file_id)
            raise self._not_begun(batch)
        with self._telling("", intent):
            rows = self._rows(made, batch, keys)
        complete = _complete(batch, rows, keys)
        refused: APIError | None = None
        taken = keys if complete else [key for key in keys if key in rows]
        for key in taken:
            found = (
                lines.taken(key, rows[key]) if key in rows else f"{batch.id} is {batch.status} and has no line for it"
            )
            if isinstance(found, Reply):
                yield replace(found, detail={**found.detail, "batch": batch.id})
            elif isinstance(found, str):
                yield Reply(key, "", "error", 0, 0, 0.0, {"error": self.peer.told(found), "batch": batch.id})
            elif (end := fault.finish(found)) == "error" and self.peer.advice(found):
                refused = found
            else:
                yield Reply(key, "", end, 0, 0, 0.0, {"error": self.peer.reason(found), "batch": batch.id})
        # Whoever asks for more has kept the last reply.
        if self.intents.settle(intent, set(taken)):
            delete(made, batch.input_file_id)
        if not complete:
            raise self._incomplete(batch, intent, len(rows))
        if refused is not None:
            raise self.peer.refused(self.peer.reason(refused), self.peer.advice(refused))

    def _rows(self, made: OpenAI, batch: Batch, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the lines of both files of a batch, read again while some are missing.

        Where both files have a query, the output counts.
        """
        rows: dict[str, dict[str, Any]] = {}
        for left in range(_READINGS - 1, -1, -1):
            for file in _files(batch):
                rows |= lines.read(made.files.content(file).content)
            if not left or _complete(batch, rows, keys):
                break
            time.sleep(self.poll_seconds)
        return rows

    def _incomplete(self, batch: Batch, intent: Intent, read: int) -> RefusedError:
        """Return that lines of a batch's files cannot be read, which somebody has paid for."""
        return RefusedError(
            f"{self.peer.label} at {self.peer.url}: the file of {batch.id} is incomplete, only {read:,} of its lines "
            "can be read; nothing was given up: run the same command again, or, where that has not helped, delete "
            f"{self.intents.path(intent)} to ask the other texts anew"
        )

    @contextmanager
    def _parting(self) -> Iterator[None]:
        """Say at Ctrl-C what goes on without this process: all batches of the endpoint, whoever waits for them."""
        try:
            yield
        except KeyboardInterrupt:
            with suppress(StoreError):
                open_ = self.intents.read()
                if names := ", ".join(intent.batch for intent in open_ if intent.batch):
                    what = f"What was handed over ({names}) goes on at the provider; the same command collects it."
                    say(what, sys.stderr)
                if not all(intent.batch for intent in open_):
                    what = "What was being handed over may have arrived; the same command looks for it at the provider."
                    say(what, sys.stderr)
            raise

    def _not_begun(self, batch: Batch) -> Exception:
        """Return why a batch was not begun, in the provider's words, and what to do."""
        errors = (batch.errors and batch.errors.data) or []
        said = "; ".join(f"{one.code}: {one.message}" for one in errors[:3]) or "no reason is given"
        advice = next((_NOT_BEGUN[str(one.code)] for one in errors if one.code in _NOT_BEGUN), fault.SETTING)
        return self.peer.refused(self.peer.told(f"{batch.id} failed: {said}"), advice)

    @contextmanager
    def _telling(self, otherwise: str, intent: Intent | None = None) -> Iterator[None]:
        """Turn an error of the API into one that says what to do."""
        import openai

        try:
            yield
        except openai.APIError as error:
            said, advice = self.peer.reason(error), self.peer.advice(error)
            if fault.silence(error):
                raise self.peer.silent(said, "start it or correct weights.gpt.endpoint.url") from None
            if intent and getattr(error, "status_code", 0) == 404:
                advice = (
                    f"use a key of the project that {intent.batch} was handed over from, or delete "
                    f"{self.intents.path(intent)} to ask its texts anew"
                )
            elif not advice:
                advice = "wait until it is well"
            raise self.peer.refused(said, f"{advice}, {otherwise}" if otherwise else advice) from None


def _is_thing(response: httpx2.Response) -> bool:
    """Return whether there is something with a name in a response, a list, or, where a file was asked for, its lines.

    A page of a proxy taken for a file would lose replies that are paid for. Whether a file may have no lines is known
    to whoever has its batch.
    """
    if response.url.path.endswith("/content"):
        return b'"custom_id"' in response.content or not response.content.strip()
    content = pace.content(response)
    return isinstance(content.get("id"), str) or isinstance(content.get("data"), list)


def _files(batch: Batch) -> list[str]:
    """Return the files that an ended batch has, the output last."""
    return [file for file in (batch.error_file_id, batch.output_file_id) if file]


def _complete(batch: Batch, rows: Collection[str], keys: Sequence[str]) -> bool:
    """Return whether the lines of a batch are all there, so that a text without one has no reply.

    A provider that does not count them is taken to have one for each text of a batch that it completed.
    """
    if all(key in rows for key in keys):
        return True
    counts = batch.request_counts
    if counts and counts.total:
        return len(rows) >= (counts.completed or 0) + (counts.failed or 0)
    return batch.status != "completed" and len(rows) >= len(_files(batch))
