"""MLflow's client, whose failures to read or write say where that was, what happened and what to do."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from noisyhealth.errors import UnreachableError
from noisyhealth.tracking import patience

_LOCKED = 20  # seconds that a locked database is waited for, as MLflow does
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


def ready(uri: str) -> None:
    """Prepare MLflow for its first use in this process.

    Raises UnreachableError when nothing is at the address: MLflow would try for long.
    """
    # Read when mlflow is imported.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # two lines a run, of a server's
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # a bar a file
    patience.begin()
    import mlflow  # noqa: F401

    for name in ("alembic", "mlflow"):  # after the import, which sets them itself
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # prints a traceback, and raises too
    _try(uri)


def _try(uri: str) -> None:
    import requests

    _, sqlite, path = uri.partition("sqlite:///")
    try:
        if sqlite:
            with closing(sqlite3.connect(path, timeout=_LOCKED)) as file:
                file.execute("pragma schema_version")
        elif uri.startswith("http"):
            requests.get(f"{uri.rstrip('/')}/health", timeout=10).raise_for_status()
    except (sqlite3.Error, requests.RequestException) as error:
        raise UnreachableError(
            f"MLflow at {uri} cannot be used: {_said(error)}. Start it, set tracking.uri, or use tracking=local"
        ) from error


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
    return UnreachableError(
        f"MLflow at {uri} cannot be used: {_said(error)}; see that the disk has room, that no other program keeps the "
        "file locked, or that the server is up, then run the same command again: what is finished is kept"
    )


def _said(error: BaseException) -> str:
    """Return what happened in its own words, without the errors around it: "Connection refused"."""
    cause = getattr(error, "orig", None) or error  # the database's own words, without the statement
    unanswered = isinstance(error, OSError) and error.errno is None  # requests' own errors have no number
    if unanswered or isinstance(error.__context__, OSError):
        while cause.__context__:
            cause = cause.__context__
    return str(cause).partition("\n")[0] or type(cause).__name__
