"""Words in common between a free answer and its reference: BLEU and ROUGE.

BLEU: Papineni et al. 2002, doi:10.3115/1073083.1073135. ROUGE: Lin 2004, aclanthology.org/W04-1013.
Neither knows what a number or a negation means ("no chest pain" against "chest pain" is .8):
read them beside `clinical`.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from noisyhealth.metrics import pairs
from noisyhealth.records import Scores

# Scripts written without spaces, each of whose signs counts as a word (as in BERT's tokenizer).
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
# A point or a comma between two digits belongs to the word: 2.5 is one word, as is 1,000.
_WORD = re.compile(rf"[{_SIGNS}]|[^ .,{_SIGNS}]+(?:(?<=\d)[.,](?=\d)[^ .,{_SIGNS}]+)*")
_KINDS = ("rouge1", "rouge2", "rougeL")


def scores(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    """Return `bleu`, `rouge1`, `rouge2` and `rougeL`, each 0 to 1.

    ROUGE is rouge-score's F measure without stemming, the mean over the examples; its words are
    those of `words`. BLEU is of the whole corpus, see `_bleu`. An empty candidate scores 0.

    Raises DataError for no examples or unequal lengths.

    >>> found = scores(["2.5 mg daily", "chest pain"], ["2.5 mg daily", "chest"])
    >>> round(found["rouge1"], 3), round(found["bleu"], 3)
    (0.833, 0.779)
    """
    each = _rouge(references, candidates)
    rouge = {kind: sum(found[kind] for found in each) / len(each) for kind in _KINDS}
    return {"bleu": _bleu(references, candidates), **rouge}


def rouge_l_each(references: Sequence[str], candidates: Sequence[str]) -> list[float]:
    """Return ROUGE-L (F measure, 0 to 1) of every example, in order.

    >>> rouge_l_each(["chest pain", "fever"], ["chest pain", ""])
    [1.0, 0.0]
    """
    return [found["rougeL"] for found in _rouge(references, candidates)]


def words(text: str) -> list[str]:
    """Return the words that ROUGE compares: letters, marks and digits of any script, case folded.

    rouge-score's own tokenizer knows a-z and 0-9 only, so that other scripts score 0 against
    themselves and 2.5 equals 5.2. For words of ASCII letters and digits the two are the same;
    decimals stay whole here. Signs of scripts without spaces (Chinese, Japanese) are words each.

    >>> words("Don't take 2.5 mg, take 5 mg/day")
    ['don', 't', 'take', '2.5', 'mg', 'take', '5', 'mg', 'day']
    >>> words("Температура 38,5")
    ['температура', '38,5']
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    kept = (sign if sign in ".," or unicodedata.category(sign)[0] in "LMN" else " " for sign in folded)
    return _WORD.findall("".join(kept))


class _Measured(Protocol):
    """rouge-score's Score, as far as we read it."""

    fmeasure: float


class _Scorer(Protocol):
    """rouge-score's RougeScorer, as far as we call it."""

    def score(self, target: str, prediction: str) -> Mapping[str, _Measured]: ...


def _rouge(references: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
    pairs.check(references, candidates)
    scorer = _scorer()
    found = (scorer.score(target, reply) for target, reply in zip(references, candidates, strict=True))
    return [{kind: float(score.fmeasure) for kind, score in each.items()} for each in found]


@cache
def _scorer() -> _Scorer:
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import Tokenizer

    class AnyScript(Tokenizer):  # type: ignore[misc]  # rouge-score has no types
        def tokenize(self, text: str) -> list[str]:
            return words(text)

    scorer: _Scorer = RougeScorer(list(_KINDS), use_stemmer=False, tokenizer=AnyScript())
    return scorer


def _bleu(references: Sequence[str], candidates: Sequence[str]) -> float:
    """Return torchmetrics' BLEU of the corpus, on words between spaces, case kept.

    Up to four words in a row, or as many as the longest reference has: without that, a corpus of
    answers of one to three words scores 0 against itself. Smoothed as Lin and Och 2004
    (aclanthology.org/C04-1072): 1 is added to the matches and the totals of two words and more.
    torchmetrics gives 0, smoothed or not, where no run of the greatest length matches anywhere.
    """
    from torchmetrics.functional.text import bleu_score

    longest = max(len(reference.split()) for reference in references)
    if longest == 0:
        return 0.0
    # torchmetrics names them preds and target; a target is a list of references.
    found = bleu_score(list(candidates), [[reference] for reference in references], n_gram=min(4, longest), smooth=True)
    return float(found)
