"""docs/perturbations.md: the card of each perturbation is what `python -m noisyhealth check --markdown` prints."""

import re

import pytest
from conftest import REPOSITORY

from noisyhealth.contract import card, command
from noisyhealth.contract.card import Card
from noisyhealth.contract.texts import SENTENCE

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "perturbations.md").read_text(encoding="utf-8")
NAMES = sorted({path.stem for path in (REPOSITORY / "conf" / "perturb").glob("*.yaml")} - {"none"})
CARDS = dict(re.findall(r"^## (\w+)\n.*?<!-- card -->\n(.*?)\n<!-- end of card -->", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def made() -> dict[str, Card]:
    """The cards of all perturbations; that other processes draw the same is tested by golden texts."""
    return {one.name: one for one in command.cards([f"perturb={','.join(NAMES)}"], hash_seeds=())}


def test_every_perturbation_has_a_card() -> None:
    assert sorted(CARDS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_what_the_check_prints_but_for_the_speed(name: str, made: dict[str, Card]) -> None:
    assert _lines(CARDS[name]) == _lines(card.markdown(made[name]))


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_of_the_contract_holds(name: str, made: dict[str, Card]) -> None:
    assert made[name].found.holds, made[name].found.faults


def test_the_page_shows_the_sentence_that_is_disturbed() -> None:
    assert " ".join(line.removeprefix("> ") for line in PAGE.splitlines() if line.startswith("> ")) == SENTENCE


def _lines(text: str) -> list[str]:
    """Return the lines without the one that is another on another machine."""
    lines = text.splitlines()
    assert lines[-1].startswith(card.SPEED)
    return lines[:-1]
