"""The vote: which copies are asked, and which answer counts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hydra.utils import instantiate
from mitigated_cells import answers, same
from omegaconf import DictConfig

from noisyhealth.errors import ConfigError
from noisyhealth.metrics.overlap import rouge_l_each
from noisyhealth.mitigations.mitigation import Input
from noisyhealth.mitigations.vote import Vote
from noisyhealth.perturbations.engine import quota, replay
from noisyhealth.records import Answer

TEXT = "The doctor stopped the new tablets because the terrible headache came back every single evening after dinner"


@pytest.fixture(scope="module")
def vote(configured: Callable[..., DictConfig]) -> Vote:
    made: Vote = instantiate(configured("mitigate=vote", "mitigate.rate=0.2").mitigate, _convert_="all")
    return made


def test_each_copy_is_disturbed_at_the_rate_and_its_edits_give_it(vote: Vote) -> None:
    [copies] = vote.ask([Input("1", TEXT)])
    assert len(copies) == 5
    assert len({copy.text for copy in copies} | {TEXT}) == 6, "each is another text"
    for copy in copies:
        assert replay(TEXT, copy.edits) == copy.text
        assert len(copy.edits) == quota(len(TEXT.split()), 0.2)


def test_the_same_text_has_the_same_copies_alone_or_among_others_and_another_seed_others(vote: Vote) -> None:
    alone = vote.ask([Input("1", TEXT)])[0]
    among = vote.ask([Input("0", "pain in the morning"), Input("1", TEXT), Input("2", TEXT)])
    assert alone == among[1] != among[2]
    assert replace(vote, seed=1).ask([Input("1", TEXT)])[0] != alone


def test_a_text_that_cannot_reach_the_rate_is_asked_as_it_came(vote: Vote) -> None:
    for text in ("", "Ok", "2.5 mg 8:30"):
        [copies] = vote.ask([Input("1", text)])
        assert [(copy.text, copy.edits) for copy in copies] == [(text, ())] * 5
        assert vote.look(text, copies[0], copies) == {"unchanged": 5}


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        (["a", "b", "b", "a", "b"], 1),
        (["a", "b", "a"], 0),
        (["a", "b", "c"], 0),  # a tie: the first
        (["", "b", "c", "c", "b"], 1),  # what cannot be read has no vote; a tie again
        (["", "", "b"], 2),
        (["", "", ""], 0),
    ],
)
def test_the_label_of_most_copies_counts_and_of_several_the_first(vote: Vote, values: list[str], chosen: int) -> None:
    assert vote.choose(answers(*values), same) == chosen


def test_of_free_answers_the_one_nearest_to_the_others_counts(vote: Vote) -> None:
    def rouge(one: Answer, other: Answer) -> float:
        return rouge_l_each([other.value], [one.value])[0]

    values = ["the drug was metformin", "nobody knows", "the drug was stopped", "the old drug was metformin"]
    assert vote.choose(answers(*values), rouge) == 0


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"copies": 4}, r"mitigate\.copies=4: give an odd number of 3 or more"),
        ({"copies": 1}, r"mitigate\.copies=1: give an odd number"),
        ({"rate": 0.0}, r"mitigate\.rate=0.0: give a fraction of all words above 0"),
        ({"rate": 1.5}, r"mitigate\.rate=1.5: give a fraction"),
    ],
)
def test_a_vote_that_cannot_be_held_is_an_error(vote: Vote, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        replace(vote, **changed)


def test_copies_without_a_disturbance_are_an_error(vote: Vote) -> None:
    with pytest.raises(ConfigError, match=r"mitigate\.perturb is none"):
        replace(vote, perturb=replace(vote.perturb, change=None))
