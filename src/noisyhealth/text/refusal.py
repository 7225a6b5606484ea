"""Whether a text declines to answer; sorrow, doubt and a patient's own "I can't sleep" do not."""

import re

_I_AM = r"i(?:['’]m| am) (?:\w+ )?"
_UNABLE = rf"(?:{_I_AM}(?:unable to|not able to)|i (?:\w+ )?(?:can(?:no|['’])t|can not|couldn['’]t|could not))"
_VERB = (
    r"(?:help|assist|answer|respond|reply|provide|determine|decide|tell|say|find|give|comply|fulfil+"
    r"|do (?:that|this|so)|identify|discuss|offer|share|comment|process|continue with|engage|diagnose|advise|access"
    r"|judge|call|classify|label|make (?:a|any|that|this|such)|complete|perform|analy[sz]e|assess|evaluate|infer|know"
    r"|choose|pick|support|create|generate|be of)\b"
)
_WONT = (
    r"i (?:won['’]t|will not) (?:be able|answer|help|assist|provide|engage|do)\b"
    rf"|i(?: must| have to)? (?:\w+ )?decline\b|i refuse to|i(?:['’]d| would) (?:rather|prefer) not|no comment\b"
    rf"|{_I_AM}(?:not comfortable|not qualified|not allowed|not permitted|uncomfortable)"
    r"|i (?:don['’]t|do not) (?:feel comfortable|have (?:enough|sufficient) (?:information|context))"
    r"|(?:cannot|unable to) (?:determine|answer|assist|help with|comply|classify)\b"
    r"|(?:this|your) (?:request|content|message) (?:violates|goes against)|it (?:is|would be) (?:not |in)appropriate"
    r"|lo siento|je suis désolée?|es tut mir leid|(?:很)?抱歉|对不起"
)
_AI = r"as an? (?:ai|llm|large language model|language model)\b"
_SORRY = (
    rf"(?:(?:(?:{_I_AM})?(?:\w+ )?sorry|(?:my |i )?apolog(?:ies|i[sz]e)|unfortunately|{_AI}[^,.\n]{{0,60}}"
    r"|i(?:['’]m| am) afraid)(?:[^\w\n]{1,3}|$)(?:but |however,? )?(?:that )?)"
)
_DECLINE = re.compile(
    rf"{_SORRY}{{0,3}}(?:{_UNABLE} (?:\w+ly |even )?{_VERB}|{_WONT}|{_AI})|{_SORRY}{{1,3}}\Z", re.IGNORECASE
)
_YET = re.compile(r"[^.!?\n]{0,200}?[,;–-] ?(?:but|however|yet|though)\b,? (?!i can help|please|if you)", re.IGNORECASE)
_START = re.compile(r"[.!?\n]\W*")


def declined(text: str) -> bool:
    """Say whether the text opens by declining and brings no answer all the same.

    >>> declined("I'm sorry, but I can't say."), declined("I can't say for sure, but warfarin")
    (True, False)
    """
    return opens_declining(text) and not after_decline(text)


def opens_declining(text: str) -> bool:
    """Say whether the text opens by declining, whatever follows."""
    return _DECLINE.match(text) is not None


def after_decline(text: str) -> str:
    """Return what a "but" brings after a first clause that declines; "" without one."""
    found = _DECLINE.match(text)
    yet = _YET.match(text, found.end()) if found else None
    return text[yet.end() :].strip() if yet else ""


def declines_somewhere(text: str) -> bool:
    """Say whether any sentence of the text opens by declining."""
    return any(_DECLINE.match(text, start) for start in [0, *(found.end() for found in _START.finditer(text))])
