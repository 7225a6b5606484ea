"""MLflow's client, whose failures to read or write say where that was, what happened and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from noisyhealth.errors import UnreachableError
from noisyhealth.tracking import patience

# How MLflow marks what its database or its server failed to do, and not what it was asked wrongly.
_LOST = ("TEMPORARILY_UNAVAILABLE", "INTERNAL_ERROR")


class Client:
    """MLflow's client for one address; every call that the database, the disk or the server fails is told as such.

    A locked database is waited for, by MLflow 3.17 for 20 seconds a call.
    """

    def __init__(self, uri: str) -> None:
        from mlflow import MlflowClient

        self.uri = uri
        with reached(uri):
            self.client = MlflowClient(tracking_uri=uri)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)

        def call(*given: Any, **named: Any) -> Any:
            with reached(self.uri):
                return method(*given, **named)

        return call


@contextmanager
def reached(uri: str) -> Iterator[None]:
    """Raise UnreachableError where the store at an address cannot be read or written."""
    from mlflow import MlflowException
    from sqlalchemy.exc import OperationalError

    try:
        yield
    except MlflowException as error:
        if error.error_code not in _LOST:
            raise
        raise _unreachable(uri, error.__cause__ or error) from error
    except (OSError, OperationalError) as error:
        raise _unreachable(uri, error) from error


def _unreachable(uri: str, error: BaseException) -> UnreachableError:
    patience.end()
    cause = getattr(error, "orig", None) or error  # the database's own words, without the statement
    said = str(cause).partition("\n")[0] or type(cause).__name__
    return UnreachableError(
        f"MLflow at {uri} cannot be used: {said}; see that the disk has room, that no other program keeps the file "
        "locked, or that the server is up, then run the same command again: what is finished is kept"
    )
