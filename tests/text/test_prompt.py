"""How a question is put."""

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest

from noisyhealth.errors import ConfigError
from noisyhealth.records import Example, Query
from noisyhealth.text.prompt import Prompt, Wording

WORDING = Wording(
    role="ROLE",
    instruction="INSTRUCTION",
    block="Note: {text}\nQuestion: {question}",
    limits="Answer from the note alone.",
)


def prompt(shots: int = 5, *, shot_seed: int = 0, user: str = "{instruction}\n{block}") -> Prompt:
    return Prompt("study", shots, shot_seed, "{role}", user, "Answer: {answer}")


def pool(*targets: str) -> list[Example]:
    return [Example(f"{i:03}", f"text {i}", target, f"question {i}?") for i, target in enumerate(targets)]


QUERY = Query("asked", "the text asked about", "the question asked?", ())
SHOTS = (Example("1", "first text", "first answer", "first question?"), Example("2", "second text", "second answer"))


def test_the_order_is_role_examples_instruction_input_other_instructions() -> None:
    assert prompt().messages(WORDING, SHOTS, QUERY) == [
        {"role": "system", "content": "ROLE"},
        {"role": "user", "content": "INSTRUCTION\nNote: first text\nQuestion: first question?"},
        {"role": "assistant", "content": "Answer: first answer"},
        {"role": "user", "content": "INSTRUCTION\nNote: second text\nQuestion: "},
        {"role": "assistant", "content": "Answer: second answer"},
        {
            "role": "user",
            "content": "INSTRUCTION\nNote: the text asked about\nQuestion: the question asked?\n"
            "Answer from the note alone.",
        },
    ]


def test_without_shots_only_the_case_itself_is_put() -> None:
    assert [m["role"] for m in prompt(0).messages(WORDING, (), QUERY)] == ["system", "user"]


def test_limits_that_are_not_set_leave_no_white_space_behind() -> None:
    assert prompt().messages(Wording("r", "i", "{text}"), (), QUERY)[-1]["content"] == "i\nthe text asked about"


@pytest.mark.parametrize(
    "text", ["{role}", "{", "}", "{0}", "a {answer} b", "%s", "{{x}}", " \n\tx\u2028y \n", "頭痛 😩"]
)
def test_a_text_is_put_byte_for_byte_whatever_it_holds(text: str) -> None:
    shot = Example("1", text, text, text)
    messages = prompt().messages(Wording("r", "i", "{question}|{text}"), [shot], Query("q", text, text, ()))
    assert [m["content"] for m in messages] == ["r", f"i\n{text}|{text}", f"Answer: {text}", f"i\n{text}|{text}"]


def test_the_answer_of_the_case_asked_about_is_never_in_the_prompt() -> None:
    assert "target" not in {f.name for f in fields(Query)}
    examples = pool(*(f"secret-{i}" for i in range(30)))
    for asked in examples[10:]:
        shots = prompt().choose(examples[:10])
        query = Query(asked.id, asked.text, asked.question, ())
        whole = "\n".join(m["content"] for m in prompt().messages(WORDING, shots, query))
        assert asked.text in whole
        assert asked.target not in whole


@pytest.mark.parametrize(
    ("targets", "shots", "expected"),
    [
        ("ab" * 20, 5, [2, 3]),
        ("ab" * 20, 4, [2, 2]),
        ("abc" * 20, 5, [1, 2, 2]),
        ("abc" * 20, 6, [2, 2, 2]),
        ("abc" * 20, 2, [1, 1]),
        ("a" * 30 + "b" * 3, 5, [2, 3]),  # rare answers are not left out
        ("a" * 30 + "b", 5, [1, 4]),  # as even as the pool allows
        ("a" * 9, 5, [5]),
        ("ab" * 3, 6, [3, 3]),
    ],
)
@pytest.mark.parametrize("shot_seed", [0, 1, 2])
def test_shots_are_even_over_the_answers(targets: str, shots: int, expected: list[int], shot_seed: int) -> None:
    chosen = prompt(shots, shot_seed=shot_seed).choose(pool(*targets))
    assert len({e.id for e in chosen}) == shots
    assert sorted(Counter(e.target for e in chosen).values()) == expected


