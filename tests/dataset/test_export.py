"""An exported dataset: what `datasets` reads of it, what its card says, what must not be in it."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow.parquet as pq
import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from noisyhealth.dataset import card
from noisyhealth.dataset.build import build
from noisyhealth.dataset.described import HOW
from noisyhealth.dataset.design import Design, Disturbance, Split
from noisyhealth.dataset.export import export, licence, portable
from noisyhealth.dataset.table import TABLE, Build
from noisyhealth.errors import DataError
from noisyhealth.perturbations.homophone import Homophone
from noisyhealth.perturbations.redact import Redact
from noisyhealth.perturbations.typo import Typo
from noisyhealth.sources.files import Files
from noisyhealth.sources.sample import Sample
from noisyhealth.sources.source import Columns
from noisyhealth.text.homophones import Table
from noisyhealth.text.tagger import Tagger

SPLITS = ("prompt", "validation", "test")
TAGGER = Tagger(frozenset({"ADJ", "ADV", "VERB", "NOUN", "PROPN", "AUX"}))
STUDY = (
    Disturbance("typo", {"low": 0.1, "high": 0.5}, True, Typo()),
    Disturbance("homophone", {"low": 0.1}, True, Homophone(Table())),
    Disturbance("redact", {"low": 0.1, "high": 0.3}, False, Redact()),
)
SETTINGS = {"source": {"name": "sample"}, "keep": {"typo": {"change": {"low_share": 0.2, "high_share": 0.5}}}}
THINGS = ["soup", "bread", "cheese", "apple", "pear", "plum", "carrot", "onion", "potato", "tomato"]
FILE = [(f"we cooked {a} with {b} and ate slowly", "glad") for a in THINGS for b in THINGS[:2]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The build of the sample notes."""
    split = Split(prompt=0.2, test=20, train=0.8)
    source = Sample({"qa": "CC0-1.0"})
    return build(Design("qa", source, STUDY, split, TAGGER, 0, SETTINGS), tmp_path_factory.mktemp("qa"))


