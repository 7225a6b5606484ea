"""docs/mitigations.md: the mitigation that it adds works as it stands there."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hydra.utils import instantiate
from mitigated_cells import Reader, run
from omegaconf import DictConfig, OmegaConf

from noisyhealth import settings

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "mitigations.md"


def block(kind: str) -> str:
    [found] = re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def test_the_guides_own_mitigation_runs_from_a_file_and_a_yaml_outside_the_package(
    tmp_path: Path, configured: Callable[..., DictConfig], shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "calm.py").write_text(block("python"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "calm", None)
    del sys.modules["calm"]
    cfg = configured(
        "model=majority", f"tracking.uri=sqlite:///{tmp_path}/mlflow.db", "data.split.test=6", "study=calm"
    )
    cfg = OmegaConf.merge(cfg, {"cache": str(shared_cache), "tracking": {"artifacts": str(tmp_path / "mlruns")}})
    OmegaConf.set_struct(cfg, False)
    cfg.mitigate = OmegaConf.create(block("yaml"))
    cell = replace(settings.cell(cfg), model=Reader("calm"))
    assert cell.name.endswith("mitigate=calm")
    metrics = cell.store.client.get_run(run(cell).run).data.metrics
    assert metrics["calm/n"] == metrics["calls"] == 6
    shouted = instantiate(cfg.mitigate).ask([type("Input", (), {"id": "1", "text": "NO PAIN"})])
    assert shouted[0][0].text == "no pain"
