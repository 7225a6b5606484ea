"""The manifest of a folder: it finds every file that is not as it was."""

from pathlib import Path

import pytest

from noisyhealth import manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "deep" / "b.txt").write_text("b")
    manifest.write(tmp_path, {"study": "ä"})
    return tmp_path


def test_a_folder_as_it_was_has_no_differences(folder: Path) -> None:
    assert list(manifest.differences(folder)) == []
    assert manifest.read(folder)["study"] == "ä"
    assert set(manifest.read(folder)["files"]) == {"a.txt", "deep/b.txt"}


def test_lost_changed_and_strange_files_are_named(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "deep" / "b.txt").write_text("c")
    (folder / "c.txt").write_text("c")
    lost, strange, changed = manifest.differences(folder)
    assert (lost, strange) == ("a.txt is not there", "c.txt is not one of the files that were kept")
    assert changed.startswith("deep/b.txt was changed: its sha256 is 2e7d2c03a9507ae2")
    assert [told.partition(" ")[0] for told in manifest.differences(folder, strange=False)] == ["a.txt", "deep/b.txt"]


def test_no_byte_of_a_manifest_can_be_another(folder: Path) -> None:
    path = folder / manifest.NAME
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        told = list(manifest.differences(folder))
        assert told, at
        assert told[0].startswith("manifest.json cannot be trusted")


def test_a_folder_without_a_manifest_says_so(tmp_path: Path) -> None:
    assert list(manifest.differences(tmp_path)) == ["manifest.json is not there"]
