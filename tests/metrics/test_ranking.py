import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from noisyhealth.metrics.ranking import auroc


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.booleans()), min_size=2, max_size=40))
def test_the_area_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    scores, positive = [score for score, _ in pairs], [one for _, one in pairs]
    found = auroc(scores, positive)
    if len(set(positive)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(positive, scores))
