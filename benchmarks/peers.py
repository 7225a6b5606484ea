"""Typo-making by nlpaug and by TextAttack, each as a function of a text, for `benchmarks/perturb.py` to time.

Each is set up as its documentation allows, in the fastest way that really changes the asked share of words, so that
a comparison errs in its favour. Both draw from the process's generators: seed `random` and `numpy.random` for a run
that repeats.

Needs `pip install -c constraints.txt -e '.[bench]'` and
`pip install --no-deps --require-hashes -r benchmarks/requirements-textattack.txt`. No network and none of nltk's data.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

# What TextAttack 0.3.11 imports for its other parts, and for which. A swap of characters calls none, except jieba
# where a text holds a Chinese character; TextAttack then splits at white space, as it does when jieba fails.
_OTHER_PARTS = {
    "flair": "tags of parts of speech and entities",
    "flair.data": "the same",
    "flair.models": "the same",
    "jieba": "words of Chinese texts",
    "pinyin": "swaps of Chinese homophones",
    "OpenHowNet": "Chinese synonyms",
    "langdetect": "reports of attacks",
    "terminaltables": "reports of attacks",
    "lru": "caches of attacks' queries",
    "Levenshtein": "an attack's goal",
    "editdistance": "a limit on attacks",
    "language_tool_python": "a limit on attacks: grammar",
    "lemminflect": "swaps of inflections",
    "more_itertools": "swaps of numbers and places",
    "num2words": "swaps of numbers",
    "word2number": "swaps of numbers",
    "datasets": "data sets of the hub",
}


def nlpaug_typos(augmenter: str, rate: float, **options: Any) -> Callable[[str], str]:
    """Return one of nlpaug's typo-makers, which changes 30 % of the characters of `rate` of a text's words.

    `augmenter`: the class, or the action of RandomCharAug. `rate`: fraction of the words of a text, 0 to 1; nlpaug
    rounds their number up. Not kept are the defaults of `aug_word_max` and `aug_char_max`, 10 each, which make every
    rate above 5 % of a usual abstract the same ten words; all else is as a user gets it.

    nlpaug's own tokenizer parts "follow-up" in three, so that 15.6, 38.9 and 63.9 % of the words between white space
    changed at .1, .3 and .5 (15 abstracts), and spaces come between the parts. With `tokenizer=str.split` 10.3, 30.3
    and 50.1 % changed, and all white space becomes single spaces. `min_char` is 2 there, the least with which a
    deletion cannot empty a word.
    """
    module = import_module("nlpaug.augmenter.char")
    made = getattr(module, augmenter) if hasattr(module, augmenter) else partial(module.RandomCharAug, action=augmenter)
    caps: dict[str, Any] = {"aug_word_p": rate, "aug_word_max": None, "aug_char_p": 0.3, "aug_char_max": None}
    augment = made(**caps, **options).augment

    def typos(text: str) -> str:
        return str(augment(text)[0]) if text.strip() else text

    return typos


_SPLIT: dict[str, Any] = {"min_char": 2, "tokenizer": str.split, "reverse_tokenizer": " ".join}
NLPAUG: Mapping[str, Callable[[float], Callable[[str], str]]] = {
    f"nlpaug {name}": partial(nlpaug_typos, name) for name in ("insert", "delete", "substitute", "swap", "KeyboardAug")
}
NLPAUG_SPLIT = {"nlpaug delete, tokenizer=str.split": partial(nlpaug_typos, "delete", **_SPLIT)}


def textattack_typos(rate: float) -> Callable[[str], str]:
    """Return TextAttack's typo-maker: one character inserted, deleted, substituted or swapped in `rate` of the words.

    `rate`: fraction of the words of a text, 0 to 1, rounded down, at least one word, as TextAttack counts them.

    For each word it changes, TextAttack builds every text that is one typo away and keeps one, so that its time at a
    given rate grows with about the cube of a text's length. Its default constraints are also the fastest: on an
    abstract of 141 words at rate .1, 54.6 words/s with both (no word twice, no stop words), 48.4 with `fast_augment`
    besides, 35.6 when stop words may change, 33.7 without constraints, when a word may also be drawn twice.

    Measured with TextAttack 0.3.11 on 3 medical abstracts (568 words), one core, words/s at rates .1, .3 and .5:
    23.2, 9.3, 6.2; 10.0, 30.1 and 50.0 % of the words, split at white space, really changed.
    """
    textattack = _textattack()
    swaps = textattack.transformations
    augmenter = textattack.augmentation.Augmenter(
        transformation=swaps.CompositeTransformation(
            [
                swaps.WordSwapRandomCharacterInsertion(),
                swaps.WordSwapRandomCharacterDeletion(),
                swaps.WordSwapRandomCharacterSubstitution(),
                swaps.WordSwapNeighboringCharacterSwap(),
            ]
        ),
        constraints=textattack.augmentation.recipes.DEFAULT_CONSTRAINTS,
        pct_words_to_swap=rate,
        transformations_per_example=1,
    )

    def typos(text: str) -> str:
        return str(augmenter.augment(text)[0])

    return typos


class _Absent(ModuleType):
    """A module that is not installed: each of its names is a class that cannot be made."""

    def __getattr__(self, name: str) -> type:
        """Return a class: TextAttack derives one from `flair.data.Tokenizer`. AttributeError for a `__x__`."""
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_: Any, **__: Any) -> None:
            raise ModuleNotFoundError(
                f"TextAttack called {self.__name__}.{name}, which benchmarks/peers.py replaces; pip install it"
            )

        return type(name, (), {"__init__": refuse})


def _textattack() -> Any:
    """Return the module textattack, imported without what its import does to the process and to the user's files.

    That import downloads six of nltk's corpora once, notes in the user's cache that it has, reads nltk's stop words
    and silences every logger that exists. The stop words are scikit-learn's instead, here as anywhere.
    """
    if "textattack" not in sys.modules:
        with (
            patch("nltk.download"),
            patch("nltk.corpus.stopwords", SimpleNamespace(words=lambda _: ENGLISH_STOP_WORDS)),
            patch("logging.config.dictConfig"),
            patch.dict("os.environ"),
            _note_of_downloads_kept(),
            _absent_modules_replaced(),
        ):
            import_module("textattack")
    return sys.modules["textattack"]


@contextmanager
def _absent_modules_replaced() -> Iterator[None]:
    """Let `_OTHER_PARTS` be imported meanwhile where they are not installed; one that is called raises.

    They are gone afterwards, so that nobody else takes them for the real ones.
    """
    absent = {name: _Absent(name) for name in _OTHER_PARTS if find_spec(name.partition(".")[0]) is None}
    for name, module in absent.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(absent[parent], child, module)
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


@contextmanager
def _note_of_downloads_kept() -> Iterator[None]:
    """Leave TextAttack's note that it downloaded its data as it was: meanwhile nothing is downloaded."""
    note = Path("~/.cache/textattack/post_install_check_3").expanduser()
    was_there = note.exists()
    try:
        yield
    finally:
        if not was_there:
            note.unlink(missing_ok=True)
