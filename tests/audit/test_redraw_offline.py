"""Drawing again asks no service, whatever a disturbance is made of."""

from pathlib import Path

from noisyhealth.audit.redraw import offline
from noisyhealth.dataset.design import Disturbance
from noisyhealth.perturbations.homophone import Homophone
from noisyhealth.perturbations.mixture import Mixture
from noisyhealth.perturbations.redact import Redact
from noisyhealth.text.datamuse import Datamuse


def test_a_service_inside_a_mixture_is_not_asked_again(tmp_path: Path) -> None:
    service = Datamuse(str(tmp_path / "answers.jsonl"), url="http://127.0.0.1:9/words", timeout=1.0, retries=0)
    heard = Disturbance("homophone", {"low": 0.1}, True, Homophone(service))
    gone = Disturbance("redact", {"low": 0.1}, True, Redact())
    mixed = Mixture({"homophone": heard, "redact": gone}, {"homophone": 1.0, "redact": 1.0})
    for disturbance in (heard, Disturbance("mixture", {"low": 0.1}, True, mixed)):
        change = offline(disturbance).change
        if isinstance(change, Mixture):
            assert change.parts["redact"] == gone
            change = change.parts["homophone"].change
        assert isinstance(change, Homophone)
        assert isinstance(change.sounds, Datamuse)
        assert (change.sounds.answers, change.sounds.url) == (service.answers, "")
