"""Tables as LaTeX and Markdown: whatever a cell holds is printed as it is."""

from pathlib import Path

import pandas as pd
import pytest

from noisyhealth.report import files
from noisyhealth.report.outline import Report, Section, Table
from noisyhealth.report.rounding import rounded

ODD = r"50% of_a $x & #1 {y} \z ~ ^ | <b> χ² → é"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    frame = pd.DataFrame({"na|me_%": [ODD], "p": [0.00001], "drop_share": [0.25]})
    report = Report(
        "s", "INCOMPLETE: 1 missing", (), (Section("A", tables=(Table("odd/name", ODD, frame, "50 % note."),)),)
    )
    files.write_tables(tmp_path / "tables", report)
    return tmp_path / "tables"


def test_a_name_that_is_no_file_name_is_made_one(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"odd_name.csv", "odd_name.md", "odd_name.tex"}


def test_csv_has_all_digits_and_what_is_wrong_as_a_column(folder: Path) -> None:
    frame = pd.read_csv(folder / "odd_name.csv")
    assert frame.iloc[0].to_dict() == {
        "na|me_%": ODD,
        "p": 0.00001,
        "drop_share": 0.25,
        "study_incomplete": "INCOMPLETE: 1 missing",
    }


def test_latex_escapes_every_sign_that_means_something_to_it(folder: Path) -> None:
    latex = (folder / "odd_name.tex").read_text()
    assert (
        r"50\% of\_a \$x \& \#1 \{y\} \textbackslash{}z \textasciitilde{} \textasciicircum{} | "
        r"\textless{}b\textgreater{} $\chi$$^2$ $\rightarrow$ é & \textless{}.001 & 25.0 \% \\"
    ) in latex
    assert r"\caption{50\% of\_a" in latex
    assert "INCOMPLETE: 1 missing. 50 \\% note" in latex
    assert r"na|me\_\%" in latex


def test_markdown_keeps_a_cell_in_its_column(folder: Path) -> None:
    lines = (folder / "odd_name.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert [line.replace(r"\|", "").count("|") for line in rows] == [4, 4, 4]
    assert "INCOMPLETE: 1 missing" in lines
    assert "50 % note." in lines


def test_a_table_of_an_earlier_report_goes_but_no_file_of_others(folder: Path, tmp_path: Path) -> None:
    (folder / "mine.txt").write_text("keep")
    new = Table("new", "New", pd.DataFrame({"n": [1]}))
    built = tmp_path / "built"
    built.mkdir()
    files.write_tables(built / "tables", Report("s", "", (), (Section("A", tables=(new,)),)))
    files.publish(built, tmp_path)
    assert {path.name for path in folder.iterdir()} == {"mine.txt", "new.csv", "new.md", "new.tex"}


def test_a_label_of_latex_has_no_sign_that_means_something(tmp_path: Path) -> None:
    odd = Table("flips_w_1%", "Odd", pd.DataFrame({"n": [1]}))
    files.write_tables(tmp_path / "tables", Report("s", "", (), (Section("A", tables=(odd,)),)))
    assert r"\label{tab:flips_w_1_}" in (tmp_path / "tables" / "flips_w_1_.tex").read_text()


def test_no_cell_is_markup_in_markdown(tmp_path: Path) -> None:
    odd = Table("odd", "Odd", pd.DataFrame({"model": ["<b>x</b>"]}))
    assert "&lt;b&gt;x&lt;/b&gt;" in files._markdown(odd, rounded(odd.frame), "")
