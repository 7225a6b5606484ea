"""Replies in the shapes that GPT-4o-mini, Llama, Qwen, Gemma and SmolLM write, each read leniently and strictly.

A row: the reply, what the lenient reading makes of it, what the strict one makes of it. A word is the value of a
scored answer; an outcome stands for no credit.
"""

from pathlib import Path

import pytest
import yaml

from noisyhealth.records import Answer, Outcome, Reply
from noisyhealth.text.reply import read_free, read_label

TASKS = Path(__file__).parents[2] / "conf" / "task"
UNPARSED, REFUSED, EMPTY = Outcome.UNPARSED, Outcome.REFUSED, Outcome.EMPTY
CUT, FAILED = Outcome.CUT, Outcome.FAILED
POS, NEG = "positive", "negative"
NEO, DIG, CAR = "neoplasm", "digestive", "cardiovascular"
Row = tuple[str, str | Outcome, str | Outcome]

SENTIMENT: list[Row] = [
    # as the prompt asks
    ("Answer: negative\nJustification: The writer is in pain.", NEG, NEG),
    ("ANSWER: Negative", NEG, NEG),
    ("answer - negative", NEG, UNPARSED),
    ("Answer: negative.", NEG, NEG),
    ('Answer: "negative"', NEG, NEG),
    ("Answer:negative Justification: none", NEG, NEG),
    ("Answer: positive 😊", POS, POS),
    ("Answer: positive\n\nJustification: none\n\nLet me know if you need anything else!", POS, POS),
    ("Answer:\nnegative", NEG, UNPARSED),
    ("Final answer: positive", POS, POS),
    ("The answer is: positive.", POS, POS),
    ("My answer: positive", POS, POS),
    ("Answer = positive", POS, POS),
    ("Answer: The writer feels negative.", NEG, UNPARSED),
    ("Answer: the message is negative\nJustification: none", NEG, UNPARSED),
    ("Answer: Negative. The writer had positive test results.", NEG, UNPARSED),
    ("Answer: Negative - the positive test scared her", NEG, UNPARSED),
    ("Answer: Negative, because the positive test scared her", NEG, UNPARSED),
    ("Answer: Negative (although some positive words are used)", NEG, UNPARSED),
    ("Answer: negative (not positive)", NEG, UNPARSED),
    ("Answer: clearly negative", NEG, UNPARSED),
    # alone
    ("negative", NEG, NEG),
    ("Negative.", NEG, NEG),
    ("NEGATIVE!!", NEG, NEG),
    ("“negative”", NEG, NEG),
    ("-> negative", NEG, NEG),
    ("The sentiment is positive.", POS, UNPARSED),
    ("The sentiment of this message is positive.", POS, UNPARSED),
    ("The overall sentiment expressed by the writer is positive, as the test was negative.", POS, UNPARSED),
    ("The writer feels positive.", POS, UNPARSED),
    ("Based on the message, the writer feels negative.", NEG, UNPARSED),
    ("I would classify the sentiment of this message as negative.", NEG, UNPARSED),
    ("Sure! The writer's feeling is negative.", NEG, UNPARSED),
    ("It's positive", POS, UNPARSED),
    # Markdown, LaTeX, tags, fences
    ("**Positive**", POS, POS),
    ("*positive*", POS, POS),
    ("***Positive***", POS, POS),
    ("**Answer:** Positive", POS, POS),
    ("**Answer: Positive**\n\n**Justification:** none", POS, POS),
    ("**Answer**: *positive*", POS, POS),
    ("# Answer: positive", POS, POS),
    ("## Answer\n\npositive", POS, UNPARSED),
    ("**Final Answer**\nPositive", POS, UNPARSED),
    ("### Final Answer:\n**Positive**", POS, UNPARSED),
    ("- Answer: positive\n- Justification: not negative", POS, POS),
    ("* **Sentiment:** Positive\n* **Confidence:** High", POS, UNPARSED),
    ("> Answer: positive", POS, POS),
    ("| Answer | negative |\n| Justification | positive words are ironic |", NEG, NEG),
    ("| Answer |\n|---|\n| negative |", NEG, UNPARSED),
    ("```\nnegative\n```", NEG, NEG),
    ("```text\nAnswer: negative\n```", NEG, NEG),
    ("\\boxed{negative}", NEG, NEG),
    ("$\\boxed{\\text{Negative}}$", NEG, NEG),
    ("The final answer is: $\\boxed{negative}$", NEG, NEG),
    ("The positive words are ironic, so \\boxed{negative}.", NEG, UNPARSED),
    ("<answer>negative</answer>", NEG, NEG),
    ("<answer>\nNegative\n</answer>\n<justification>Nothing positive.</justification>", NEG, UNPARSED),
    ("<b>negative</b>", NEG, NEG),
    ("~~positive~~ negative", NEG, UNPARSED),
    ("1. negative", NEG, UNPARSED),
    # JSON, well formed or nearly
    ('{"answer": "negative", "justification": "positive words are ironic"}', NEG, NEG),
    ('{"Answer": "Negative"}', NEG, NEG),
    ('{"sentiment": "negative", "confidence": 0.93}', NEG, NEG),
    ('{"final_answer": "negative"}', NEG, NEG),
    ('{"result": {"label": "negative", "score": 0.9}}', NEG, NEG),
    ('[{"label": "negative"}]', NEG, NEG),
    ('["negative"]', NEG, NEG),
    ('{"answer": ["negative"]}', NEG, NEG),
    ('{"answer": "negative",}', NEG, NEG),
    ("{'answer': 'negative', 'justification': \"isn't positive\"}", NEG, NEG),
    ('{answer: "negative"}', NEG, NEG),
    ('```json\n{\n  "answer": "negative",\n  "positive": false\n}\n```', NEG, NEG),
    ('Here is the JSON:\n{"answer": "negative"}\nI hope this is a positive experience.', NEG, NEG),
    ('{"answer": "The writer feels negative"}', NEG, UNPARSED),
    ('{"positive": true, "negative": false}', POS, UNPARSED),
    ('{"is_positive": false}', UNPARSED, UNPARSED),
    ('{"positive": 0.2, "negative": 0.8}', UNPARSED, UNPARSED),
    ('{"answer": true}', UNPARSED, UNPARSED),
    ('{"answer": null}', UNPARSED, UNPARSED),
    ('{"answer": "positive", "answer2": "negative"}', POS, POS),
    ('{"answer": "positive/negative"}', UNPARSED, UNPARSED),
    ('{"answer": "positive"}\n{"answer": "negative"}', POS, POS),
    ('{"answer": {"text": "negative"}}', NEG, UNPARSED),
    # option letters and numbers that nobody gave
    ("ANSWER: B", UNPARSED, UNPARSED),
    ("B", UNPARSED, UNPARSED),
    ("Answer: (b)", UNPARSED, UNPARSED),
    ("2.", UNPARSED, UNPARSED),
    ("Answer: 0", UNPARSED, UNPARSED),
    ("(B) negative", NEG, UNPARSED),
    ("Answer: B) negative", NEG, UNPARSED),
    ("Option 2: negative", NEG, UNPARSED),
    ("A. positive\nB. negative", UNPARSED, UNPARSED),
    # thoughts first
    ("<think>It sounds positive at first.</think>\nAnswer: negative", NEG, NEG),
    ("<think>\n\n</think>\n\nnegative", NEG, NEG),
    ("It sounds positive.\n</think>\nnegative", NEG, NEG),
    ("<thinking>positive? no</thinking><answer>negative</answer>", NEG, NEG),
    ("<think>Answer: positive would be wrong", CUT, CUT),
    ("<think>positive</think>", EMPTY, EMPTY),
    ("<think>positive</think>\nI can't help with that.", REFUSED, REFUSED),
    # forms of a label, typos, other languages
    ("The writer feels positively about the clinic.", POS, UNPARSED),
    ("Answer: positively", POS, POS),
    ("postive", UNPARSED, UNPARSED),
    ("Answer: negitive", UNPARSED, UNPARSED),
    ("Answer: neg", UNPARSED, UNPARSED),
    ("Answer: positivity", UNPARSED, UNPARSED),
    ("Answer: happy", UNPARSED, UNPARSED),
    ("Answer: non-negative", UNPARSED, UNPARSED),
    ("positivo", UNPARSED, UNPARSED),
    ("Respuesta: negativo", UNPARSED, UNPARSED),
    ("Antwort: negativ", UNPARSED, UNPARSED),
    ("消极", UNPARSED, UNPARSED),
    ("答案：消极", UNPARSED, UNPARSED),
    ("答案：negative", NEG, UNPARSED),
    ("Answer：negative", NEG, NEG),
    ("👍", UNPARSED, UNPARSED),
    # a test's finding is no answer
    ("The writer had positive test results.", UNPARSED, UNPARSED),
    ("The writer is upset about a positive covid test.", UNPARSED, UNPARSED),
    ("Answer: the writer tested negative", UNPARSED, UNPARSED),
    ("The test came back positive, so the writer feels negative.", NEG, UNPARSED),
    ("Answer: Negative: positive results are bad", NEG, UNPARSED),
    ("It is negative rather than positive because the positive test is bad.", NEG, UNPARSED),
    ("The writer feels positive about the test results.", POS, UNPARSED),
    # no choice
    ("Answer: it is impossible to say if it is positive", UNPARSED, UNPARSED),
    ("Answer: negative-neutral", UNPARSED, UNPARSED),
    ("**Positive**\n- good nurse\n\n**Negative**\n- pain", UNPARSED, UNPARSED),
    ("Some words are negative. Overall, it is mixed.", UNPARSED, UNPARSED),
    ("The sentiment could be described as positive.", UNPARSED, UNPARSED),
    ("It is unlikely to be positive", UNPARSED, UNPARSED),
    ("I wouldn't call this message positive", UNPARSED, UNPARSED),
    ("It does not seem to be very positive.", UNPARSED, UNPARSED),
    ("It isn't positive and it is negative", NEG, UNPARSED),
    ("If I had to choose, negative.", NEG, UNPARSED),
    ("- [ ] positive\n- [x] negative", NEG, UNPARSED),
    ("Cannot determine", REFUSED, REFUSED),
    ("Answer: negative</s>", NEG, NEG),
    ("assistant\n\nAnswer: negative", NEG, NEG),
    ("Classification: Negative\nConfidence: positive 10%", NEG, UNPARSED),
    ("Positive: 10%\nNegative: 90%", UNPARSED, UNPARSED),
    ("Mixed", UNPARSED, UNPARSED),
    ("Answer: neutral", UNPARSED, UNPARSED),
    ("Answer: mixed (mostly negative)", UNPARSED, UNPARSED),
    ("Neutral. There is no negative word.", UNPARSED, UNPARSED),
    ("Answer: both", UNPARSED, UNPARSED),
    ("Both positive and negative", UNPARSED, UNPARSED),
    ("Answer: positive and negative", UNPARSED, UNPARSED),
    ("Answer: Positive. Negative.", UNPARSED, UNPARSED),
    ("Answer: positive, actually negative", UNPARSED, UNPARSED),
    ("Answer: Positive. Actually, negative.", UNPARSED, UNPARSED),
    ("It could be either positive or negative.", UNPARSED, UNPARSED),
    ("It could be negative.", UNPARSED, UNPARSED),
    ("Perhaps negative?", UNPARSED, UNPARSED),
    ("Answer: positive or", UNPARSED, UNPARSED),
    ("It depends on whether the result is positive.", UNPARSED, UNPARSED),
    ("Positive at the start, negative at the end.", UNPARSED, UNPARSED),
    ("Answer: positive\nFinal answer: negative", UNPARSED, UNPARSED),
    ("Answer: positive\n\nWait, on second thought:\n\nAnswer: negative", UNPARSED, UNPARSED),
    ("Is it positive or negative?", UNPARSED, UNPARSED),
    # two labels, one choice
    ("positive rather than negative", POS, UNPARSED),
    ("not positive but negative", NEG, UNPARSED),
    ("Answer: negative, not positive", NEG, UNPARSED),
    ("negative as opposed to positive", NEG, UNPARSED),
    ("I'd say negative, although it starts positive", NEG, UNPARSED),
    ("Although it starts positive, the message is negative.", NEG, UNPARSED),
    ("While some words are positive, the overall sentiment is negative.", NEG, UNPARSED),
    ("Despite the positive test, negative overall.", NEG, UNPARSED),
    ("It is not only negative but hopeless.", NEG, UNPARSED),
    ("Positive feelings are absent.", UNPARSED, UNPARSED),
    ("The tone is less positive than it seems.", UNPARSED, UNPARSED),
    ("It sounds more or less positive.", POS, UNPARSED),
    # negations
    ("not positive", UNPARSED, UNPARSED),
    ("Answer: isn't negative", UNPARSED, UNPARSED),
    ("far from positive", UNPARSED, UNPARSED),
    ("anything but positive", UNPARSED, UNPARSED),
    ("hardly positive", UNPARSED, UNPARSED),
    ("not positive or negative", UNPARSED, UNPARSED),
    ("It is not clearly positive or negative.", UNPARSED, UNPARSED),
    ("neither positive nor negative", UNPARSED, UNPARSED),
    ("not without positive moments", UNPARSED, UNPARSED),
    ("It isn't not positive", UNPARSED, UNPARSED),
    ("Positive: no", UNPARSED, UNPARSED),
    ("Positive is not the right word.", UNPARSED, UNPARSED),
    ("The sentiment is not positive.", UNPARSED, UNPARSED),
    # echoes: of the question before, of an invented case after
    ("How does the writer feel, positive or negative? Answer: negative", NEG, NEG),
    ("How does the writer feel, positive or negative?\nnegative", NEG, UNPARSED),
    ("Message: my knee is positive agony\nAnswer: negative", NEG, NEG),
    ("Answer: negative\nJustification: none\n\nMessage: I love my nurse\nAnswer: positive", NEG, NEG),
    ("negative\n\nMessage: I love my nurse\nAnswer: positive", NEG, NEG),
    ("Answer: negative\n\nHow does the writer feel, positive or negative?\nMessage: hi\nAnswer: positive", NEG, NEG),
    ("Answer: negative<|im_end|>\n<|im_start|>user\nMessage: so glad\nAnswer: positive", NEG, NEG),
    ("Answer: negative\n\nExample 2:\nAnswer: positive", NEG, NEG),
    ("Answer: negative\nAnswer: negative\nAnswer: negative\nAnswer: negative", NEG, NEG),
    ("Text: I am in pain\nSentiment: negative\n\nText: I am glad\nSentiment: positive", NEG, UNPARSED),
    # justification first
    ("The writer is happy with the nurse. But the pain wins.\n\nAnswer: negative", NEG, NEG),
    ("Justification: The writer mentions a positive test.\nAnswer: negative", NEG, NEG),
    ("The positive parts are few.\n\nNegative", NEG, UNPARSED),
    ("There are positive words. Therefore, the sentiment is negative.", NEG, UNPARSED),
    ("There are positive words. Overall, this reads as negative.", NEG, UNPARSED),
    ("Let's think step by step. 1) a positive test. 2) fear. So the answer is negative.", NEG, UNPARSED),
    # answer first, then the other label
    ("Negative. The writer mentions a positive test.", NEG, UNPARSED),
    ("Negative\n\nThe writer uses positive words as irony.", NEG, UNPARSED),
    ("Negative - a positive test is bad news here", NEG, UNPARSED),
    ("**Negative**\n\nExplanation: nothing positive happened", NEG, UNPARSED),
    # refusals and what only looks like one
    ("I'm sorry, but I can't assist with that.", REFUSED, REFUSED),
    ("I’m sorry, I can’t help with this request.", REFUSED, REFUSED),
    ("I cannot determine whether this is positive or negative.", REFUSED, REFUSED),
    ("Sorry, I am not able to provide that.", REFUSED, REFUSED),
    ("I apologize, but I cannot fulfill this request.", REFUSED, REFUSED),
    ("As an AI language model, I do not judge feelings as negative.", REFUSED, REFUSED),
    ("I must respectfully decline.", REFUSED, REFUSED),
    ("I won't be able to classify this.", REFUSED, REFUSED),
    ("I don't feel comfortable labelling this message.", REFUSED, REFUSED),
    ("I'm not qualified to say if this is negative.", REFUSED, REFUSED),
    ("This message mentions self-harm. I can't engage with it.", REFUSED, REFUSED),
    ("Answer: I can't say", REFUSED, REFUSED),
    ('{"answer": "I cannot determine this"}', REFUSED, REFUSED),
    ("I'm sorry.", REFUSED, REFUSED),
    ("Lo siento, no puedo ayudar con eso.", REFUSED, REFUSED),
    ("很抱歉，我无法回答。", REFUSED, REFUSED),
    ("I'm sorry you feel bad: negative", NEG, UNPARSED),
    ("I'm sorry to hear that. The sentiment is negative.", NEG, UNPARSED),
    ("I can't say for sure, but negative", NEG, UNPARSED),
    ("I can't be certain. Answer: negative", NEG, NEG),
    ("Answer: mixed\nJustification: I can't say which one wins", UNPARSED, UNPARSED),
    ("I'm so sorry to hear that. I hope you feel better soon!", UNPARSED, UNPARSED),
    # nothing there
    ("", EMPTY, EMPTY),
    (" \n\t", EMPTY, EMPTY),
    ("...", EMPTY, EMPTY),
    ("**", EMPTY, EMPTY),
    ("```\n```", EMPTY, EMPTY),
    ("Answer:", UNPARSED, UNPARSED),
    ("Answer: [positive/negative]", UNPARSED, UNPARSED),
    ("Answer: none", UNPARSED, UNPARSED),
    ("Justification: none", UNPARSED, UNPARSED),
    ("Yes", UNPARSED, UNPARSED),
]