@pytest.fixture(scope="module")
def exported(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample notes as a folder."""
    to = tmp_path_factory.mktemp("exports") / "not" / "yet" / "qa"
    export(built, to)
    return to


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., tuple[Build, Path]]:
    """Build texts from a file of the user's, which touch nothing that is flagged, and export them."""

    def made(*disturbances: Disturbance, texts: list[tuple[str, str]] = FILE, **changes: Any) -> tuple[Build, Path]:
        path, folder = tmp_path / "ann's notes.jsonl", tmp_path / "built"
        path.write_text("\n".join(json.dumps({"id": str(n), "text": t, "target": a}) for n, (t, a) in enumerate(texts)))
        columns = {"mood": Columns("text", "target", id="id")}
        settings = {"source": {"name": "files", "source": {"paths": {"mood": str(path), "qa": "../her/qa.csv"}}}}
        source = Files({"mood": str(path)}, columns)
        design = Design("mood", source, disturbances or STUDY[2:], Split(0.2, 3, 0.8), TAGGER, 0, settings)
        folder.mkdir()
        found = build(replace(design, **changes), folder)
        export(found, tmp_path / "mood")
        return found, tmp_path / "mood"

    return made


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`load_dataset` with a cache of its own and no connection."""
    datasets = pytest.importorskip("datasets", reason="the package datasets (extra hub) is not installed")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    return lambda folder: datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a build by split, in their order."""
    found = pq.read_table(folder / TABLE).to_pylist()
    return {split: [row for row in found if row["split"] == split] for split in SPLITS}


def matter(folder: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(text(folder).split("---\n")[1])
    return found


def text(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def section(folder: Path, head: str) -> str:
    return text(folder).partition(f"## {head}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("part", [".", "jsonl"])
def test_load_dataset_gives_the_rows_of_the_table(
    part: str, built: Build, exported: Path, load: Callable[..., Any]
) -> None:
    found, wanted = load(exported / part), rows(built.folder)
    assert {split: found[split].to_list() for split in found} == wanted
    schema = pq.read_schema(built.folder / TABLE).remove_metadata()
    assert all(found[split].features.arrow_schema.remove_metadata() == schema for split in SPLITS)


def test_types_are_right_where_no_edit_has_a_flag_and_some_texts_have_no_edit(
    mine: Callable[..., tuple[Build, Path]], load: Callable[..., Any]
) -> None:
    made, folder = mine(
        Disturbance("redact", {"low": 0.2}, True, Redact()), Disturbance("none", {"low": 0.0}, True, None)
    )
    wanted = rows(made.folder)
    assert not any(edit["flags"] for split in SPLITS for row in wanted[split] for edit in row["redact_low_edits"])
    for part in (".", "jsonl"):
        found = load(folder / part)
        assert {split: found[split].to_list() for split in found} == wanted
        assert found["test"].features["none_low_edits"] == found["test"].features["redact_low_edits"]


@pytest.mark.parametrize("split", SPLITS)
def test_parquet_and_jsonl_hold_the_rows_of_the_split(split: str, built: Build, exported: Path) -> None:
    wanted = rows(built.folder)[split]
    lines = (exported / "jsonl" / f"{split}.jsonl").read_bytes().decode("utf-8").split("\n")
    assert [json.loads(line) for line in lines[:-1]] == wanted
    assert lines[-1] == ""
    assert pq.read_table(exported / "data" / f"{split}.parquet").to_pylist() == wanted


@pytest.mark.parametrize("split", SPLITS)
def test_parquet_keeps_the_tables_columns_and_metadata(split: str, built: Build, exported: Path) -> None:
    stored = pq.read_schema(exported / "data" / f"{split}.parquet")
    assert stored.equals(pq.read_schema(built.folder / TABLE), check_metadata=True)


def test_rows_are_gathered_to_whole_row_groups(mine: Callable[..., tuple[Build, Path]]) -> None:
    nouns = [(a, b, c) for a in THINGS for b in THINGS for c in THINGS]
    many = [(f"{a} and {b} then {c} taste {n}nice to uncle{n}", "glad") for n, (a, b, c) in enumerate(nouns)]
    _, folder = mine(texts=many)
    found = pq.ParquetFile(folder / "data" / "validation.parquet").metadata
    sizes = [found.row_group(n).num_rows for n in range(found.num_row_groups)]
    assert len(sizes) > 1
    assert min(sizes[:-1]) >= 256


def test_strings_that_look_like_dates_stay_what_they_are(
    mine: Callable[..., tuple[Build, Path]], load: Callable[..., Any]
) -> None:
    made, folder = mine(texts=[(text, f"2026-01-{n + 10}") for n, (text, _) in enumerate(FILE)])
    found, wanted = load(folder), rows(made.folder)
    assert {split: found[split].to_list() for split in found} == wanted
    lines = (folder / "jsonl" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["target"] for line in lines] == [row["target"] for row in wanted["test"]]


def test_the_cards_snippet_makes_a_version_from_its_edits(built: Build, exported: Path) -> None:
    [_, code] = re.findall(r"```python\n(.*?)```", section(exported, "Reading it, and replaying edits"), re.DOTALL)
    assert len(code.splitlines()) == 5
    for row in rows(built.folder)["test"]:
        exec(code, {"row": row})


def test_the_cards_snippet_replays_a_question_where_that_is_disturbed(built: Build) -> None:
    asked = {"perturbations": {"typo": {"levels": {"low": 0.1}, "field": "question"}}}
    assert 'row["question"]' in card.snippet(asked)


def test_no_path_of_the_machine_is_told(mine: Callable[..., tuple[Build, Path]], tmp_path: Path) -> None:
    _, folder = mine()
    told = [text(folder), (folder / "build.json").read_text(encoding="utf-8")]
    told += [str(pq.read_schema(folder / "data" / f"{split}.parquet").metadata) for split in SPLITS]
    assert all(str(tmp_path) not in found and "/her" not in found and str(Path.home()) not in found for found in told)
    assert all("ann's notes.jsonl" in found.replace("\\'", "'") for found in told)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"paths": {"qa": "a/b.csv", "x": ""}}, {"paths": {"qa": "b.csv", "x": ""}}),
        ({"repos": {"qa": "owner/notes"}}, {"repos": {"qa": "owner/notes"}}),
        ({"repos": {"qa": "/srv/sets/notes"}}, {"repos": {"qa": "notes"}}),
        ([{"answers": "C:\\Users\\ann\\answers.jsonl"}], [{"answers": "answers.jsonl"}]),
        ({"answers": "~/cache/answers.jsonl"}, {"answers": "answers.jsonl"}),
        ({"answers": ".cache/answers.jsonl"}, {"answers": ".cache/answers.jsonl"}),
        ({"url": "https://api.datamuse.com/words"}, {"url": "https://api.datamuse.com/words"}),
        (
            {"mask": "/", "rate": 0.1, "nested": True, "none": None},
            {"mask": "/", "rate": 0.1, "nested": True, "none": None},
        ),
    ],
)
def test_a_path_becomes_a_file_name_and_nothing_else_changes(settings: Any, told: Any) -> None:
    assert portable(settings) == told


