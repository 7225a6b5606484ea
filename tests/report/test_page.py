"""The page in a real browser: Chromium without a network."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import page_given as given
import pandas as pd
import pytest
from conftest import chromium
from matplotlib.figure import Figure as Drawing

from noisyhealth.errors import DataError
from noisyhealth.report import page as written
from noisyhealth.report.items import Items, as_script
from noisyhealth.report.outline import Figure, Report, Section, Table
from noisyhealth.report.page import joined, render, write

BIG = 380  # notes of 3,200 characters: nearly 15 MB
FILTERS = ("task", "model", "perturb", "level", "flip")
HOSTILE = (
    "</script><script>window.caught=1</script>",
    "<img src=x onerror=window.caught=1>",
    "&lt;b&gt; & <b>bold</b>",
    "<!-- <script>",
    "שלום עולם, كيف الحال",
    "two\nlines \u2028 and \u2029 more",
    "pill 💊 and 👩🏽‍⚕️",
    "'\"` ${1} {{ 7*7 }} {% raw %}",
    "javascript:alert(1)",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write a page and open it; afterwards nothing may have been complained of or asked from a network."""
    contexts, wrong = [], []

    def open_(report: Report, items: Items, *, width: int = 1280, at: str = "", **settings: Any) -> Any:
        path = tmp_path / "page.html"
        write(path, report, items)
        context = browser.new_context(viewport={"width": width, "height": 844}, offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on(
            "request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None
        )
        page.goto(path.as_uri() + at)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []


def answers(items: Items) -> list[dict[str, Any]]:
    """Every answer on a disturbed text, counted here anew."""
    return [
        {"id": example["id"], "task": example["task"], "model": reply["model"], **cell, "example": example, "of": reply}
        for example in items.examples
        for reply in example["replies"]
        for cell in reply["cells"]
    ]


def expected(items: Items, **chosen: str) -> str:
    """What the page must say of filters."""
    every = answers(items)
    fit = [one for one in every if all(one[name] == value for name, value in chosen.items())]
    texts = len({one["id"] for one in fit})
    return f"{len(fit):,} of {len(every):,} answers, on {texts} of {len(items.examples)} texts"


def choose(page: Any, **chosen: str) -> None:
    values = {name: chosen.get(name, "") for name in FILTERS}
    page.evaluate(
        """values => {
            for (const [name, value] of Object.entries(values)) document.getElementById(`filter-${name}`).value = value;
            document.getElementById("filter-task").dispatchEvent(new Event("input", { bubbles: true }));
            return new Promise((done) => setTimeout(done, 10));
        }""",
        values,
    )


def unfold(page: Any) -> None:
    """Open everything; what is in a fold is made when it is opened, and may have folds of its own."""
    for _ in range(3):
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        page.wait_for_timeout(50)


def search(page: Any, words: str) -> str:
    page.fill("#filter-q", words)
    page.wait_for_timeout(250)
    return str(page.inner_text("#count"))


# As a whole


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_page_never_scrolls_sideways(opened: Callable[..., Any], width: int, scheme: str) -> None:
    items = given.items(longer=5)
    page = opened(given.report("a-" * 60, "mixed " * 60, drawn=True), items, width=width, color_scheme=scheme)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    links = page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href'))")
    assert len(links) == len(given.report().sections) + 3
    assert all(page.locator(link).count() == 1 for link in links)


def test_everything_but_single_answers_is_read_without_scripts(opened: Callable[..., Any]) -> None:
    report = given.report()
    page = opened(report, given.items(), java_script_enabled=False)
    said = page.inner_text("body")
    for sentence in [*report.summary, *(sentence for section in report.sections for sentence in section.sentences)]:
        assert joined(sentence) in said
    assert "scripts are off" in said
    assert not page.is_visible("#filters")


def test_a_warning_stands_at_the_top_where_there_is_one() -> None:
    told = render(given.report(warning="INCOMPLETE: 2 missing"), Items(""))
    assert told.index("</header>") < told.index("INCOMPLETE: 2 missing") < told.index("<nav")
    assert 'class="warning"' not in render(given.report(), Items(""))


def test_tables_are_rounded_and_long_ones_scroll_in_a_box(opened: Callable[..., Any]) -> None:
    page = opened(given.report(), Items(""))
    rows = page.locator("#section-2 table").first.locator("tbody tr")
    assert [cell.strip() for cell in rows.first.locator("th, td").all_inner_texts()][:5] == [
        "perturb",
        "18.204",
        "2",
        "<.001",
        "0.337",
    ]
    assert rows.last.locator("td").nth(2).inner_text() == ""
    heights = page.eval_on_selector_all(
        ".box", "all => all.map(one => [one.querySelectorAll('tbody tr').length, one.clientHeight < one.scrollHeight])"
    )
    assert heights == [[9, False], [4, False], [54, True]]
    assert page.eval_on_selector("#section-2 td.number", "one => getComputedStyle(one).textAlign") == "right"


def test_a_print_has_whole_tables_and_no_controls(opened: Callable[..., Any]) -> None:
    page = opened(given.report(), given.items())
    page.emulate_media(media="print")
    assert not page.is_visible("#filters")
    assert page.evaluate(
        "[...document.querySelectorAll('.box')].every(one => one.clientHeight >= one.scrollHeight - 1)"
    )


def test_every_control_has_a_name_and_is_reached_by_keys(opened: Callable[..., Any]) -> None:
    page = opened(given.report(), given.items())
    for name in [*FILTERS, "q"]:
        assert page.locator(f"label[for=filter-{name}]").inner_text()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#filter-q")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Next →"
    fold = page.locator("details.changes").first
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    fold.locator("tbody tr").first.wait_for()
    assert fold.locator("tbody tr").count() == 1
    assert page.get_by_role("row").count() > 1


# Single answers


def test_each_filter_alone_and_two_together_leave_what_they_name(opened: Callable[..., Any]) -> None:
    items = given.items()
    page = opened(given.report(), items)
    assert page.inner_text("#count") == expected(items)
    for name in FILTERS:
        for value in dict.fromkeys(one[name] for one in answers(items)):
            choose(page, **{name: value})
            assert page.inner_text("#count") == expected(items, **{name: value})
    for chosen in (
        {"task": "qa", "flip": "right to wrong"},
        {"model": given.MODELS[2], "perturb": "redact"},
        {"perturb": "typo", "level": "high"},
    ):
        choose(page, **chosen)
        assert page.inner_text("#count") == expected(items, **chosen)
    page.click("button[type=reset]")
    page.wait_for_timeout(50)
    assert page.inner_text("#count") == expected(items)


def test_choices_stand_in_the_order_of_the_study(opened: Callable[..., Any]) -> None:
    base = given.items(1)
    example = dict(base.examples[0])
    odd = [{"perturb": "keyboard", "level": "low", "edits": []}, {"perturb": "typo", "level": "0.2", "edits": []}]
    example["variants"] = [*odd, *reversed(example["variants"])]
    example["replies"] = [
        {
            **reply,
            "cells": [
                {**reply["cells"][0], "perturb": one["perturb"], "level": one["level"]} for one in example["variants"]
            ],
        }
        for reply in example["replies"]
    ]
    page = opened(given.report(), replace(base, examples=(example,)))
    assert page.locator("#filter-perturb option").all_inner_texts() == [
        "all",
        "typo",
        "homophone",
        "redact",
        "keyboard",
    ]
    assert page.locator("#filter-level option").all_inner_texts() == ["all", "low", "mid", "high", "0.2"]


def test_a_search_finds_texts_replies_ids_and_what_was_put_in(opened: Callable[..., Any]) -> None:
    items = given.items()
    page = opened(given.report(), items)
    whole = len(items.examples[0]["replies"]) * 9
    assert search(page, "CONDITION-004").startswith(f"{whole} of")
    assert search(page, "  metformin  and ").startswith(f"{3 * whole} of")
    told = [one for one in answers(items) if "not able" in one["reply"] + one["of"]["clean"]["reply"]]
    assert search(page, "not able to tell").startswith(f"{len(told)} of")
    after = items.examples[0]["variants"][2]["edits"][0][2]
    hit = [one for one in answers(items) for variant in one["example"]["variants"]
           if (variant["perturb"], variant["level"]) == (one["perturb"], one["level"])
           and any(after in edit[2] for edit in variant["edits"])]  # fmt: skip
    assert search(page, after).startswith(f"{len(hit)} of")
    assert search(page, "(.*)[").startswith("0 of")
    assert "No answer matches" in page.inner_text("#cards")
    assert search(page, " ") == expected(items)


def test_a_page_shows_three_texts_and_goes_on_and_back(opened: Callable[..., Any]) -> None:
    items = given.items()
    page = opened(given.report(), items)
    names = [str(example["id"]) for example in items.examples]
    seen = [*page.locator(".card h3").all_inner_texts()]
    assert page.locator("#pager-top button").first.is_disabled()
    while not page.locator("#pager-end button").last.is_disabled():
        page.locator("#pager-end button").last.click()
        seen += page.locator(".card h3").all_inner_texts()
    assert seen == names
    page.locator("#pager-top button").first.click()
    assert page.locator(".card h3").all_inner_texts() == names[-6:-3]
    assert page.evaluate("document.activeElement.textContent") == names[-6]


def test_a_view_is_kept_in_the_address(opened: Callable[..., Any]) -> None:
    items = given.items()
    page = opened(given.report(), items, at="#answers?task=sentiment&flip=right+to+wrong&first=4")
    assert page.inner_text("#count") == expected(items, task="sentiment", flip="right to wrong")
    assert "Texts 4 to" in page.inner_text("#pager-top")
    assert page.evaluate("document.getElementById('answers').getBoundingClientRect().top") < 400
    choose(page, task="qa", model=given.MODELS[0])
    address = page.evaluate("location.hash")
    choose(page)
    page.evaluate("address => { location.hash = address }", address)
    page.wait_for_timeout(50)
    assert page.inner_text("#count") == expected(items, task="qa", model=given.MODELS[0])
    page.evaluate("location.hash = '#answers?task=%3Cb%3E&level=nought&first=x'")
    page.wait_for_timeout(50)
    assert page.inner_text("#count") == expected(items)
    page.click("nav a >> nth=1")
    assert page.inner_text("#count") == expected(items)


def test_edits_played_on_the_original_give_the_disturbed_text(opened: Callable[..., Any]) -> None:
    text = "😩 pain 👩🏽‍⚕️ in the left hip, naproxen 💊💊 did nothing\nfor the pain"
    edits = [
        [text.index("naproxen"), "naproxen", "naproxne", "transpose", 1, ["drug"]],
        [text.index("left"), "left", "", "redact", 0, ["laterality"]],
        [len(text) - 4, "pain", "pane", "near", 1, []],
        [0, "", "🎉 ", "insert", 0, []],
    ]
    page = opened(given.report(), Items("", (given.only(given.items(1).examples[0], edits, text=text),)))
    said = page.locator(".variant .text").first
    left = """(one, gone) => {
        const copy = one.cloneNode(true);
        copy.querySelectorAll(gone).forEach((part) => part.remove());
        return copy.textContent;
    }"""
    assert said.evaluate(left, "ins, .mark") == text
    disturbed = "🎉 " + text[:-4].replace("naproxen", "naproxne").replace("left", "") + "pane"
    assert said.evaluate(left, "del, .mark") == disturbed
    assert said.locator(".mark").all_inner_texts() == ["laterality", "med, drug", "med"]
    assert said.locator(".medical").first.get_attribute("title") == "transpose, medical word, drug"
    page.locator("details.changes summary").click()
    page.locator("details.changes tbody tr").first.wait_for()
    rows = page.locator("details.changes tbody tr").all_inner_texts()
    assert [row.split() for row in rows][1:] == [
        ["left", "nothing", "redact", "no", "laterality"],
        ["naproxen", "naproxne", "transpose", "yes", "drug"],
        ["pain", "pane", "near", "yes"],
    ]


def test_a_card_shows_every_reply_and_what_became_of_it(opened: Callable[..., Any]) -> None:
    items = given.items(2)
    page = opened(given.report(), items)
    example = items.examples[0]
    page.locator(".card").first.locator("> details").last.locator("summary").first.click()
    rows = page.locator(".card").first.locator("> details").last.locator("tbody tr")
    rows.first.wait_for()
    cells = [one for reply in example["replies"] for one in [reply["clean"], *reply["cells"]]]
    assert rows.count() == len(cells) == 30
    for row, cell in zip(rows.all_inner_texts(), cells, strict=True):
        assert (cell["value"] or cell["outcome"]) in row
        assert ("✓ right" if cell["right"] else "✗ wrong") in row
        assert cell.get("flip", "") in row
    rows.nth(3).locator("summary").click()
    rows.nth(3).locator(".said").wait_for()
    assert rows.nth(3).locator(".said").inner_text() == cells[3]["reply"]
    choose(page, task="qa")
    assert "ROUGE-L 0." in page.inner_text("#cards")
    assert "✗" not in page.inner_text("#cards")


def test_a_long_note_is_cut_until_it_is_asked_for(opened: Callable[..., Any]) -> None:
    items = given.items(1, tasks=["qa"], longer=8)
    page = opened(given.report(), items)
    text = page.locator(".card .text").first
    short = text.bounding_box()["height"]
    button = page.locator(".card .more").first
    assert f"{len(items.examples[0]['text']):,} characters" in button.inner_text()
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert text.bounding_box()["height"] > 2 * short
    assert text.text_content() == items.examples[0]["text"]


def test_a_disturbed_question_is_marked_in_the_question(opened: Callable[..., Any]) -> None:
    edit = [0, "Why", "Wyh", "transpose", 0, []]
    example = given.only(given.items(1, tasks=["qa"]).examples[0], [edit], field="question")
    page = opened(given.report(), Items("", (example,)))
    assert page.locator(".variant .text").first.text_content() == given.QUESTION.replace("Why", "WhyWyh")


def test_a_report_without_examples_says_so(opened: Callable[..., Any]) -> None:
    page = opened(given.report(), Items("None were kept."))
    assert "shows no single answers" in page.inner_text("#answers")
    assert not page.is_visible("#filters")


# Text is text


def everywhere(text: str) -> Report:
    """Return a report that is that text wherever it may be."""
    table = Table("name", text, pd.DataFrame({text: [text], "id": [text]}), text)
    figures = (Figure("name", text, Drawing(figsize=(2, 1)), text, text),)
    return Report(text, text, (text,), (Section(text, (text,), figures, (table,)),))


def hostile(text: str) -> Items:
    """Return an example that is that text wherever it may be."""
    said = {"value": text, "reply": text, "outcome": "scored", "right": 1}
    cells = [{"perturb": text, "level": text, "flip": text, **said, "outcome": outcome} for outcome in ("scored", text)]
    edit = [0, text[:3], text, text, 1, [text]]
    variants = [{"perturb": text, "level": text, "edits": [edit]}]
    example = {
        **dict.fromkeys(("task", "weights", "id", "text", "question", "target"), text),
        "field": "text", "variants": variants, "replies": [{"model": text, "clean": said, "cells": cells}],
    }  # fmt: skip
    return Items(text, (example,))


@pytest.mark.parametrize("text", [*HOSTILE[:2], "\n".join(HOSTILE)])
def test_text_never_becomes_markup(opened: Callable[..., Any], text: str) -> None:
    page = opened(everywhere(text), hostile(text), width=390)
    unfold(page)
    assert page.evaluate("window.caught") is None
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 1
    assert page.locator("b").count() == 0
    assert page.locator(".card .text").first.text_content() == text
    assert page.locator(".card h3").text_content() == text
    assert page.locator(".said").first.text_content() == text
    assert page.locator("h1 bdi").text_content() == text
    assert page.locator("img").get_attribute("alt") == text
    assert page.locator("#section-1 tbody td").first.text_content() == text
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("text", [*HOSTILE, "\x00\x07\ud800 broken"])
def test_examples_are_read_back_as_they_were(text: str) -> None:
    items = hostile(text)
    told = as_script(items)
    assert not set("<>&\u2028\u2029") & set(told)
    assert json.loads(told) == {"rule": text, "examples": json.loads(json.dumps(items.examples))}


def test_a_text_that_is_no_utf8_is_written_all_the_same(tmp_path: Path) -> None:
    write(tmp_path / "page.html", Report("\ud800 broken", "", (), ()), hostile("\ud800 broken"))
    assert b"\\ud800 broken" in (tmp_path / "page.html").read_bytes()


# The file


def test_the_same_report_gives_the_same_file_and_asks_for_no_other(tmp_path: Path) -> None:
    report, again = (
        replace(one, sections=one.sections[2:]) for one in (given.report(drawn=True), given.report(drawn=True))
    )
    for name in ("a", "b"):
        write(tmp_path / name, report, given.items())
    write(tmp_path / "c", again, given.items())
    told = (tmp_path / "a").read_bytes()
    assert told == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    shell = re.sub(rb'<script type="application/json".*?</script>', b"", told)
    assert not re.search(rb"(src|href)=\"(?!data:|#)", shell)
    assert not re.search(rb"https?:|@import|url\(", shell)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "another text"}, "does not fit the text at character"),
        ({"field": "target"}, "none of text, question"),
        ({"target": float("nan")}, "no JSON"),
        ({"target": {1, 2}}, "no JSON"),
        ({"variants": []}, "there is no variant"),
    ],
)
def test_what_cannot_be_shown_is_refused(change: Mapping[str, Any], reason: str) -> None:
    example = {**given.items(1).examples[0], **change}
    with pytest.raises(DataError, match=reason):
        as_script(Items("", (example,)))