CONDITION: list[Row] = [
    ("Answer: neoplasm", NEO, NEO),
    ("Answer: Neoplasms", NEO, NEO),
    ("**Neoplastic**", NEO, NEO),
    ("Answer: neoplastic disease", NEO, NEO),
    ("Answer: digestive system diseases", DIG, DIG),
    ("Answer: Digestive", DIG, DIG),
    ("Answer: digestive disorder", DIG, UNPARSED),
    ("Answer: cardiovascular disease", CAR, CAR),
    ("Condition: cardiovascular", CAR, UNPARSED),
    ("Condition: a tumour of the digestive tract\nAnswer: neoplasm", NEO, NEO),
    ("The abstract is about a cardiovascular condition.", CAR, UNPARSED),
    ("Answer: Cardiovascular. The digestive symptoms are secondary.", CAR, UNPARSED),
    ("Answer: neoplasm of the digestive system", UNPARSED, UNPARSED),
    ("Answer: digestive neoplasm", UNPARSED, UNPARSED),
    ("Answer: neoplasm/digestive", UNPARSED, UNPARSED),
    ("Answer: cancer", UNPARSED, UNPARSED),
    ("Answer: gastrointestinal", UNPARSED, UNPARSED),
    ("Answer: neoplasm, digestive or cardiovascular", UNPARSED, UNPARSED),
    ("neoplasm: no\ndigestive: no\ncardiovascular: yes", CAR, UNPARSED),
    ("Neither digestive nor cardiovascular: neoplasm", NEO, UNPARSED),
    ("Not a neoplasm and not digestive, so cardiovascular.", CAR, UNPARSED),
    ('{"condition": "Cardiovascular diseases"}', CAR, CAR),
    ('{"neoplasm": false, "digestive": true, "cardiovascular": false}', DIG, UNPARSED),
    ("The condition of the patient is stable. The abstract is about digestive disease.", DIG, UNPARSED),
    ("Answer: neoplasm\n\nAbstract: Angina in men.\nAnswer: cardiovascular", NEO, NEO),
    ("Answer: C", UNPARSED, UNPARSED),
    ("cardiovasular", UNPARSED, UNPARSED),
]