def test_a_repository_that_is_a_folder_here_becomes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ann" / "notes").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert portable({"repos": {"qa": "ann/notes"}}) == {"repos": {"qa": "notes"}}


def test_the_facts_are_in_the_folder(built: Build, exported: Path) -> None:
    assert json.loads((exported / "build.json").read_text(encoding="utf-8")) == {
        name: fact for name, fact in built.facts.items() if name != "table"
    }


@pytest.mark.parametrize(
    ("stated", "known"),
    [
        ("CC0-1.0", {"license": "cc0-1.0"}),
        ("CC-BY-SA-3.0", {"license": "cc-by-sa-3.0"}),
        ("CC-BY-NC-SA-4.0", {"license": "cc-by-nc-sa-4.0"}),
        (" mit ", {"license": "mit"}),
        ("ODbL-1.0", {"license": "odbl"}),
        ("CC-BY-ND-3.0", {"license": "other", "license_name": "cc-by-nd-3.0"}),
        ("other (for research)", {"license": "other", "license_name": "other-for-research"}),
        ("", {"license": "other", "license_name": "not-stated"}),
    ],
)
def test_a_licence_is_the_hubs_or_other_with_its_name(stated: str, known: dict[str, str]) -> None:
    assert licence(stated) == known


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("CC0-1.0", "no rights reserved"),
        ("CC-BY-SA-3.0", "share them under this licence alone"),
        ("CC-BY-NC-4.0", "nothing commercial"),
        ("CC-BY-NC-ND-4.0", "do not share this folder"),
        ("other (for research)", "read its terms"),
        ("", "Licence: not stated"),
    ],
)
def test_the_card_says_what_the_licence_asks(stated: str, said: str, built: Build) -> None:
    assert said in card.card({**built.facts, "licence": stated}, card.Held({}, True))


def test_an_unknown_licence_reaches_the_card(mine: Callable[..., tuple[Build, Path]]) -> None:
    _, folder = mine()
    assert matter(folder)["license_name"] == "not-stated"
    assert "not stated" in section(folder, "Texts and licence")


@pytest.mark.parametrize(("name", "category"), [("qa", "question-answering"), ("mood", "text-classification")])
def test_the_task_category_is_that_of_texts_with_or_without_questions(
    name: str, category: str, exported: Path, mine: Callable[..., tuple[Build, Path]]
) -> None:
    folder = exported if name == "qa" else mine()[1]
    assert matter(folder)["task_categories"] == [category]


