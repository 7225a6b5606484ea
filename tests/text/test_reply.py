"""Reading replies: every shape a model answers in, and no credit where there is no answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisyhealth.records import Answer, Outcome, Reply
from noisyhealth.text.reply import read_free, read_label

MOOD = ("positive", "negative")
DISEASE = ("neoplasm", "digestive", "cardiovascular")
SCORED, UNPARSED, REFUSED = Outcome.SCORED, Outcome.UNPARSED, Outcome.REFUSED
EMPTY, CUT, FAILED = Outcome.EMPTY, Outcome.CUT, Outcome.FAILED


def reply(text: str, finish: str = "stop") -> Reply:
    return Reply("1", text, finish, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # as asked
        ("Answer: positive", "positive"),
        ("Answer: negative\nJustification: She is scared.", "negative"),
        ("ANSWER: NEGATIVE", "negative"),
        ("answer:negative", "negative"),
        ("Answer : negative.", "negative"),
        ("Answer = negative", "negative"),
        ("Answer:\nnegative", "negative"),
        ("Answer:\n\n  negative", "negative"),
        ("Final answer: negative", "negative"),
        ("The answer is: negative", "negative"),
        ("Answer: The writer feels negative.", "negative"),
        ("Answer: negative, not positive", "negative"),
        ("Answer: negative Justification: nothing positive here", "negative"),
        ("Answer: negative\nReason: no positive word", "negative"),
        ("Let me think about positive and negative signs.\nAnswer: negative", "negative"),
        ("Answer: negative\nAnswer: negative", "negative"),
        # other leads
        ("Sentiment: negative", "negative"),
        ("Label: negative", "negative"),
        ("The sentiment is: negative", "negative"),
        # alone or in a sentence
        ("negative", "negative"),
        ("Negative!", "negative"),
        ("  \n negative \n", "negative"),
        ("(negative)", "negative"),
        ("'negative'", "negative"),
        ("1. negative", "negative"),
        ("- negative", "negative"),
        ("-negative", "negative"),
        ("negative - she is scared", "negative"),
        ("The writer feels negative about the wait.", "negative"),
        ("The sentiment of this message is negative.", "negative"),
        ("negative\nJustification: there is a positive word, but it is meant as irony", "negative"),
        ("Justification: the wait. So it is negative", "negative"),
        ("I'm sorry to hear that. This message is negative.", "negative"),
        # markdown
        ("**Answer:** negative", "negative"),
        ("**Answer: negative**", "negative"),
        ("**Answer**: **negative**", "negative"),
        ("__negative__", "negative"),
        ("_negative_", "negative"),
        ("*Negative*", "negative"),
        ("`negative`", "negative"),
        ("Answer: `negative`", "negative"),
        ("### Answer: negative", "negative"),
        ("> negative", "negative"),
        ("```\nnegative\n```", "negative"),
        # JSON
        ('{"answer": "negative"}', "negative"),
        ('{"Answer": "Negative", "justification": "nothing positive"}', "negative"),
        ('{"sentiment":"negative"}', "negative"),
        ('{"label": ["negative"]}', "negative"),
        ('```json\n{"answer": "negative"}\n```', "negative"),
        ('Here it is: {"answer": "negative"} I hope this is positive.', "negative"),
        ('{"answer": "negative", "justific', "negative"),  # not JSON, but read all the same
        ("{'answer': 'negative'}", "negative"),
        # negations of the other label
        ("not positive, negative", "negative"),
        ("It is not a positive but a negative message.", "negative"),
        ("This isn't positive. It is negative.", "negative"),
        ("This isn’t at all positive: negative", "negative"),
        ("negative rather than positive", "negative"),
        ("negative instead of positive", "negative"),
        ("Nothing positive here, so negative.", "negative"),
    ],
)
def test_a_reply_with_one_label_is_read_as_that_label(text: str, value: str) -> None:
    assert read_label(reply(text), MOOD) == Answer("1", text, value, SCORED)


@pytest.mark.parametrize(
    ("text", "finish", "outcome"),
    [
        # two labels, or none
        ("positive or negative", "stop", UNPARSED),
        ("Answer: positive/negative", "stop", UNPARSED),
        ("Answer: positive and negative", "stop", UNPARSED),
        ("Both positive and negative.", "stop", UNPARSED),
        ("positive\nnegative", "stop", UNPARSED),
        ("Answer: positive\nFinal answer: negative", "stop", UNPARSED),
        ("More positive than negative", "stop", UNPARSED),
        ('{"answer": "positive or negative"}', "stop", UNPARSED),
        ('{"answer": ["positive", "negative"]}', "stop", UNPARSED),
        ('{"positive": 0.2, "negative": 0.8}', "stop", UNPARSED),
        ("Answer: mixed", "stop", UNPARSED),
        ("Answer: unclear\nJustification: some of it is positive", "stop", UNPARSED),  # the answer has its place
        ('{"answer": null, "note": "positive"}', "stop", UNPARSED),
        ('{"answer": "neutral"} though positive', "stop", UNPARSED),
        ("Answer:", "stop", UNPARSED),
        ("A", "stop", UNPARSED),
        ("Yes", "stop", UNPARSED),
        ("happy", "stop", UNPARSED),
        # no word of its own
        ("positively", "stop", UNPARSED),
        ("nonnegative", "stop", UNPARSED),
        ("non-negative", "stop", UNPARSED),
        ("HIV-positive", "stop", UNPARSED),
        ("negatives", "stop", UNPARSED),
        # negated
        ("not positive", "stop", UNPARSED),
        ("Answer: not positive", "stop", UNPARSED),
        ("It isn't negative", "stop", UNPARSED),
        ("It isn’t negative", "stop", UNPARSED),
        ("It is not very positive.", "stop", UNPARSED),
        ("This is not at all positive.", "stop", UNPARSED),
        ("This doesn't sound positive", "stop", UNPARSED),
        ("never positive", "stop", UNPARSED),
        ("It cannot be positive", "stop", UNPARSED),
        ("not **positive**", "stop", UNPARSED),
        ('not "positive"', "stop", UNPARSED),
        ("Neither positive nor negative", "stop", UNPARSED),
        ("neither clearly positive nor clearly negative", "stop", UNPARSED),
        # refused
        ("I'm sorry, but I can't help with that.", "stop", REFUSED),
        ("I’m sorry, I can’t say whether this is positive.", "stop", REFUSED),
        ("I cannot determine if it is negative.", "stop", REFUSED),
        ("I am unable to call this positive", "stop", REFUSED),
        ("Unfortunately, I cannot tell if this is positive.", "stop", REFUSED),
        ("As an AI language model, I can't judge if it is negative", "stop", REFUSED),
        ("Answer: I cannot say", "stop", REFUSED),
        # cut, empty, failed
        ("The message describes a long wait at the", "length", CUT),
        ("Answer:", "length", CUT),
        ('{"answer": "posi', "length", CUT),
        ("", "stop", EMPTY),
        (" \n\t ", "stop", EMPTY),
        ("", "length", CUT),  # a limit spent before the first word: thoughts that the server hides
        ("", "error", FAILED),
        ("positive", "error", FAILED),
    ],
)
def test_a_reply_without_one_plain_label_earns_nothing(text: str, finish: str, outcome: Outcome) -> None:
    assert read_label(reply(text, finish), MOOD) == Answer("1", text, "", outcome)


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ("Answer: positive\nJustification: because the wri", "length"),
        ('{"answer": "positive", "justification": "bec', "length"),
        ("positive", "choice"),
        ("positive", "span"),
    ],
)
def test_a_label_that_was_reached_counts_however_the_reply_ended(text: str, finish: str) -> None:
    assert read_label(reply(text, finish), MOOD).outcome == SCORED


@pytest.mark.parametrize(
    ("text", "value", "outcome"),
    [
        ("Answer: neoplasm", "neoplasm", SCORED),
        ("Condition: cardiovascular disease", "cardiovascular", SCORED),
        ("Condition: The patient has a cancer.\nAnswer: neoplasm", "neoplasm", SCORED),
        ("This abstract is about a digestive condition.", "digestive", SCORED),
        ("Not a neoplasm, not cardiovascular: digestive", "digestive", SCORED),
        ("a neoplasm of the digestive tract", "", UNPARSED),
        ("Answer: digestive neoplasm", "", UNPARSED),
        ("Answer: neoplasms", "", UNPARSED),
        ("cardio-vascular", "", UNPARSED),
        ("Answer: A", "", UNPARSED),
        ("gastro-digestive", "", UNPARSED),
    ],
)
def test_three_labels_are_read_as_strictly_as_two(text: str, value: str, outcome: Outcome) -> None:
    assert read_label(reply(text), DISEASE) == Answer("1", text, value, outcome)


@pytest.mark.parametrize("label", ["A", "a+b", "type (1)", "no", "unsure?"])
def test_a_label_of_any_spelling_is_read(label: str) -> None:
    assert read_label(reply(f"Answer: {label}"), (label, "zzz")).value == label


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Answer: 2.5 mg", "2.5 mg"),
        ("answer: 2.5 mg", "2.5 mg"),
        ("The answer is: 2.5 mg", "2.5 mg"),
        ("Answer:\n2.5 mg", "2.5 mg"),
        ("Answer: 2.5 mg\nJustification: the note says so", "2.5 mg"),
        ("Answer: 2.5 mg Justification: the note says so", "2.5 mg"),
        ("Answer: 2.5 mg\n\n**Justification:** none", "2.5 mg"),
        ("2.5 mg\nJustification: none", "2.5 mg"),
        ("2.5 mg\nExplanation: dose of the second line", "2.5 mg"),
        ("2.5 mg", "2.5 mg"),
        ("  2.5 mg\n", "2.5 mg"),
        ("**Answer:** 2.5 mg", "2.5 mg"),
        ("**Answer: 2.5 mg**", "2.5 mg"),
        ("**2.5 mg**", "2.5 mg"),
        ('"2.5 mg"', "2.5 mg"),
        ("`2.5 mg`", "2.5 mg"),
        ("Answer: `2.5 mg`", "2.5 mg"),
        ('{"answer": "2.5 mg"}', "2.5 mg"),
        ('{"answer": "2.5 mg", "justification": "second line"}', "2.5 mg"),
        ('```json\n{"answer": "2.5 mg"}\n```', "2.5 mg"),
        ('{"answer": ["aspirin", "ramipril"]}', "aspirin, ramipril"),
        ('{"answer": 5}', "5"),
        ("Condition: stable", "Condition: stable"),  # a lead of closed tasks is part of a free answer
        ("His left hip replacement is only seven weeks old.", "His left hip replacement is only seven weeks old."),
        ("aspirin\nramipril", "aspirin\nramipril"),
        ("Thursday 08:50", "Thursday 08:50"),
        ("because “I got dizzy”", "because “I got dizzy”"),
        ("The note does not say.", "The note does not say."),
        ("none", "none"),
        ("頭痛", "頭痛"),
        ("Answer: a\nAnswer: b", "a"),
    ],
)
def test_a_free_answer_is_read_without_lead_frame_and_justification(text: str, value: str) -> None:
    assert read_free(reply(text)) == Answer("1", text, value, SCORED)


@pytest.mark.parametrize(
    ("text", "finish", "outcome"),
    [
        ("", "stop", EMPTY),
        (" \n ", "stop", EMPTY),
        ("Answer:", "stop", EMPTY),
        ("Answer:\nJustification: none", "stop", EMPTY),
        ("Justification: none", "stop", EMPTY),
        ('{"answer": ""}', "stop", EMPTY),
        ('{"answer": null}', "stop", EMPTY),
        ("**", "stop", EMPTY),
        ("I'm sorry, but I can't answer that.", "stop", REFUSED),
        ("I’m unable to tell from the note.", "stop", REFUSED),
        ("Answer: I cannot tell", "stop", REFUSED),
        ("As an AI, I do not read notes", "stop", REFUSED),
        ("The drug that was stopped was the", "length", CUT),
        ("Answer: the drug that was", "length", CUT),
        ("", "error", FAILED),
        ("2.5 mg", "error", FAILED),
    ],
)
def test_a_reply_without_a_free_answer_says_why(text: str, finish: str, outcome: Outcome) -> None:
    assert read_free(reply(text, finish)) == Answer("1", text, "", outcome)


@pytest.mark.parametrize(
    ("text", "finish", "value"),
    [
        ("Answer: 2.5 mg\nJustification: the note", "length", "2.5 mg"),
        ('{"answer": "2.5 mg"}', "length", "2.5 mg"),
        ("2.5 mg", "span", "2.5 mg"),
    ],
)
def test_a_free_answer_that_was_reached_counts_however_the_reply_ended(text: str, finish: str, value: str) -> None:
    assert read_free(reply(text, finish)) == Answer("1", text, value, SCORED)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(max_size=80), st.sampled_from(["stop", "length", "error", "choice"]))
def test_any_reply_is_read_to_a_value_or_a_reason_and_never_both(text: str, finish: str) -> None:
    for answer in (read_label(reply(text, finish), MOOD), read_free(reply(text, finish))):
        assert (answer.id, answer.reply) == ("1", text)
        assert (answer.value != "") == (answer.outcome == SCORED)