NO_SAY = "The note does not say."
FREE: list[Row] = [
    ("Answer: gliclazide", "gliclazide", "gliclazide"),
    ("Answer: gliclazide\nJustification: stopped today", "gliclazide", "gliclazide"),
    ("**Answer:** 2.5 mg", "2.5 mg", "2.5 mg"),
    ("Final answer: 2.5 mg.", "2.5 mg.", "2.5 mg."),
    ("Answer: -2.5 D", "-2.5 D", "-2.5 D"),
    ("Answer: `warfarin`", "warfarin", "warfarin"),
    ("## Answer\n\nwarfarin", "warfarin", "warfarin"),
    ("Answer: The answer is: 5 mg", "5 mg", "5 mg"),
    ("Answer: 5 mg</s>", "5 mg", "5 mg"),
    ("Answer:\n- aspirin\n- ramipril\n\n**Justification:** none", *["- aspirin\n- ramipril"] * 2),
    ("Based on the note, the answer is:\n\n5 mg", "5 mg", "5 mg"),
    ("Dose: 5 mg", "Dose: 5 mg", UNPARSED),
    ("warfarin", "warfarin", UNPARSED),
    ("The drug that was stopped is warfarin.", "The drug that was stopped is warfarin.", UNPARSED),
    ("warfarin\nJustification: the INR", "warfarin", UNPARSED),
    ("```\nwarfarin\n```", "warfarin", UNPARSED),
    ("<answer>warfarin</answer>", "warfarin", UNPARSED),
    ("So \\boxed{2.5 mg} it is.", "2.5 mg", UNPARSED),
    ('{"answer": "warfarin", "justification": "INR"}', "warfarin", UNPARSED),
    ("{'answer': 'the patient's warfarin', 'justification': 'INR'}", "the patient's warfarin", UNPARSED),
    ('{"answer": "warfarin",}', "warfarin", UNPARSED),
    ('["aspirin", "ramipril"]', "aspirin, ramipril", UNPARSED),
    ('{"answer": true}', "True", UNPARSED),
    ("<think>Is it aspirin?</think>Answer: warfarin", "warfarin", "warfarin"),
    ("<think>Answer: aspirin", CUT, CUT),
    ("Answer: warfarin\n\nNote: Seen today.\nQuestion: Why?\nAnswer: a fall", "warfarin", "warfarin"),
    ("warfarin\n\nQuestion: Why?\nAnswer: a fall", "warfarin", UNPARSED),
    ("Question: Which drug was stopped?\nAnswer: warfarin", "warfarin", "warfarin"),
    ("Note: INR 6.\nQuestion: Which drug was stopped?\nAnswer: warfarin", "warfarin", "warfarin"),
    (NO_SAY, NO_SAY, UNPARSED),
    (f"Answer: {NO_SAY}", NO_SAY, NO_SAY),
    ("Answer: not stated", "not stated", "not stated"),
    ("Answer: none", "none", "none"),
    ("Answer: No", "No", "No"),
    ("I cannot be sure, but warfarin", "I cannot be sure, but warfarin", UNPARSED),
    ("Answer: I can't say for sure, but warfarin", *["I can't say for sure, but warfarin"] * 2),
    ("Answer: I can't sleep at night", *["I can't sleep at night"] * 2),
    ("I'm sorry to hear that. It is warfarin.", "I'm sorry to hear that. It is warfarin.", UNPARSED),
    ("Answer: I'm sorry, but the note does not say.", *["I'm sorry, but the note does not say."] * 2),
    ("Respuesta: warfarina", "Respuesta: warfarina", UNPARSED),
    ("华法林", "华法林", UNPARSED),
    ("I'm sorry, but I can't help with that.", REFUSED, REFUSED),
    ("Answer: I cannot provide medical advice.", REFUSED, REFUSED),
    ("I am unable to determine this from the note.", REFUSED, REFUSED),
    ("Unfortunately, I cannot give that information.", REFUSED, REFUSED),
    ("I'm not comfortable answering.", REFUSED, REFUSED),
    ("As an AI, I do not read notes.", REFUSED, REFUSED),
    ('{"answer": "I cannot answer"}', REFUSED, REFUSED),
    ("", EMPTY, EMPTY),
    ("Answer:", EMPTY, EMPTY),
    ("Answer: -", EMPTY, EMPTY),
    ("Answer: **", EMPTY, EMPTY),
    ("Answer:\nJustification: none", EMPTY, EMPTY),
    ('{"answer": ""}', EMPTY, EMPTY),
    ("...", EMPTY, EMPTY),
]

