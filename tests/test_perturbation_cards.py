"""The cards in docs/perturbations.md: one for each perturbation beyond the study, with examples that the code makes."""

import re
from pathlib import Path

import pytest

from noisyhealth import settings
from noisyhealth.dataset import build
from noisyhealth.records import Example, Variant

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "perturbations.md").read_text(encoding="utf-8")
SENTENCE = " ".join(line.removeprefix("> ") for line in PAGE.splitlines() if line.startswith("> "))
NAMES = {path.stem for path in (ROOT / "conf" / "perturb").glob("*.yaml")} - {"none", "typo", "homophone", "redact"}
CARDS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_perturbation_beyond_the_study_has_a_card() -> None:
    assert set(CARDS) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_examples_of_a_card_are_what_the_code_makes_at_the_levels_it_has(name: str) -> None:
    [cfg] = settings.compose(ROOT / "conf", [f"perturb={name}"])
    design = settings.design(cfg)
    own = design.disturbances[-1]
    [words] = design.tagger.tag([SENTENCE])
    made = build.levels(Example("card", SENTENCE, ""), words, own, design)
    written = {
        (level, int(rate) / 100): re.sub(r"~~.*?~~ |\*\*", "", text)
        for level, rate, text in re.findall(r"^- \*\*(\w+)\*\*, (\d+)%: (.*)$", CARDS[name], re.MULTILINE)
    }
    assert written == {(level, own.levels[level]): v.text for level, v in made.items() if isinstance(v, Variant)}
    assert len(written) == 3
