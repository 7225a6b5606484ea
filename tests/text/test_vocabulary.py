import pytest

from noisyhealth.text.medical import MedicalTerms
from noisyhealth.text.vocabulary import Vocabulary, judged

WORDS = Vocabulary()


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("teh", "the"),
        ("hospitl", "hospital"),
        ("pateint", "patient"),
        ("hepatomegly", "hepatomegaly"),
        ("mteformin", "metformin"),
        ("zzzzzz", ""),
        ("stommal", ""),  # "stomal" is no common word
    ],
)
def test_the_nearest_word_has_the_fewest_errors_and_of_several_is_the_commonest(word: str, nearest: str) -> None:
    assert WORDS.nearest(word, [50]) == nearest


def test_a_word_built_from_medical_parts_is_never_taken_for_one_of_daily_life() -> None:
    medical = {term for term in MedicalTerms.load().terms if term.isalpha()} | MedicalTerms.load().drugs
    for word in ("angiodysplasias", "cholecystectomies", "neuropathics", "pancreaticoduodenectomy"):
        nearest = WORDS.nearest(word, [50, 50, 50])
        assert nearest in ("", *medical), (word, nearest)


def test_every_medical_term_and_drug_of_letters_is_known_so_that_none_is_repaired() -> None:
    terms = MedicalTerms.load()
    words = {word for term in terms.terms for word in term.split(" ")} | terms.drugs
    assert [word for word in words if word.isascii() and word.isalpha() and word not in WORDS] == []


def test_the_start_of_a_piece_is_where_it_stands_in_the_text() -> None:
    text = "Back-pian (sevree), 2.5 mg\nof Aspirin.  Then hmoe"
    for piece in judged(text):
        assert text[piece.start :].startswith(piece.text)
    assert [piece.text for piece in judged(text)] == ["Back", "pian", "sevree", "of", "Then", "hmoe"]