ENDED: list[tuple[str, str | None, str | Outcome, str | Outcome]] = [
    # reply, how it ended, as a sentiment (strict reads alike), as a free answer (lenient)
    ("", "length", CUT, CUT),
    ("Ans", "length", CUT, CUT),
    ("Answer:", "length", CUT, CUT),
    ("Answer: nega", "length", CUT, CUT),
    ("Answer: positive or", "length", CUT, CUT),
    ("Answer: not", "length", CUT, CUT),
    ("Answer: negative", "length", NEG, CUT),
    ("Answer: negative\nJust", "length", NEG, CUT),
    ("Answer: negative\nJustification: the wri", "length", NEG, NEG),
    ('{"answer": "neg', "length", CUT, CUT),
    ('{"answer": "negative", "justif', "length", NEG, NEG),
    ("The message mentions positive results but the", "length", CUT, CUT),
    ("The message mentions positive results. But the", "length", CUT, CUT),
    ("Answer: The writer mentions positive results but the", "length", CUT, CUT),
    ("The message mentions positive results. But the", "content_filter", REFUSED, REFUSED),
    ("The message mentions positive results. <think>But", "stop", CUT, CUT),
    ("<think>It is positive", "length", CUT, CUT),
    ("<think>It is positive</think>", "length", CUT, CUT),
    ("I'm sorry, but I can't", "length", CUT, CUT),
    ("", "content_filter", REFUSED, REFUSED),
    ("The message", "content_filter", REFUSED, REFUSED),
    ("Answer: negative\nJustification: she wants to", "content_filter", NEG, NEG),
    ("I cannot", "refusal", REFUSED, REFUSED),
    ("", "refusal", REFUSED, REFUSED),
    ("Answer: negative", "", NEG, NEG),
    ("Answer: negative", None, NEG, NEG),
    ("", None, EMPTY, EMPTY),
    ("", "tool_calls", EMPTY, EMPTY),
    ("negative", "choice", NEG, NEG),
    ("negative", "span", NEG, NEG),
    ("", "span", EMPTY, EMPTY),
    ("", "error", FAILED, FAILED),
    ("Answer: negative", "error", FAILED, FAILED),
]

