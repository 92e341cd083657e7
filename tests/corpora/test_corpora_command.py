import json

import pytest

from tasks.cli import main
from tasks.corpora.sources.chitchat import ChitchatCorpus
from tasks.corpora.sources.document import package_file
from tasks.corpora.sources.encyclopedia import EncyclopediaCorpus
from tasks.errors import CorpusError


def write_lines(path, count):
    path.write_text("".join(f"This is Line number {number}.\n" for number in range(count)))


def corpora(*arguments):
    return main(["corpora", *map(str, arguments)])


def test_a_file_of_ones_own(tmp_path):
    write_lines(tmp_path / "mail.txt", 60)
    report = tmp_path / "report.json"
    options = ["--set", "cleaning={valid_sentences: 10, test_sentences: 20}", "--private", "--report", report]
    assert corpora("--set", f"source={tmp_path}/mail.txt", "--output", tmp_path / "out", *options) == 0
    lines = {part: (tmp_path / "out" / f"{part}.txt").read_text().splitlines() for part in ("train", "valid", "test")}
    assert {part: len(found) for part, found in lines.items()} == {"train": 30, "valid": 10, "test": 20}
    assert lines["train"][0].startswith("This is Line number ")
    measured = json.loads(report.read_text())["measured"]
    assert measured["sentences"] == {"train": 30, "valid": 10, "test": 20}
    assert measured["words"] == {"train": 150, "valid": 50, "test": 100}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


def test_a_published_corpus_is_read_by_its_kind(tmp_path):
    folder = tmp_path / "trans"
    folder.mkdir()
    for number in range(10):
        text = f"# fe_03_0000{number}.sph\n\n0.10 1.20 A: this is call number {number} \n"
        (folder / f"fe_03_0000{number}.txt").write_text(text)
    options = ["--set", "cleaning={valid_sentences: 1, test_sentences: 2}", "--report", tmp_path / "report.json"]
    assert corpora("--set", "kind=fisher", "--set", f"source={tmp_path}", "--output", tmp_path / "out", *options) == 0
    measured = json.loads((tmp_path / "report.json").read_text())["measured"]
    assert measured["sentences"] == {"train": 7, "valid": 1, "test": 2}
    assert measured["words"] == {"train": 35, "valid": 5, "test": 10}


def test_an_earlier_corpus_stays_when_the_source_is_bad(tmp_path, capsys):
    write_lines(tmp_path / "mail.txt", 60)
    options = ["--set", "cleaning={valid_sentences: 10, test_sentences: 20}", "--output", tmp_path / "out"]
    corpora("--set", f"source={tmp_path}/mail.txt", *options)
    before = (tmp_path / "out" / "train.txt").read_bytes()
    (tmp_path / "mail.txt").write_bytes(b"good line\n" * 50 + b"secret \xff\n")
    capsys.readouterr()
    assert corpora("--set", f"source={tmp_path}/mail.txt", *options) == 1
    error = capsys.readouterr().err
    assert "line 51" in error
    assert error.count("\n") == 1
    assert "secret" not in error
    assert (tmp_path / "out" / "train.txt").read_bytes() == before


@pytest.mark.parametrize(
    ("settings", "documents", "texts"),
    [
        (ChitchatCorpus(kind="chitchat", source="constraints.txt"), 7168, range(258_145, 258_146)),
        (
            EncyclopediaCorpus(kind="encyclopedia", source="constraints.txt", questions=False),
            490,
            range(90_000, 10**6),
        ),
    ],
)
def test_text_of_installed_packages_is_what_was_pinned(settings, documents, texts):
    found = list(settings.open().documents())
    assert len(found) == documents
    assert sum(len(document.texts) for document in found) in texts


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(CorpusError, match=r"'no_such_package'.*'make install'"):
        package_file("no_such_package", "x.json")
    with pytest.raises(CorpusError, match=r"holds no 'x\.json'"):
        package_file("json", "x.json")
