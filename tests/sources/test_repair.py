"""What is mended in a text, and what is left alone."""

import pytest

from noisyhealth.errors import ConfigError
from noisyhealth.sources.repair import REPAIRS, checked, mend


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("&quot;fine&quot; &amp; well &lt;3", '"fine" & well <3'),
        ("&amp;quot;twice&amp;quot;", '"twice"'),
        ("&amp;amp;amp;", "&"),
        ("caf&eacute; &#39;s &#x2019;", "café 's \u2019"),
        ("AT&T; R&D, AT&T and Q&A", None),
        ("&copy that &quot and &lt", None),
        ("&nosuchname; &; &#; &#xZZ;", None),
        ("&#0; &#xD800; &#1114112; &#1;", None),
        ("&amp;T; stays at &T;", "&T; stays at &T;"),
    ],
)
def test_entities_are_decoded_when_they_are_whole_and_nothing_else_is(text: str, mended: str | None) -> None:
    assert mend(text, ["entities"]).text == (text if mended is None else mended)
    assert mend(text, ["entities"]).repairs == (() if mended is None else ("entities",))


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("PLAN:,  Rest.", "PLAN:\n  Rest."),
        ("PLAN: , Rest.", "PLAN: \n Rest."),
        ("PLAN:  ,Rest.,FOLLOW-UP:  Friday.", "PLAN:  \nRest.\nFOLLOW-UP:  Friday."),
        ("OBJECTIVE:,VITALS:,Pulse 60.,EYES, EARS:  Clear.", "OBJECTIVE:\nVITALS:\nPulse 60.\nEYES, EARS:  Clear."),
        ("DIAGNOSIS (ES):, Gout.,PROCEDURE #2:, None.", "DIAGNOSIS (ES):\n Gout.\nPROCEDURE #2:\n None."),
        ("Seen by A. Smith, M.D.,PHD: he rests.", None),  # no heading with a comma: not this fault
        ("Plan:, rest. The following, DRUGS: none, and A:, B:, C:", None),
        ("RESULTS: 12, 14 and 16. CONCLUSION: none, really", None),
    ],
)
def test_the_comma_of_a_lost_line_break_at_a_heading_becomes_one_again(text: str, mended: str | None) -> None:
    found = mend(text, ["headings"])
    assert found.text == (text if mended is None else mended)
    assert len(found.text) == len(text)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("a\x00b\x07\ufeffc", "abc"),
        ("one\x0btwo\x0cthree\x1ffour", "one two three four"),
        ("tab\tand\r\nlines\nstay \u200b\x85\u2028", None),
    ],
)
def test_controls_go_but_neither_line_breaks_nor_the_space_between_words(text: str, mended: str | None) -> None:
    assert mend(text, ["controls"]).text == (text if mended is None else mended)


def test_repairs_come_in_their_order_whatever_order_is_asked_for_and_only_those_asked_for() -> None:
    text = "PLAN:,\x00 &quot;rest&quot;"
    assert mend(text, ["controls", "headings", "entities"]).repairs == tuple(REPAIRS)
    assert mend(text, ["headings"]).text == "PLAN:\n\x00 &quot;rest&quot;"
    assert mend(text, []).text == text


@pytest.mark.parametrize("repairs", [["entities", "spelling"], "entities", [1]])
def test_a_repair_that_is_none_is_refused_with_those_there_are(repairs: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"data\.source\.repair has .* some of entities, headings, controls"):
        checked(repairs)


def test_a_long_text_in_capitals_is_mended_in_no_time() -> None:
    text = "NO HEADING HERE " * 50_000
    assert mend(text, tuple(REPAIRS)).text == text