ANYWHERE = ("lenient", "strict")  # the readings of replies that need not reason first


def aliases(task: str) -> dict[str, list[str]]:
    found = yaml.safe_load((TASKS / f"{task}.yaml").read_text())["aliases"]
    assert isinstance(found, dict)
    return found


def ended(text: str, finish: str | None = "stop") -> Reply:
    return Reply("1", text, finish, 0, 0, 0.0)  # type: ignore[arg-type]  # a server may send null


def told(text: str, expected: str | Outcome) -> Answer:
    scored = not isinstance(expected, Outcome)
    return Answer("1", text, expected if scored else "", Outcome.SCORED if scored else Outcome(expected))


@pytest.mark.parametrize("reading", ANYWHERE)
@pytest.mark.parametrize("row", SENTIMENT, ids=lambda row: row[0][:60])
def test_a_sentiment_is_read_by_the_rules(row: Row, reading: str) -> None:
    expected = told(row[0], row[1 + ANYWHERE.index(reading)])
    assert read_label(ended(row[0]), (POS, NEG), aliases("sentiment"), reading) == expected


@pytest.mark.parametrize("reading", ANYWHERE)
@pytest.mark.parametrize("row", CONDITION, ids=lambda row: row[0][:60])
def test_a_condition_is_read_by_the_rules(row: Row, reading: str) -> None:
    expected = told(row[0], row[1 + ANYWHERE.index(reading)])
    assert read_label(ended(row[0]), (NEO, DIG, CAR), aliases("condition"), reading) == expected


