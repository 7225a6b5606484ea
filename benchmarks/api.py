"""How fast a server is asked, against a bare AsyncOpenAI loop at the same concurrency in the same run.

    python benchmarks/api.py

A server in a process of its own answers after 50 ms. Takes about a minute. The two take turns; `ratio` is the median of
our requests a second over the median of the bare loop's. `memory` is what the process grew by between the 500th reply
and the last of each of our rounds, in MB; the time of the processor, a request, tells the same where others use it too.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from openai import AsyncOpenAI

from noisyhealth.models.chat.chat import Chat
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.records import Query, Training
from noisyhealth.text.prompt import Prompt, Wording

SERVER = Path(__file__).parents[1] / "tests" / "models" / "chat" / "faulty.py"
WARM = 500  # replies after which memory is looked at


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    queries = [Query(f"id-{n}", f"question {n} " + "word " * 200, "", ()) for n in range(options.requests)]
    with serving(options.latency) as url:
        model = client(url, options.concurrency)
        rates: dict[str, list[float]] = {"bare": [], "ours": []}
        for at in range(options.rounds + 1):  # the first round imports and connects, and does not count
            asked = queries if at else queries[:WARM]
            begun = time.process_time()
            bare = asyncio.run(bare_loop(model, url, asked))
            between = time.process_time()
            ours, grown = our_loop(model, asked)
            if at:
                rates["bare"].append(bare)
                rates["ours"].append(ours)
                cost = [1000 * seconds / len(asked) for seconds in (between - begun, time.process_time() - between)]
                print(
                    f"round {at}: bare {bare:.0f}/s ({cost[0]:.2f} ms of processor), ours {ours:.0f}/s "
                    f"({cost[1]:.2f} ms), memory {grown:+.1f} MB"
                )
    print(f"ratio={median(rates['ours']) / median(rates['bare']):.2f}")


@contextmanager
def serving(latency: float) -> Iterator[str]:
    """Start the server and give its address."""
    command = [sys.executable, str(SERVER), "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the pipes asked for are there")
        yield process.stdout.readline().strip()
        process.stdin.close()


def client(url: str, concurrency: int) -> Chat:
    """Return the study's client."""
    prompt = Prompt("bare", shots=0, shot_seed=0, system="", user="{block}", answer="{answer}")
    endpoint = Remote("server", url, "model", key_variable="")
    at_once = (False, 1.0, 1.0, "")  # no batches
    model = Chat("gpt", endpoint, prompt, {}, 200, (), 0.0, 0.0, 1, concurrency, None, None, 600.0, 10, *at_once)
    model.fit(Wording(role="", instruction="", block="{text}"), Training((), (), ()))
    return model


async def bare_loop(model: Chat, url: str, queries: Sequence[Query]) -> float:
    """Ask with nothing but the OpenAI client and a semaphore; returns requests a second."""
    slots = asyncio.Semaphore(model.concurrency)
    start = time.perf_counter()
    async with AsyncOpenAI(base_url=url, api_key="EMPTY", max_retries=10, timeout=600.0) as made:

        async def ask(query: Query) -> None:
            async with slots:
                messages = [{"role": "user", "content": query.text}]
                reply = await made.chat.completions.create(  # type: ignore[call-overload]
                    model="model", messages=messages, max_tokens=200, temperature=0.0, frequency_penalty=0.0, seed=1
                )
            check(reply.choices[0].message.content, query)

        await asyncio.gather(*map(ask, queries))
    return len(queries) / (time.perf_counter() - start)


def our_loop(model: Chat, queries: Sequence[Query]) -> tuple[float, float]:
    """Return requests a second and the MB that the process grew by after the first replies."""
    known, start, early = {query.id: query for query in queries}, time.perf_counter(), resident()
    for count, reply in enumerate(model.predict(queries), start=1):
        check(reply.text, known.pop(reply.id))
        if count == WARM:
            early = resident()
    return len(queries) / (time.perf_counter() - start), resident() - early


def check(text: str | None, query: Query) -> None:
    """End the run where an answer is not the question's own."""
    if text != f"Answer: {query.text}":
        sys.exit(f"{query.text[:40]!r} was answered with {text!r}: the server or the client is wrong")


def resident() -> float:
    """Return the process's memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    main()
