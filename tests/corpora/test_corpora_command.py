import json

import pytest

from tasks.cli import main
from tasks.corpora.sources.package_text import ChitchatCorpus, EncyclopediaCorpus, package_file
from tasks.errors import CorpusError


def test_a_file_of_ones_own_and_an_earlier_corpus_stays_when_the_source_is_bad(tmp_path, capsys):
    text, folder, report = tmp_path / "mail.txt", tmp_path / "out", tmp_path / "report.json"
    text.write_text("".join(f"This is Line number {number}.\n" for number in range(60)))
    command = ["corpora", "--set", f"source={text}", "--output", str(folder), "--private", "--report", str(report)]
    command += ["--set", "cleaning={valid_sentences: 10, test_sentences: 20}"]
    assert main(command) == 0
    lines = {part: (folder / f"{part}.txt").read_text().splitlines() for part in ("train", "valid", "test")}
    assert {part: len(found) for part, found in lines.items()} == {"train": 30, "valid": 10, "test": 20}
    assert lines["train"][0].startswith("This is Line number ")
    measured = json.loads(report.read_text())["measured"]
    assert measured["sentences"] == {"train": 30, "valid": 10, "test": 20}
    assert measured["words"] == {"train": 150, "valid": 50, "test": 100}
    assert folder.stat().st_mode & 0o777 == 0o700

    text.write_bytes(b"good line\n" * 50 + b"secret \xff\n")
    capsys.readouterr()
    assert main(command) == 1
    error = capsys.readouterr().err
    assert "line 51" in error
    assert error.count("\n") == 1
    assert "secret" not in error
    assert (folder / "train.txt").read_text().splitlines() == lines["train"]


@pytest.mark.parametrize(
    ("settings", "documents", "texts"),
    [
        (ChitchatCorpus(kind="chitchat", source="constraints.txt"), 7168, range(258_145, 258_146)),
        (EncyclopediaCorpus(kind="encyclopedia", source="constraints.txt", questions=False), 490,
            range(90_000, 10**6)),
    ],
)  # fmt: skip
def test_text_of_installed_packages_is_what_was_pinned(settings, documents, texts):
    found = list(settings.open().documents())
    assert len(found) == documents
    assert sum(len(document.texts) for document in found) in texts


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(CorpusError, match=r"'no_such_package'.*'make install'"):
        package_file("no_such_package", "x.json")
    with pytest.raises(CorpusError, match=r"holds no 'x\.json'"):
        package_file("json", "x.json")