@pytest.mark.parametrize("reading", ANYWHERE)
@pytest.mark.parametrize("row", FREE, ids=lambda row: row[0][:60])
def test_a_free_answer_is_read_by_the_rules(row: Row, reading: str) -> None:
    assert read_free(ended(row[0]), reading) == told(row[0], row[1 + ANYWHERE.index(reading)])


@pytest.mark.parametrize(("text", "finish", "label", "free"), ENDED)
def test_how_a_reply_ended_says_why_there_is_no_answer(
    text: str, finish: str | None, label: str | Outcome, free: str | Outcome
) -> None:
    for reading in ANYWHERE:
        assert read_label(ended(text, finish), (POS, NEG), aliases("sentiment"), reading) == told(text, label)
    assert read_free(ended(text, finish)) == told(text, free)


@pytest.mark.parametrize("text", ["Answer: neutral", "neutral", "The sentiment is neutral.", "It reads as neutral."])
def test_a_label_may_be_a_word_that_elsewhere_leaves_the_choice_open(text: str) -> None:
    assert read_label(ended(text), (POS, "neutral", NEG)) == told(text, "neutral")


def test_a_complete_verdict_before_the_cut_counts() -> None:
    assert read_label(ended("The sentiment is negative. The wri", "length"), (POS, NEG)).value == NEG


