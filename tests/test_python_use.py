"""`from noisyhealth import perturb`: texts disturbed from Python, the same as a dataset's."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from conftest import REPOSITORY
from omegaconf import DictConfig

from noisyhealth import perturb, settings
from noisyhealth.api import Perturbed
from noisyhealth.dataset import build
from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change, replay
from noisyhealth.records import Word

TEXT = "Severe chest pain woke me again last night, and the new tablets (5 mg) hardly helped my breathing at all."
NAMES = sorted({file.stem for file in (REPOSITORY / "conf" / "perturb").glob("*.yaml")} - {"none"})
PAGES = {name: (REPOSITORY / name).read_text(encoding="utf-8") for name in ("README.md", "docs/extend.md")}


@pytest.mark.parametrize("name", PAGES)
def test_the_lines_of_the_page_run_as_they_stand(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = [block for block in re.findall(r"^```python\n(.*?)^```", PAGES[name], re.M | re.S) if "perturb(" in block]
    exec(compile(code, name, "exec"), {})
    [printed] = re.findall(rf"{re.escape(code)}```\n\n```\n(.*?)^```", PAGES[name], re.M | re.S)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(("name", "level"), [("typo", "mid"), ("homophone", "low"), ("redact", "high")])
def test_texts_are_those_that_the_dataset_has(
    name: str, level: str, configured: Callable[..., DictConfig], shared_cache: Path
) -> None:
    built = build.load(settings.design(configured("seed=3")), str(shared_cache))
    examples, kept = built.test, built.variants(name, level)
    texts, ids = [e.text for e in examples], [e.id for e in examples]
    found = perturb(texts, name, level=level, seed=3, task="sentiment", ids=ids)
    assert [(one.text, one.edits, one.dose) for one in found] == [
        (kept[i].text, kept[i].edits, kept[i].dose) for i in ids
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_perturbation_is_known_by_its_name_and_its_edits_give_the_text(name: str) -> None:
    [found] = perturb([TEXT], name, rate=0.06)
    assert found.text is not None
    assert found.text != TEXT
    assert replay(TEXT, found.edits) == found.text
    assert len(found.edits) == 1
    assert found.dose is not None
    assert found.dose.total_words == 20


def test_a_rate_gives_what_the_level_of_that_rate_gives() -> None:
    assert perturb([TEXT], "typo", rate=0.3) == perturb([TEXT], "typo", level="mid")


def test_a_text_that_cannot_be_given_the_dose_has_a_reason_and_no_text() -> None:
    short, numbers, whole = perturb(["Ok", "5 mg b.i.d. pain 12:30 4/10", TEXT], "redact", rate=0.4)
    assert short == Perturbed("Ok", None, reason="too short")
    assert numbers == Perturbed("5 mg b.i.d. pain 12:30 4/10", None, reason="too few words can change")
    assert len(whole.edits) == 8


def test_a_text_is_the_same_alone_and_in_any_order_and_another_with_another_seed_or_task() -> None:
    texts = [TEXT, TEXT.replace("chest", "back")]
    assert perturb(texts, "typo", rate=0.3)[::-1] == perturb(texts[::-1], "typo", rate=0.3)
    assert perturb(texts[:1], "typo", rate=0.3) == perturb(texts, "typo", rate=0.3)[:1]
    drawn = {perturb([TEXT], "typo", rate=0.3, **of)[0].text for of in ({}, {"seed": 1}, {"task": "qa"})}  # type: ignore[arg-type]
    assert len(drawn) == 3


def shout(word: Word, text: str, rng: Random) -> Change | None:
    return Change(word.start, word.text, word.text.upper(), "shout")


def test_a_perturbation_of_ones_own_is_given_as_it_is() -> None:
    [found] = perturb([TEXT], shout, rate=0.1)
    assert [edit.after for edit in found.edits] == [edit.before.upper() for edit in found.edits]
    assert len(found.edits) == 2


def test_settings_are_those_of_the_command_line() -> None:
    [found] = perturb([TEXT], "redact", rate=0.1, settings=["perturb.change.mask=___"])
    assert found.text is not None
    assert found.text.count("___") == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"perturbation": "tpyo", "rate": 0.1}, "tpyo"),
        ({"perturbation": "typo"}, "give either a level by name"),
        ({"perturbation": "typo", "rate": 0.1, "level": "low"}, "give either a level by name"),
        ({"perturbation": "typo", "level": "hgih"}, "typo has no level 'hgih'; it has low, mid, high"),
        ({"perturbation": shout, "level": "low"}, "shout has no level 'low'; it has none: give a rate"),
        ({"perturbation": "typo", "rate": 1.5}, "1.5: give a fraction of words, 0 to 1"),
        ({"perturbation": "typo", "rate": 0.1, "ids": ["1", "2"]}, "there are 2 ids for 1 texts"),
        ({"perturbation": "typo,redact", "rate": 0.1}, "are several"),
        ({"perturbation": "typo", "rate": 0.1, "settings": ["perturb.mask=x"]}, "perturb.mask"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_says_why(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        perturb([TEXT], **given)  # type: ignore[arg-type]


def test_one_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(ConfigError, match="give a list of texts"):
        perturb(TEXT, "typo", rate=0.1)


def test_importing_the_package_imports_nothing_else_and_perturb_no_torch_and_no_mlflow() -> None:
    heavy = "{'torch', 'mlflow', 'spacy', 'hydra', 'numpy', 'pandas', 'transformers', 'rapidfuzz'}"
    code = (
        f"import sys, noisyhealth; print(sorted({heavy} & set(sys.modules)))\n"
        "from noisyhealth import perturb; print(sorted({'torch', 'mlflow', 'spacy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split("\n")[:2] == ["[]", "[]"]


@pytest.mark.parametrize(
    ("texts", "perturbation", "given", "told"),
    [
        ([TEXT, None], "typo", {"rate": 0.3}, "texts holds None, which is no text"),
        ([TEXT], 3, {"rate": 0.3}, "perturbation=3: give a name"),
        ([TEXT], "typo", {"rate": True}, "rate=True: give a fraction"),
        ([TEXT], "typo", {"rate": 0.3, "settings": ["level=high"]}, "settings has level=high: give it as"),
        ([TEXT], "none", {"level": "mid"}, "none has no level 'mid'"),
    ],
)
def test_what_cannot_be_disturbed_is_said_in_a_sentence(
    texts: list[str], perturbation: str, given: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        perturb(texts, perturbation, **given)  # type: ignore[arg-type]


def test_texts_may_come_one_by_one() -> None:
    assert perturb((text for text in [TEXT]), "typo", rate=0.3) == perturb([TEXT], "typo", rate=0.3)
