"""Single examples for the page: their texts, what was changed in them, and what every model replied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisyhealth.errors import DataError
from noisyhealth.report.outline import Json

FIELDS = ("text", "question")
# Inside a script element HTML knows no escapes, so JSON's are used: nothing in a text can end the element, and
# nothing in it is a line end to one reader and none to another.
_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Items:
    """Which examples the page shows.

    `rule` says in a sentence which they are, of how many. An example is a mapping of JSON values:

    - `task`, `weights`, `id`, `text`, `question`, `target`; `field`, which of text and question was disturbed;
      `graded`, whether answers are free, with a score between 0 and 1;
    - `variants`: `perturb`, `level` and `edits`, each [start, before, after, op, medical 0/1, [flags]], where `start`
      counts code points of the original;
    - `replies`, one a model: `model`, `clean` (value, reply, outcome, right) and `cells`, one a variant: perturb,
      level, value, reply, outcome, right, flip. `right` is 0 or 1, or a ROUGE-L in between; `flip` is "right to wrong",
      "wrong to right", "wrong to other" or "same".
    """

    rule: str
    examples: tuple[Mapping[str, Json], ...] = ()


def as_script(items: Items) -> str:
    """Return the items as JSON that may stand inside a script element.

    Raises DataError for what is no JSON, for edits that do not fit their text and for an answer to a text that is not
    there: the page would show what no model was asked, or count what it does not show.
    """
    for example in items.examples:
        _check(example)
    try:
        told = json.dumps(
            {"rule": items.rule, "examples": items.examples},
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
    except (TypeError, ValueError) as error:
        raise DataError(f"the examples of the page are no JSON ({error}): give strings, finite numbers, None") from None
    return told.translate(_ESCAPES)


def _check(example: Mapping[str, Any]) -> None:
    where = f"example {example['id']!r} of {example['task']}"
    if (field := example["field"]) not in FIELDS:
        raise DataError(f"{where}: field {field!r} is none of {', '.join(FIELDS)}; name the one that was disturbed")
    for variant in example["variants"]:
        at = 0
        for start, before, *_ in sorted(variant["edits"], key=lambda edit: int(edit[0])):
            if start < at or not example[field].startswith(before, start):
                raise DataError(
                    f"{where}, {variant['perturb']} {variant['level']}: the edit of {before!r} does not fit the "
                    f"{field} at character {start}; take edits and text from one variants.parquet"
                )
            at = start + len(before)
    there = {(variant["perturb"], variant["level"]) for variant in example["variants"]}
    for reply in example["replies"]:
        if lost := {(cell["perturb"], cell["level"]) for cell in reply["cells"]} - there:
            raise DataError(f"{where}: {reply['model']} answered {sorted(lost)}, of which there is no variant; add it")
