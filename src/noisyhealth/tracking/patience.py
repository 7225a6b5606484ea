"""How long a tracking server that does not answer is waited for."""

import os

_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
# MLflow's client would try a request for four minutes, and wait two for each answer. Ours outlasts a server that is
# started again, which takes 10 to 20 seconds: six tries, with 0, 2, 4, 8 and 16 seconds between them.
_SETTINGS = {_RETRIES: "5", "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}


def begin() -> None:
    """Set how long MLflow's client tries, where the environment does not say."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)


def end() -> None:
    """Let this process try once from now on: it has waited in vain, and ends its sweep."""
    os.environ[_RETRIES] = "0"