def test_free_answers_are_drawn_from_the_whole_pool() -> None:
    examples = pool(*(f"answer {i}" for i in range(40)))
    drawn = {e.id for seed in range(60) for e in prompt(5, shot_seed=seed).choose(examples)}
    assert len(drawn) == 40


def test_the_shots_depend_on_the_seed_and_not_on_the_order_of_the_pool() -> None:
    examples = pool(*("ab" * 30))
    assert prompt().choose(examples) == prompt().choose(examples[::-1])
    assert len({prompt(5, shot_seed=seed).choose(examples) for seed in range(5)}) == 5


@pytest.mark.parametrize("shots", [0, 1, 3])
def test_every_number_of_shots_up_to_the_pool_can_be_had(shots: int) -> None:
    assert len(prompt(shots).choose(pool("a", "b", "a"))) == shots


def test_more_shots_than_the_pool_holds_is_an_error_that_names_both() -> None:
    with pytest.raises(ConfigError, match=r"prompt.shots=4, but the pool for prompts holds 3 examples: lower"):
        prompt(4).choose(pool("a", "b", "a"))


def test_less_than_no_shots_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"prompt.shots=-1: give a number of examples, 0 or more"):
        prompt(-1)


@pytest.mark.parametrize(
    ("system", "user", "answer", "told"),
    [
        ("{rol}", "{block}", "{answer}", r"prompt.system of prompt p has \{rol\}, which nothing fills"),
        ("", "no text", "{answer}", r"prompt.user of prompt p lacks \{block\}"),
        ("", "{block", "{answer}", r"prompt.user of prompt p: .*; a brace itself is written twice"),
        ("", "{block}", "Answer:", r"prompt.answer of prompt p lacks \{answer\}"),
    ],
)
def test_a_template_has_the_fields_that_are_filled_and_no_others(
    system: str, user: str, answer: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        Prompt("p", 0, 0, system, user, answer)


@pytest.mark.parametrize(
    ("answer", "lead"),
    [("Answer: {answer}", "Answer:"), ("{answer}", ""), ("So:\n{answer}\nJustification: none", "So:")],
)
def test_the_lead_is_what_stands_before_the_answer(answer: str, lead: str) -> None:
    assert Prompt("p", 0, 0, "", "{block}", answer).lead == lead


JSON = Prompt("json", 2, 0, "{role}", "{block}", "{answer}", format="json_schema")


def test_worked_examples_of_a_schema_are_the_objects_it_asks_for() -> None:
    shots = [Example("1", "text", 'an "old" cough, 39 °C')]
    said = JSON.messages(WORDING, shots, QUERY)[2]["content"]
    assert said == '{"answer": "an \\"old\\" cough, 39 °C", "justification": "none"}'


def test_the_answer_of_a_schema_is_one_of_the_options_where_there_are_any() -> None:
    def answer(*options: str) -> object:
        form: dict[str, Any] = JSON.form(Query("q", "t", "", options))
        return form["response_format"]["json_schema"]["schema"]["properties"]["answer"]

    assert answer("b", "a") == {"type": "string", "enum": ["b", "a"]}
    assert answer() == {"type": "string"}
    assert prompt().form(QUERY) == {}


def test_a_format_there_is_not_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"prompt.format='xml' of prompt p: give text or json or json_schema"):
        Prompt("p", 0, 0, "", "", "", format="xml")


def test_json_that_is_asked_for_in_words_has_objects_as_examples_and_no_schema() -> None:
    asked = replace(JSON, format="json")
    assert asked.messages(WORDING, SHOTS, QUERY)[2]["content"] == '{"answer": "first answer", "justification": "none"}'
    assert asked.form(QUERY) == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"format": "json"}, "prompt.format=json asks for an object"),
        ({"reasons": True}, "prompt=study has the model reason before it answers"),
    ],
)
def test_a_prompt_says_why_its_reply_has_to_be_written(changes: dict[str, Any], reason: str) -> None:
    assert replace(prompt(), **changes).written == reason
