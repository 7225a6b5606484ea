"""The folders of configuration that Hydra reads, opened beside or within one of its own commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from noisyhealth.errors import ConfigError

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader

CONF = Path(__file__).parents[2] / "conf"


@contextmanager
def opened(conf: Path, beside: str | None = None) -> Iterator[ConfigLoader]:
    """Yield Hydra's loader of a folder; what Hydra had open before is open again afterwards.

    `beside`: a folder of the user's, searched after it, as for Hydra's own --config-dir. Raises ConfigError where a
    folder is not there.
    """
    from hydra import version
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.global_hydra import GlobalHydra

    if not conf.is_dir():
        raise ConfigError(f"{conf}: no configuration there; run this from a checkout installed with `make install`")
    version.setbase("1.3")
    path = create_config_search_path(str(conf.resolve()))
    if beside is not None:
        path.prepend("command-line", f"file://{_folder(beside)}", SearchPathQuery(provider="schema"))
    held, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None
    try:
        yield Hydra.create_main_hydra2("noisyhealth", path).config_loader
    finally:
        GlobalHydra.instance().hydra = held


def _folder(given: str) -> Path:
    if not (folder := Path(given).resolve()).is_dir():
        raise ConfigError(f"--config-dir {given}: no folder there; give the one that holds your groups, as perturb/")
    return folder
