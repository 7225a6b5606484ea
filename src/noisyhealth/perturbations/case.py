"""The case of a word that another takes the place of."""


def in_case_of(model: str, word: str) -> str:
    """Return the word in the case of the one it replaces.

    >>> in_case_of("Heel", "heal"), in_case_of("HEEL", "heal"), in_case_of("I", "eye")
    ('Heal', 'HEAL', 'Eye')
    """
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
