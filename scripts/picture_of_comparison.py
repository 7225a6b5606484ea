"""Photograph MLflow's comparison of runs in headless Chromium.

    make ui &
    python scripts/picture_of_comparison.py demo docs/pictures/comparison.png "sentiment · bluebert(MiniLM-L6) · typo"

Takes the study's finished cells whose name begins as given. Needs `pip install playwright` and Chromium at
/usr/bin/chromium.
"""

import json
import sys
from urllib.parse import quote

from mlflow import MlflowClient
from playwright.sync_api import sync_playwright

SERVER = "http://127.0.0.1:5000"


def address(study: str, beginning: str) -> str:
    """Return the page that compares the runs, oldest first."""
    client = MlflowClient(SERVER)
    experiment = client.get_experiment_by_name(study)
    runs = client.search_runs([experiment.experiment_id], "attributes.status = 'FINISHED' and tags.kind = 'cell'")
    chosen = [run.info.run_id for run in reversed(runs) if (run.info.run_name or "").startswith(beginning)]
    studies = [experiment.experiment_id]
    return f"{SERVER}/#/compare-runs?runs={quote(json.dumps(chosen))}&experiments={quote(json.dumps(studies))}"


def main(study: str, picture: str, beginning: str) -> None:
    """Write a PNG of names and metrics side by side."""
    with sync_playwright() as driver, driver.chromium.launch(executable_path="/usr/bin/chromium") as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(address(study, beginning))
        page.get_by_text("Run details", exact=True).wait_for()
        page.get_by_role("button", name="Close").first.click()  # MLflow's assistant
        for section in ("Visualizations", "Parameters"):
            page.get_by_text(section, exact=True).first.click()
        page.get_by_text("Run details", exact=True).scroll_into_view_if_needed()
        page.wait_for_timeout(1000)  # the sections fold slowly
        page.screenshot(path=picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
