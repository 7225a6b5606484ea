"""How a question is put: role, examples, instructions, input, other instructions.

The order is the study's (Joshi et al. 2026, Methods, "Design of Prompt"). Examples are earlier turns of the
conversation, the form that chat models were trained on, each with the instructions that the input has too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from string import Formatter
from typing import TypeAlias

from noisyhealth.errors import ConfigError
from noisyhealth.records import Example, Query

Message: TypeAlias = dict[str, str]

FORMATS = ("text", "json", "json_schema")
# What each template may have, and what it must.
_FIELDS: Mapping[str, tuple[Sequence[str], str]] = {
    "system": (("role", "instruction"), ""),
    "user": (("instruction", "block"), "block"),
    "answer": (("answer",), "answer"),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """What a task adds to a prompt.

    `role`: who the model is. `instruction`: what is to be done. `block`: how an input is laid out,
    with `{text}` and `{question}`. `limits`: what is said after the input alone, "" for nothing.
    """

    role: str
    instruction: str
    block: str
    limits: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A way to ask, the same for every task.

    `shots`: number of worked examples, drawn once with `shot_seed` from the pool for prompts.
    `system`, `user` and `answer` are templates; `system` may use `{role}` and `{instruction}`,
    `user` may use `{instruction}` and `{block}`, `answer` must use `{answer}`.
    `format`: "text"; or "json", where worked examples are objects with an answer and a justification (`answer` is then
    not used); or "json_schema", where the server holds the reply to such an object as well. `reasons`: whether the
    reply reasons before it answers. Raises ConfigError for a format there is not, and for a template
    with a field that nothing fills or without the one that it must use.
    """

    name: str
    shots: int
    shot_seed: int
    system: str
    user: str
    answer: str
    format: str = "text"
    reasons: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ConfigError(f"prompt.format={self.format!r} of prompt {self.name}: give {' or '.join(FORMATS)}")
        if self.shots < 0:
            raise ConfigError(f"prompt.shots={self.shots}: give a number of examples, 0 or more")
        for part, (may, must) in _FIELDS.items():
            self._check(part, may, must if part != "answer" or self.format == "text" else "")

    def _check(self, part: str, may: Sequence[str], must: str) -> None:
        """Raise ConfigError where a template has a field that nothing fills, or lacks the one it is there for."""
        try:
            named = {name for _, name, _, _ in Formatter().parse(getattr(self, part)) if name is not None}
        except ValueError as error:
            raise ConfigError(
                f"prompt.{part} of prompt {self.name}: {error}; a brace itself is written twice"
            ) from None
        if odd := sorted(named - set(may)):
            raise ConfigError(
                f"prompt.{part} of prompt {self.name} has {{{odd[0]}}}, which nothing fills: it may have "
                f"{' and '.join(f'{{{one}}}' for one in may)}; a brace itself is written twice"
            )
        if must and must not in named:
            raise ConfigError(f"prompt.{part} of prompt {self.name} lacks {{{must}}}, without which nothing is asked")

    @property
    def written(self) -> str:
        """Why the reply has to be written by the model, "" where a label can be chosen in its place."""
        if self.reasons:
            return f"prompt={self.name} has the model reason before it answers"
        return "" if self.format == "text" else f"prompt.format={self.format} asks for an object"

    def choose(self, pool: Sequence[Example]) -> tuple[Example, ...]:
        """Return the shots: as even over the answers of a closed task as the number allows.

        Raises ConfigError when the pool holds fewer examples than shots are asked for.
        """
        if not 0 <= self.shots <= len(pool):
            raise ConfigError(
                f"prompt.shots={self.shots}, but the pool for prompts holds {len(pool)} examples: "
                "lower prompt.shots or raise data.split.prompt"
            )
        # By a hash, not by `random.shuffle`, whose order may differ in another version of Python.
        order = sorted(pool, key=lambda e: blake2b(f"{self.shot_seed}\x1f{e.id}".encode(), digest_size=16).digest())
        return tuple(_even(order, self.shots))

    def messages(self, wording: Wording, shots: Sequence[Example], query: Query) -> list[Message]:
        """Return the conversation that puts one query."""
        system = self.system.format(role=wording.role, instruction=wording.instruction).strip()
        turns = [{"role": "system", "content": system}]
        for shot in shots:
            turns.append({"role": "user", "content": self._case(wording, shot.text, shot.question, "")})
            turns.append({"role": "assistant", "content": self._answer(shot)})
        return [*turns, {"role": "user", "content": self._case(wording, query.text, query.question, wording.limits)}]

    def form(self, query: Query) -> dict[str, object]:
        """Return what a request says of the reply's form beside its messages: nothing, or `response_format`.

        In a closed task the answer is one of the options. Source: platform.openai.com/docs/guides/structured-outputs.
        """
        if self.format != "json_schema":
            return {}
        answer = {"type": "string", **({"enum": list(query.options)} if query.options else {})}
        schema = {
            "type": "object",
            "properties": {"answer": answer, "justification": {"type": "string"}},
            "required": ["answer", "justification"],
            "additionalProperties": False,
        }
        named = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def _answer(self, shot: Example) -> str:
        """Return the reply of a worked example."""
        if self.format == "text":
            return self.answer.format(answer=shot.target)
        return json.dumps({"answer": shot.target, "justification": "none"}, ensure_ascii=False)

    def _case(self, wording: Wording, text: str, question: str, limits: str) -> str:
        """Return one input with its instructions."""
        block = wording.block.format(text=text, question=question)
        case = self.user.format(instruction=wording.instruction, block=block)
        return f"{case}\n{limits}" if limits else case

    @property
    def lead(self) -> str:
        """What stands before the answer in a reply: "Answer:"."""
        return self.answer.partition("{answer}")[0].rstrip()


def _even(order: Sequence[Example], count: int) -> list[Example]:
    """Return `count` examples, taking the answers in turn where answers repeat."""
    queues: dict[str, list[Example]] = {}
    for example in order:
        queues.setdefault(example.target, []).append(example)
    if len(queues) > len(order) / 2:  # free answers hardly ever repeat: there are no turns to take
        return list(order[:count])
    picked: list[Example] = []
    while len(picked) < count:
        for queue in queues.values():
            if queue and len(picked) < count:
                picked.append(queue.pop(0))
    return picked