def test_the_numbers_of_the_splits_add_up(built: Build, exported: Path) -> None:
    table = [line.strip("| ").split(" | ") for line in section(exported, "Splits").splitlines() if line.startswith("|")]
    numbers = {row[0].strip("`"): [int(n.replace(",", "")) for n in row[1:]] for row in table[2:]}
    found = rows(built.folder)
    counts = Counter(row["encoder_split"] for split in SPLITS for row in found[split])
    assert numbers["all"] == [built.attrition.kept, counts["train"], counts["validation"], counts["test"]]
    assert [numbers[split][0] for split in SPLITS] == [len(found[split]) for split in SPLITS]
    assert all(whole == sum(parts) for whole, *parts in numbers.values())
    assert [sum(numbers[split][at] for split in SPLITS) for at in range(4)] == numbers["all"]


def test_the_card_has_every_rate_and_every_count(built: Build, exported: Path) -> None:
    rates, kept = section(exported, "Rates asked and realised"), section(exported, "Which texts are kept")
    for name, levels in built.facts["realised"].items():
        for level, found in levels.items():
            row = f"| {name} | {level} | {found['rate']:.1%} of words | {found['texts']} | {found['words']:.1%} |"
            assert row.replace("%", " %") in rates
    assert all(what.strip() in kept and f"| {texts:,} |" in kept for what, texts, _ in built.attrition.rows())


def test_the_card_names_seed_tagger_hashes_and_the_command(built: Build, exported: Path) -> None:
    made = section(exported, "How it was made")
    assert all(str(built.facts[name]) in made for name in ("seed", "draw", "tagger", "content", "hash"))
    assert "python -m noisyhealth dataset build task=qa data=sample seed=0 draw=0\n" in made


def test_the_command_reads_back_as_the_settings(mine: Callable[..., tuple[Build, Path]]) -> None:
    [line] = re.findall(r"python -m noisyhealth dataset build (.*)", section(mine()[1], "How it was made"))
    read = OverridesParser.create().parse_overrides(shlex.split(line))
    assert {given.key_or_group: given.value() for given in read} == {
        "task": "mood", "data": "files", "seed": 0, "draw": 0, "data.source.paths.mood": "ann's notes.jsonl"
    }  # fmt: skip


def test_a_disturbance_of_another_kind_is_named_with_levels_unit_and_nesting(
    mine: Callable[..., tuple[Build, Path]],
) -> None:
    _, folder = mine(Disturbance("shuffle", {"mid": 0.25}, False, Redact(), unit="valid_words"))
    assert (
        "**shuffle.** See `settings` in `build.json`. Levels: mid 25.0 % of the words that may be disturbed of the "
        "text; each level is drawn anew."
    ) in section(folder, "Disturbances")


def test_every_column_is_explained(built: Build, exported: Path) -> None:
    known = section(exported, "What a row holds")
    for name in pq.read_schema(built.folder / TABLE).names:
        assert f"`{re.sub('_(edits|dose)$', '', name)}`" in known


def test_a_folder_that_is_there_is_refused(built: Build, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"exists: remove it, or export to another folder \(--to\)"):
        export(built, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_was_cut_off_leaves_no_folder_and_is_done_anew(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "qa"
    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            export(built, to)
    assert not to.exists()
    export(built, to)
    assert [path.name for path in tmp_path.iterdir()] == ["qa"]
    assert sorted(path.name for path in to.iterdir()) == ["README.md", "build.json", "data", "jsonl"]


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "conf" / "perturb").glob("*.yaml")), ids=lambda p: p.stem
)
def test_a_card_has_a_sentence_for_every_perturbation_that_comes_with_the_package(path: Path) -> None:
    change = yaml.safe_load(path.read_text(encoding="utf-8"))["change"]
    if change is not None:  # the baseline
        said = HOW[str(change["_target_"]).rpartition(".")[2].lower()]({**change, "neighbours": {}, "sounds": {}})
        assert said[0].isupper()
        assert said.endswith(".")
