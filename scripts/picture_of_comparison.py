"""Photograph MLflow's comparison of runs in headless Chromium.

    make ui &
    python scripts/picture_of_comparison.py demo docs/pictures/comparison.png "sentiment · bluebert"

Takes the first run of each level whose name begins as given. Needs `chromium` on the PATH.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory
from urllib.parse import quote

from mlflow import MlflowClient

SERVER = "http://127.0.0.1:5000"


def main(study: str, picture: str, beginning: str) -> None:
    """Write a PNG of the runs of one study, one task and model, side by side."""
    client = MlflowClient(SERVER)
    experiment = client.get_experiment_by_name(study)
    runs = client.search_runs([experiment.experiment_id], "attributes.status = 'FINISHED' and tags.kind = 'cell'")
    chosen = [run.info.run_id for run in reversed(runs) if (run.info.run_name or "").startswith(beginning)]
    ids = "[" + ",".join(f'"{run}"' for run in chosen) + "]"
    study_ids = f'["{experiment.experiment_id}"]'
    page = f"{SERVER}/#/compare-runs?runs={quote(ids)}&experiments={quote(study_ids)}"
    with TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        flags += ["--disable-background-networking", "--window-size=1280,900", "--virtual-time-budget=20000"]
        subprocess.run(["chromium", *flags, f"--screenshot={picture}", page], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