def test_a_chosen_span_is_the_answer_in_both_readings() -> None:
    assert {read_free(ended("2.5 mg", "span"), reading).value for reading in ANYWHERE} == {"2.5 mg"}


REASONED: list[tuple[str, str | Outcome]] = [
    ("She sleeps again and laughs. That is positive.\nAnswer: positive", POS),
    ("The message sounds positive at first, but she is in pain.\n\nAnswer: negative", NEG),
    ("First answer: positive. No, she is in pain.\n**Answer:** negative", NEG),
    ("Positive: she smiles. Negative: she is in pain, which weighs more.\nFinal answer: negative.", NEG),
    ("Reasoning: pain, and no sleep.\nAnswer: negative\n\nMessage: All well.\nAnswer: positive", NEG),
    ("<think>Answer: positive</think>\nAnswer: negative", NEG),
    ("The sentiment is positive.", Outcome.UNPARSED),
    ("positive", Outcome.UNPARSED),
    ("Answer: positive\nAnswer: it could be either", Outcome.UNPARSED),
    ("I cannot help with that.", REFUSED),
    ("", EMPTY),
]


@pytest.mark.parametrize(("text", "expected"), REASONED)
def test_last_reads_the_answer_after_the_reasoning_and_nothing_before_it(text: str, expected: str | Outcome) -> None:
    assert read_label(ended(text), (POS, NEG), aliases("sentiment"), "last") == told(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Note: metformin went up, gliclazide was stopped.\nAnswer: gliclazide", "gliclazide"),
        ("Let me see.\nNote: metformin went up.\nAnswer: metformin? No.\nAnswer: gliclazide", "gliclazide"),
        ("Gliclazide was stopped.", Outcome.UNPARSED),
        ("It is not said why.\nAnswer: I can't determine it.", REFUSED),
    ],
)
def test_last_reads_a_free_answer_after_the_reasoning(text: str, expected: str | Outcome) -> None:
    assert read_free(ended(text), "last") == told(text, expected)


@pytest.mark.parametrize("text", ["The sentiment is positive, since she", "Answer: positive? Rather not, as Answer:"])
def test_last_reads_nothing_where_the_reasoning_was_cut(text: str) -> None:
    assert read_label(ended(text, "length"), (POS, NEG), {}, "last") == told(text, Outcome.CUT)
    assert read_free(ended(text, "length"), "last") == told(text, Outcome.CUT)


def test_last_takes_a_label_or_a_span_that_was_chosen() -> None:
    assert read_label(ended(POS, "choice"), (POS, NEG), {}, "last").value == POS
    assert read_free(ended("2.5 mg", "span"), "last").value == "2.5 mg"


def test_the_shapes_are_many_and_distinct() -> None:
    shapes = [row[0] for row in [*SENTIMENT, *CONDITION, *FREE]] + [f"{row[0]}\0{row[1]}" for row in ENDED]
    assert len(shapes) == len(SENTIMENT) + len(CONDITION) + len(FREE) + len(ENDED) >= 160
    for table in (SENTIMENT, CONDITION, FREE):
        assert len({row[0] for row in table}) == len(table)