@pytest.mark.slow
def test_a_big_page_costs_little_more_than_its_examples(opened: Callable[..., Any], tmp_path: Path) -> None:
    few = given.items(10, tasks=["qa"], longer=9).examples
    items = Items("", tuple({**few[at % 10], "id": f"qa-{at}"} for at in range(BIG)))
    page = opened(given.report(), items, width=390)
    size = (tmp_path / "page.html").stat().st_size
    plain = len(json.dumps(items.examples, ensure_ascii=False, separators=(",", ":")).encode())
    page.select_option("#filter-flip", "wrong to right")
    page.wait_for_function(
        "told => document.getElementById('count').textContent === told", arg=expected(items, flip="wrong to right")
    )
    page.fill("#filter-q", "no such words anywhere")
    page.wait_for_function("() => document.getElementById('count').textContent.startsWith('0 of')")
    assert 14_000_000 < size < min(plain + 400_000, 15_000_000)
    assert page.locator("*").count() < 3000


# Colours


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def schemes() -> Iterator[dict[str, str]]:
    style = (Path(written.__file__).with_name("html") / "page.css").read_text("utf-8")
    for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL):
        full = re.sub(r": #(\w)(\w)(\w);", r": #\1\1\2\2\3\3;", block)
        if found := dict(re.findall(r"--([\w-]+): (#\w{6});", full)):
            yield found


@pytest.mark.parametrize(
    ("ink", "grounds"),
    [
        ("ink", ("ground", "panel", "sunken")),
        ("soft", ("ground", "panel", "sunken")),
        ("accent", ("ground", "panel")),
        ("on-accent", ("accent",)),
        ("warn-ink", ("warn-ground",)),
        ("del-ink", ("del-ground",)),
        ("ins-ink", ("ins-ground",)),
        ("good", ("panel", "sunken")),
        ("bad", ("panel", "sunken")),
    ],
)
def test_text_stands_out_as_wcag_aa_asks(ink: str, grounds: tuple[str, ...]) -> None:
    light, dark, print_ = schemes()
    for scheme in (light, dark, light | print_):
        for ground in grounds:
            low, high = sorted((luminance(scheme[ink]), luminance(scheme[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_table_of_more_than_a_thousand_rows_says_where_the_rest_is() -> None:
    many = Table("many", "Many", pd.DataFrame({"n": range(1200)}))
    html = written.render(Report("s", "", (), (Section("A", tables=(many,)),)), Items(""))
    assert "They are the first of 1200; all are in tables/many.csv." in html
    assert ">999<" in html
    assert ">1000<" not in html
