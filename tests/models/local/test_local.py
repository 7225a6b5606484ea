import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth.errors import ConfigError
from noisyhealth.models.local.local import Local
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Wording

WORDING = Wording(role="You read messages.", instruction="Say how the writer feels.", block="Message: {text}")
POOL = (
    Example("p1", "all clear after my scan!", "positive"),
    Example("p2", "they lost my results again", "negative"),
)
LABELS = ("positive", "negative")
CLOSED = [
    Query("a", "so tired of this cough, it never ends", "", LABELS),
    Query("b", "New inhaler and no wheeze all week, so relieved and happy :)", "", LABELS),
    Query("c", "ok", "", LABELS),
]
FREE = [Query("d", "Is a cough bad?", "", ()), Query("e", "I take ramipril 2.5 mg and aspirin.", "", ())]


@pytest.fixture(scope="module")
def model(shared_cache: Path, configured: Callable[..., DictConfig]) -> Local:
    """The configured model of the study on the embedded weights, in one number format everywhere."""
    config = configured(f"cache={shared_cache}", "model=llama", "model.dtype=float32", "prompt.shots=2")
    return fitted(instantiate(config.model, _convert_="all"))


def fitted(model: Local) -> Local:
    model.fit(WORDING, Training(POOL, (), ()))
    return model


def ask(model: Local, queries: list[Query]) -> dict[str, Reply]:
    replies = list(model.predict(queries))
    assert sorted(r.id for r in replies) == sorted(q.id for q in queries)
    return {r.id: r for r in replies}


def scores(reply: Reply) -> dict[str, float]:
    found = reply.detail["scores"]
    assert isinstance(found, dict)
    return found


def test_every_reply_is_that_of_its_own_question_in_any_order(model: Local) -> None:
    together, reverse = ask(model, CLOSED), ask(model, CLOSED[::-1])
    for query in CLOSED:
        alone = ask(model, [query])[query.id]
        for reply in (together[query.id], reverse[query.id]):
            assert reply.text == alone.text
            assert scores(reply) == pytest.approx(scores(alone), abs=1e-3)
            assert reply.prompt_tokens == alone.prompt_tokens > 20


def test_the_likeliest_label_is_the_answer(model: Local) -> None:
    for reply in ask(model, CLOSED).values():
        assert reply.finish == "choice"
        assert tuple(scores(reply)) == LABELS
        assert reply.text == max(LABELS, key=scores(reply).__getitem__)


def test_calibration_takes_from_each_label_what_it_has_without_a_text(model: Local) -> None:
    plain = fitted(replace(model, calibration="none"))
    before, after = ask(plain, CLOSED), ask(fitted(replace(model, calibration="content-free")), CLOSED)
    empty = ask(plain, [Query(text, text, "", LABELS) for text in ("N/A", "", "[MASK]")])
    for label in LABELS:
        prior = sum(scores(reply)[label] for reply in empty.values()) / 3
        for query in CLOSED:
            moved = scores(before[query.id])[label] - scores(after[query.id])[label]
            assert moved == pytest.approx(prior, abs=2e-3)


def test_a_free_answer_ends_with_its_line_or_at_the_limit(model: Local) -> None:
    short = fitted(replace(model, max_tokens=6))
    for reply in ask(short, FREE).values():
        assert "\n" not in reply.text
        assert reply.text == reply.text.strip()
        assert reply.finish in ("stop", "length")
        assert 0 < reply.reply_tokens <= 6
        assert reply.finish == "stop" or reply.reply_tokens == 6


def test_closed_and_free_questions_may_come_together(model: Local) -> None:
    replies = ask(fitted(replace(model, max_tokens=3)), [FREE[0], CLOSED[0], FREE[1], CLOSED[2]])
    assert [replies[name].finish == "choice" for name in "adce"] == [True, False, True, False]


def test_no_question_loads_no_weights_and_gives_no_reply(model: Local) -> None:
    assert list(replace(model, source=None).predict([])) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("template", ["plain", "chat"])
def test_the_prompt_ends_where_the_answer_begins(model: Local, template: str) -> None:
    asked = fitted(replace(model, template=template))
    lm = asked._lm()
    text = lm.tokenizer.decode(asked._tokens(lm, CLOSED[0]))
    assert text.endswith("Answer:")
    assert text.count(CLOSED[0].text) == 1
    assert text.index(POOL[0].text) < text.index(CLOSED[0].text)


def test_the_request_holds_shots_and_text_and_options_but_never_a_right_answer_of_its_own(model: Local) -> None:
    request = model.request(CLOSED[0])
    *shots, last = request["messages"]
    assert request["options"] == ["positive", "negative"]
    assert CLOSED[0].text in last["content"]
    assert [m["content"] for m in shots if m["role"] == "assistant"] == ["Answer: positive", "Answer: negative"] or [
        m["content"] for m in shots if m["role"] == "assistant"
    ] == ["Answer: negative", "Answer: positive"]


def test_the_times_of_all_replies_add_up_to_no_more_than_the_whole(model: Local) -> None:
    assert all(0 <= reply.seconds < 60 for reply in ask(model, CLOSED).values())


def test_a_question_before_the_shots_are_chosen_is_our_own_error(model: Local) -> None:
    with pytest.raises(RuntimeError, match="fit comes before"):
        replace(model).request(CLOSED[0])


VALIDATION = tuple(Example(f"v{n}", text, "") for n, text in enumerate(("my knee hurts", "fine", "lost my pills")))


def test_calibration_by_a_batch_takes_the_mean_share_a_label_has_over_validation_texts(model: Local) -> None:
    plain, batch = fitted(replace(model, calibration="none")), replace(model, calibration="batch")
    batch.fit(WORDING, Training(POOL, (), VALIDATION))
    before, after = ask(plain, CLOSED), ask(batch, CLOSED)
    rows = [scores(reply) for reply in ask(plain, [Query(e.id, e.text, "", LABELS) for e in VALIDATION]).values()]
    for label in LABELS:
        share = sum(math.exp(row[label]) / sum(map(math.exp, row.values())) for row in rows) / len(rows)
        for query in CLOSED:
            moved = scores(before[query.id])[label] - scores(after[query.id])[label]
            assert moved == pytest.approx(math.log(share), abs=2e-3)


def test_other_validation_texts_make_other_replies_only_where_they_calibrate(model: Local) -> None:
    signatures = []
    for calibration in ("batch", "content-free"):
        for texts in (VALIDATION, VALIDATION[:1]):
            made = replace(model, calibration=calibration)
            made.fit(WORDING, Training(POOL, (), texts))
            signatures.append(made.signature())
    assert signatures[0] != signatures[1]
    assert signatures[2] == signatures[3]


def test_calibration_that_cannot_be_is_told_before_weights_are_loaded(model: Local) -> None:
    with pytest.raises(ConfigError, match="calibration=bath: it may be none, content-free, batch"):
        replace(model, calibration="bath").check()
    with pytest.raises(ConfigError, match="needs validation texts"):
        fitted(replace(model, calibration="batch"))
