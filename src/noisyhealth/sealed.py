"""What a run keeps of texts that may not be copied (`tracking.keep_text=false`): keyed hashes, counts, labels.

Labels of a closed task are no texts and stay; ids and groups stay too, since nothing could be traced without them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, object]
Seal = Callable[[str], str]

NOT_KEPT = "texts were not kept (tracking.keep_text=false)"
_TEXTS = ("text", "question", "reply", "request")
_ANSWERS = ("target", "value")
# Of what came with a reply, what counts in a run's numbers and cannot hold a text.
_DETAILS = ("usage", "batch", "server_model", "pieces_per_word", "truncated")


def variant(row: Row, seal: Seal) -> dict[str, object]:
    """Return a row of disturbed texts: of each edit stays where it was and what it touched, not the words."""
    edits: list[dict[str, Any]] = json.loads(str(row["edits"]))
    bare = json.dumps([{**edit, "before": "", "after": ""} for edit in edits], ensure_ascii=False)
    return {**row, "original": seal(str(row["original"])), "disturbed": seal(str(row["disturbed"])), "edits": bare}


def call(row: Row, seal: Seal, *, free: bool) -> dict[str, object]:
    """Return a row of what was asked in place of a text: of each edit stays where it was, not the words."""
    edits: list[dict[str, Any]] = json.loads(str(row["edits"]))
    bare = json.dumps([{**edit, "before": "", "after": ""} for edit in edits], ensure_ascii=False)
    return {**prediction(row, seal, free=free), "edits": bare}


def prediction(row: Row, seal: Seal, *, free: bool) -> dict[str, object]:
    """Return a row of answers; `free`: the answers are texts too, and not labels."""
    names = [name for name in (*_TEXTS, *(_ANSWERS if free else ())) if name in row]
    detail = {name: value for name, value in json.loads(str(row["detail"])).items() if name in _DETAILS}
    hidden = {name: seal(str(row[name])) for name in names}
    return {**row, **hidden, "detail": json.dumps(detail, ensure_ascii=False)}
