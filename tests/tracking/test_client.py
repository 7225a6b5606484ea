import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowException

from noisyhealth.errors import UnreachableError
from noisyhealth.tracking.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("client")
    made = Store(f"sqlite:///{folder}/mlflow.db", str(folder / "mlruns"), "study", str(folder / "store.lock"))
    assert made.experiment
    return made


def test_what_was_asked_wrongly_stays_mlflows_own_error(store: Store) -> None:
    with pytest.raises(MlflowException, match="not found"):
        store.client.get_run("0" * 32)


def test_artifacts_that_cannot_be_written_are_told_with_the_place(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    run = store.start("cell", {"kind": "cell"}, {})
    (Path(store.artifacts) / "study").mkdir(parents=True, exist_ok=True)
    (Path(store.artifacts) / "study" / run).write_text("where its folder should be")
    with pytest.raises(UnreachableError, match=r"MLflow at sqlite:///.*mlflow.db cannot be used: .*see that the disk"):
        store.log(run, {"f1": 0.5}, {}, tmp_path)


def test_a_table_that_is_gone_is_told_without_the_statement(store: Store) -> None:
    with closing(sqlite3.connect(store.uri.removeprefix("sqlite:///"))) as db:
        db.execute("alter table runs rename to other")
        with pytest.raises(UnreachableError, match=r"cannot be used: no such table: runs; see that") as raised:
            store.start("cell", {"kind": "cell"}, {})
        db.execute("alter table other rename to runs")
    assert "SELECT" not in str(raised.value)
    assert store.start("cell", {"kind": "cell"}, {})
