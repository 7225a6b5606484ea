"""Texts disturbed from Python, without a command line: `from noisyhealth import perturb`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from noisyhealth import settings as configuration
from noisyhealth.configuration import CONF
from noisyhealth.dataset import build
from noisyhealth.dataset.design import Design, Disturbance
from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import OutOfReach, Perturbation
from noisyhealth.records import Dose, Edit, Example, Variant


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A text and what became of it.

    `text`: the disturbed text, None where it cannot be given the dose, for `reason`. `edits` are spans of `original`;
    replayed on it they give `text`. `dose`: what the disturbance really was.
    """

    original: str
    text: str | None
    edits: tuple[Edit, ...] = ()
    dose: Dose | None = None
    reason: str = ""


def perturb(
    texts: Iterable[str],
    perturbation: str | Perturbation,
    *,
    level: str = "",
    rate: float | None = None,
    seed: int = 0,
    task: str = "",
    ids: Sequence[str] = (),
    settings: Sequence[str] = (),
) -> list[Perturbed]:
    """Return each text disturbed, in order; one that cannot be given the whole dose has a reason instead.

    `perturbation`: its name, as `perturb=` of run.py takes it, or a perturbation of your own, which is called by the
    name of its class in small letters. Give a `level` by name or a `rate`, a fraction of the words. `settings`:
    others than the defaults of `conf/`, as on the command line ("perturb.change.mask=___").

    A text depends on nothing but itself, its id (by default the hash of the text), `task`, `seed`, the
    perturbation and the settings: with those of a dataset the texts are the dataset's.

    Raises ConfigError for what there is not, and for ids of another number than texts.

    >>> [found] = perturb(["Severe chest pain since Monday."], "redact", rate=0.4, seed=1)
    >>> found.text, [edit.before for edit in found.edits]
    ('chest since Monday.', ['Severe ', 'pain '])
    """
    if isinstance(texts, str):
        raise ConfigError(f"texts is one text, {texts[:60]!r}: give a list of texts, [text]")
    texts = list(texts)
    if odd := [text for text in texts if not isinstance(text, str)]:
        raise ConfigError(f"texts holds {odd[0]!r}, which is no text: leave it out, or give its text")
    if not (isinstance(perturbation, str) or callable(perturbation)):
        raise ConfigError(f"perturbation={perturbation!r}: give a name, as 'typo', or what is called with a word")
    if isinstance(rate, bool) or (rate is not None and not isinstance(rate, int | float)):
        raise ConfigError(f"rate={rate!r}: give a fraction of the words, as 0.1")
    if dose := [one for one in settings if one.partition("=")[0].lstrip("+") in ("level", "level.rate", "perturb")]:
        raise ConfigError(f"settings has {dose[0]}: give it as perturbation=, level= or rate=")
    if ids and len(ids) != len(texts):
        raise ConfigError(f"there are {len(ids)} ids for {len(texts)} texts: give one a text, or none")
    if (rate is None) == (not level):
        raise ConfigError('give either a level by name, level="low", or a rate, a fraction of the words, rate=0.1')
    design, disturbance = _asked(perturbation, seed, tuple(settings))
    if rate is not None:
        disturbance = replace(disturbance, levels={f"{rate}": rate})
    elif level in disturbance.levels:
        disturbance = replace(disturbance, levels={level: disturbance.levels[level]})
    else:
        known = ", ".join(disturbance.levels) or "none: give a rate"
        raise ConfigError(f"{disturbance.name} has no level {level!r}; it has {known}")
    names = ids or [sha256(text.encode(errors="surrogatepass")).hexdigest()[:16] for text in texts]
    examples = [Example(name, text, "") for name, text in zip(names, texts, strict=True)]
    words = design.tagger.tag(texts)
    asked = replace(design, task=task)
    return [
        _told(example.text, *build.levels(example, found, disturbance, asked).values())
        for example, found in zip(examples, words, strict=True)
    ]


def _asked(perturbation: str | Perturbation, seed: int, settings: tuple[str, ...]) -> tuple[Design, Disturbance]:
    """Return the design of the configuration, and a perturbation by its name or in an object."""
    if isinstance(perturbation, str):
        return _configured(perturbation, seed, settings)
    name = getattr(perturbation, "__name__", type(perturbation).__name__).lower()
    return _configured("none", seed, settings)[0], Disturbance(name, {}, True, perturbation)


@cache
def _configured(name: str, seed: int, settings: tuple[str, ...]) -> tuple[Design, Disturbance]:
    try:
        configs = configuration.compose(CONF, [f"perturb={name}", f"seed={seed}", *settings])
        design = configuration.design(configs[0])
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"perturb={name} {' '.join(settings)}: {error}") from None
    if len(configs) > 1:
        raise ConfigError(f"perturb={name} {' '.join(settings)} are several: give one perturbation and one of each")
    cfg = configs[0].perturb
    if name == "none":
        return design, Disturbance(name, {}, True, None)
    own = [one for one in design.disturbances if one.name == cfg.name]
    return design, own[0] if own else Disturbance(name, dict(cfg.levels), True, None)


def _told(original: str, found: Variant | OutOfReach) -> Perturbed:
    if isinstance(found, Variant):
        return Perturbed(original, found.text, found.edits, found.dose)
    return Perturbed(original, None, reason=str(found))
