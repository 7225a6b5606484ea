"""noisyhealth measures how language models for health cope with the way people really write."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noisyhealth.api import perturb as perturb

__all__ = ["perturb"]


def __getattr__(name: str) -> object:
    """Return `perturb`, which takes a second to import: `import noisyhealth` itself takes none."""
    if name != "perturb":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from noisyhealth.api import perturb

    return perturb
