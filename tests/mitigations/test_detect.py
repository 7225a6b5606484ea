"""The detector: risk, threshold, and what is told of the flag."""

import pytest
from mitigated_cells import answers

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.mitigations.detect import Detect
from noisyhealth.mitigations.mitigation import Seen

DETECT = Detect("detect", false_alarms=0.25, shortest=4)


def seen(risks: list[float], right: list[float]) -> Seen:
    facts = tuple({"risk": risk} for risk in risks)
    return Seen(facts, tuple(tuple(answers("a")) for _ in risks), (0,) * len(risks), tuple(right))


@pytest.mark.parametrize(
    ("text", "risk"),
    [
        ("terrible headache this evening", 0.0),
        ("terirble haedache this evening", 0.5),
        ("I am so ill", 0.0),  # nothing of four letters
        ("", 0.0),
        ("Metformin 500 mg xqzvw at 8:30 by Okafor", 0.5),
    ],
)
def test_the_risk_is_the_share_of_unknown_words_of_those_that_can_be_judged(text: str, risk: float) -> None:
    assert DETECT.risk(text) == risk


@pytest.mark.parametrize(
    ("risks", "alarms", "threshold"),
    [
        ([0.0, 0.1, 0.2, 0.3], 0.25, 0.2),
        ([0.0, 0.1, 0.2, 0.3], 0.0, 0.3),
        ([0.3, 0.0, 0.2, 0.1], 0.5, 0.1),
        ([0.0, 0.2, 0.2, 0.2], 0.25, 0.2),
        ([i / 20 for i in range(20)], 0.05, 18 / 20),
        ([0.4], 0.05, 0.4),
    ],
)
def test_no_more_of_the_validation_texts_are_flagged_than_may_be_and_no_lower_threshold_would_do(
    risks: list[float], alarms: float, threshold: float
) -> None:
    found = Detect("detect", alarms, 4).measure(seen([0.0], [1.0]), None, {"risk": risks})
    assert (found["detect/threshold"], found["detect/validation_n"]) == (threshold, len(risks))
    assert sum(risk > threshold for risk in risks) <= alarms * len(risks) + 1e-9
    lower = [risk for risk in risks if risk < threshold]
    assert not lower or sum(risk > max(lower) for risk in risks) > alarms * len(risks)


def test_every_share_and_area_stands_with_its_n() -> None:
    disturbed, clean = seen([0.9, 0.5, 0.1], [0.0, 1.0, 1.0]), seen([0.0, 0.5, 0.1], [1.0, 1.0, 0.0])
    found = DETECT.measure(disturbed, clean, {"risk": [0.0, 0.1, 0.2, 0.3]})
    wanted = {
        "detect/n": 3,
        "detect/flagged": 2 / 3,
        "detect/flagged_n": 2,
        "detect/right_flagged": 0.5,
        "detect/unflagged_n": 1,
        "detect/right_unflagged": 1.0,
        "detect/auroc_wrong": 1.0,
        "detect/auroc_wrong_n": 3,
        "detect/auroc_wrong_positive_n": 1,
        "detect/auroc_disturbed": 7 / 9,
        "detect/auroc_disturbed_n": 6,
        "detect/auroc_disturbed_positive_n": 3,
        "clean_detect/flagged": 1 / 3,
        "clean_detect/auroc_wrong": 0.5,
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_what_is_not_there_has_no_number_but_an_n_of_nothing() -> None:
    found = DETECT.measure(seen([0.0, 0.1], [1.0, 1.0]), None, {"risk": [0.5]})
    assert (found["detect/flagged_n"], found["detect/auroc_wrong_positive_n"]) == (0, 0)
    assert not {"detect/right_flagged", "detect/auroc_wrong", "detect/auroc_disturbed"} & found.keys()


def test_free_answers_have_no_wrong_ones_to_be_told_apart() -> None:
    found = DETECT.measure(seen([0.0, 0.9], [0.4, 1.0]), None, {"risk": [0.5]})
    assert "detect/auroc_wrong_n" not in found
    assert found["detect/right_flagged"] == 1.0


def test_settings_that_cannot_be_used_and_a_lack_of_validation_texts_are_errors() -> None:
    with pytest.raises(ConfigError, match=r"mitigate\.false_alarms=1: give a fraction of texts"):
        Detect("detect", 1, 4)
    with pytest.raises(ConfigError, match=r"mitigate\.shortest=0"):
        Detect("detect", 0.05, 0)
    with pytest.raises(DataError, match="no validation text to choose the threshold by"):
        DETECT.learn([])
