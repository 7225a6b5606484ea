"""BLEU and ROUGE, against nltk, rouge-score's default and hand counts."""

import math
import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from noisyhealth.errors import DataError
from noisyhealth.metrics.overlap import rouge_l_each, scores, words

ROUGE = ("rouge1", "rouge2", "rougeL")
SENTENCE = "the patient denies chest pain and takes 40 mg of furosemide daily t2dm"
WORDS = SENTENCE.split()


@pytest.mark.parametrize(
    "text",
    [
        "no chest pain today",
        "температура пациента 38,5",
        "患者没有胸痛",
        "患者は胸の痛みがない",
        "रोगी को सीने में दर्द नहीं है",
        "لا يوجد ألم في الصدر",
        "환자는 가슴 통증이 없다",
        "ผู้ป่วยไม่มีอาการ เจ็บหน้าอก",
        "Ασθενής παίρνει 5 µg",
    ],
)
def test_identical_texts_score_one_in_any_script(text: str) -> None:
    found = scores([text], [text])
    assert [found[kind] for kind in ROUGE] == [1.0, 1.0, 1.0]
    assert found["bleu"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5 mg", ["2.5", "mg"]),
        ("5.2mg.", ["5.2mg"]),
        ("Stop. 3, then 1,000.", ["stop", "3", "then", "1,000"]),
        ("well-known, isn't it", ["well", "known", "isn", "t", "it"]),
        ("snake_case", ["snake", "case"]),
        ("120/80", ["120", "80"]),
        ("胸痛 two", ["胸", "痛", "two"]),
        ("naïve nai\u0308ve", ["naïve", "naïve"]),
        ("5 \u00b5g 5 \u03bcg", ["5", "μg", "5", "μg"]),
        ("👍 !", []),
    ],
)
def test_words_keep_decimals_marks_and_scripts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("seed", range(20))
def test_plain_ascii_words_score_as_rouge_score_does_by_default(seed: int) -> None:
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(5)]
    candidates = [" ".join(rng.choices(WORDS, k=rng.randint(0, 12))).title() + "!" for _ in range(5)]
    scorer = RougeScorer(list(ROUGE), use_stemmer=False)
    each = [scorer.score(ref, cand) for ref, cand in zip(references, candidates, strict=True)]
    found = scores(references, candidates)
    for kind in ROUGE:
        assert found[kind] == pytest.approx(sum(one[kind].fmeasure for one in each) / 5, abs=1e-12)
    assert rouge_l_each(references, candidates) == [one["rougeL"].fmeasure for one in each]


def test_two_and_a_half_is_not_five_point_two() -> None:
    assert scores(["2.5 mg"], ["5.2 mg"])["rouge1"] == 0.5


@pytest.mark.parametrize("candidate", ["", "   ", "?!"])
def test_an_empty_candidate_scores_zero(candidate: str) -> None:
    assert scores(["chest pain"], [candidate]) == {"bleu": 0.0, "rouge1": 0.0, "rouge2": 0.0, "rougeL": 0.0}
    assert rouge_l_each(["chest pain", "fever"], [candidate, "fever"]) == [0.0, 1.0]


def test_an_empty_reference_scores_zero() -> None:
    assert set(scores([""], ["chest pain"]).values()) == {0.0}
    assert set(scores([""], [""]).values()) == {0.0}


def test_a_corpus_of_short_answers_has_a_bleu_of_one_against_itself() -> None:
    assert scores(["2.5 mg", "aspirin"], ["2.5 mg", "aspirin"])["bleu"] == pytest.approx(1.0, abs=1e-6)


def test_bleu_is_of_the_corpus_and_smoothed_as_nltk_does_it() -> None:
    """nltk.translate.bleu_score.corpus_bleu(..., smoothing_function=SmoothingFunction().method2)."""
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    references = ["the cat is on the mat today", "she takes 40 mg of furosemide daily"]
    candidates = ["the cat is on a mat", "takes 40 mg of furosemide every day now"]
    expected = corpus_bleu(
        [[reference.split()] for reference in references],
        [candidate.split() for candidate in candidates],
        smoothing_function=SmoothingFunction().method2,
    )
    assert scores(references, candidates)["bleu"] == pytest.approx(expected, abs=1e-6)


def test_an_empty_candidate_adds_only_its_missing_length_to_the_bleu_of_a_corpus() -> None:
    """By hand: all runs match, so BLEU is the brevity penalty exp(1 - 8 / 5)."""
    assert scores(["a b c d e", "f g h"], ["a b c d e", ""])["bleu"] == pytest.approx(math.exp(1 - 8 / 5), abs=1e-6)


def test_bleu_is_zero_where_no_run_of_four_words_matches_anywhere() -> None:
    assert scores(["a b c d e"], ["a b c x e"])["bleu"] == 0.0


@pytest.mark.parametrize(("references", "candidates"), [([], []), (["a"], []), (["a"], ["a", "b"])])
def test_nothing_or_unequal_lengths_are_refused(references: list[str], candidates: list[str]) -> None:
    with pytest.raises(DataError, match="answers"):
        scores(references, candidates)
    with pytest.raises(DataError, match="answers"):
        rouge_l_each(references, candidates)
