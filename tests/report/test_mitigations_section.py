"""The report's section on what mitigations did: invented runs in, tables and sentences out."""

from types import SimpleNamespace
from typing import Any

from noisyhealth.report.sections import mitigations


def run(mitigate: str = "", perturb: str = "typo", **metrics: float) -> Any:
    tags = {
        **{"weights": "embedded", "task": "sentiment", "answered_by": "m", "perturb": perturb, "level": "mid"},
        **({"mitigate": mitigate} if mitigate else {}),
    }
    name = f"sentiment · m · {perturb} · mid · mitigate={mitigate}"
    numbers = {name.replace("__", "/"): value for name, value in metrics.items()}
    info = SimpleNamespace(run_id=f"run-{mitigate}", run_name=name, start_time=1)
    return SimpleNamespace(info=info, data=SimpleNamespace(tags=tags, params={"rate": "0.3"}, metrics=numbers))


REPAIR = {
    "repair__edits": 40,
    "repair__undone": 10,
    "repair__words": 200,
    "repair__damaged": 2,
    "repair__undone_share": 0.25,
}
RUNS = [
    run("", n=6),
    run("spelling", n=6, calls=6, clean_calls=6, **REPAIR, clean_repair__words=240, clean_repair__damaged=3),
    run("vote", n=6, calls=30, clean_calls=29, tokens__prompt=900, vote__n=6, vote__agreement=0.9),
    run(
        "detect",
        n=6,
        calls=6,
        clean_calls=6,
        detect__n=6,
        detect__flagged=0.5,
        clean_detect__n=6,
        clean_detect__flagged=0,
    ),
]


def test_a_study_without_a_mitigation_has_no_such_section() -> None:
    assert mitigations.section(RUNS[:1]) is None


def test_each_mitigation_has_a_table_of_its_own_metrics_a_row_a_run() -> None:
    section = mitigations.section(RUNS)
    assert section
    tables = {table.name: table.frame for table in section.tables}
    assert list(tables) == ["mitigation_calls", "mitigation_repair", "mitigation_vote", "mitigation_detect"]
    calls = tables["mitigation_calls"].set_index("mitigate")
    assert (calls.loc["vote", "calls"], calls.loc["vote", "clean_calls"], calls.loc["vote", "n"]) == (30, 29, 6)
    [repair] = tables["mitigation_repair"].to_dict("records")
    assert (repair["undone"], repair["undone_share"], repair["clean_damaged"]) == (10, 0.25, 3)
    [flags] = tables["mitigation_detect"].to_dict("records")
    assert (flags["flagged"], flags["n"], flags["clean_flagged"], flags["clean_n"]) == (0.5, 6, 0, 6)


def test_the_sentences_say_what_was_repaired_and_flagged_of_how_many() -> None:
    section = mitigations.section(RUNS)
    assert section
    assert section.sentences == (
        "Spelling repair undid 10 of 40 edits exactly (25%) and changed 2 of 200 words that nobody had touched, in 1 "
        "cell.",
        "The detector flagged 3 of 6 disturbed texts and 0 of 6 clean ones, in 1 cell.",
    )
