"""What ended a command, in one line: an error that says what to do as it is, any other with its traceback in a file."""

from __future__ import annotations

import traceback
from tempfile import NamedTemporaryFile

from noisyhealth.errors import NoisyHealthError


def told(error: BaseException) -> str:
    """Return the line; where nobody foresaw the error, it names the file that its traceback was written to."""
    if isinstance(error, NoisyHealthError | OSError):
        return f"{type(error).__name__}: {error}"
    with NamedTemporaryFile("w", encoding="utf-8", prefix="noisyhealth-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    said = str(error).strip().partition("\n")[0]
    return (
        f"{type(error).__name__}: {said}. Nobody foresaw this: a fault of noisyhealth, or of code or settings of your "
        f"own; where it happened stands in {file.name}"
    )
