"""How a corpus is cleaned and divided: sizes, documents, labels, given parts; and what the command writes."""

import json

import pytest

from tasks.cli import main
from tasks.corpora.division import divide, normalise
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources import package_text
from tasks.corpora.sources.document import PARTS, Document, Source, split_sentences
from tasks.corpora.sources.mixture import AnyCorpus
from tasks.corpora.sources.package_text import ChitchatCorpus, EncyclopediaCorpus
from tasks.errors import CorpusError, ParameterError
from tasks.settings.checks import check_settings

SMALL = {"valid_sentences": 12, "test_sentences": 20, "seed": 3}


def conversations(count, sentences=5):
    return [Document([f"Sentence {number} of talk {talk}" for number in range(sentences)]) for talk in range(count)]


def divided(folder, documents, *, private=False, **settings):
    """The tally of a division, and the lines of each part."""
    parts = tuple({document.part for document in documents})
    labelled = any(document.label for document in documents)
    source = Source([], lambda part: [one for one in documents if one.part == part], parts, labelled)
    tally = divide(source, CleaningSettings(**settings), folder, private=private, name="talks")
    return tally, {part: (folder / f"{part}.txt").read_text().splitlines() for part in PARTS}


def test_sizes_are_exact_and_documents_stay_whole(tmp_path):
    tally, parts = divided(tmp_path, conversations(40), **SMALL)
    assert {part: len(lines) for part, lines in parts.items()} == tally.sentences
    assert (tally.sentences["valid"], tally.sentences["test"]) == (12, 20)
    talks = [{line.split()[-1] for line in lines} for lines in parts.values()]
    assert len(set.union(*talks)) == sum(map(len, talks))
    # 20 test sentences are four talks; 12 valid ones are two and a part of a third, whose rest is left out.
    assert {part: len(found) for part, found in zip(parts, talks, strict=True)} == {"train": 33, "valid": 3, "test": 4}
    assert tally.left_out["beyond_limit"] == 3
    assert sum(tally.sentences.values()) + sum(tally.left_out.values()) == tally.texts == 200


def test_each_training_line_keeps_its_document_and_its_label(tmp_path):
    """Though lines are shuffled into parts, and repeated or too short ones left out."""
    mails = [
        ([f"Mail {number} of thread {number % 7} is here", "No", "again and again"], number) for number in range(60)
    ]
    named = [Document(texts, name=f"thread {number % 7}", label=f"l{number}") for texts, number in mails]
    folder = tmp_path / "private"
    _, parts = divided(folder, [*named, *conversations(30)], private=True, minimum_words=2, **SMALL)
    numbers = {}
    documents, labels = ((folder / f"train.{kind}").read_text().splitlines() for kind in ("documents", "labels"))
    for line, document, label in zip(parts["train"], documents, labels, strict=True):
        if line != "again and again":
            numbers.setdefault(line.split(" of ")[1], set()).add(document)
        assert not line.startswith("Mail") or label == f"l{line.split()[1]}"
    assert all(len(found) == 1 for found in numbers.values())
    assert len(set.union(*numbers.values())) == len(numbers) > 20
    threads = [{line.split(" of ")[1] for line in part if line.startswith("Mail")} for part in parts.values()]
    assert sum(map(len, threads)) == len(set.union(*threads)) == 7
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_no_sentence_of_valid_or_test_is_in_train_however_it_is_written(tmp_path):
    """Also where the source brings the parts: test comes first."""
    documents = [Document([f"Talk {number} is here", "see YOU, tomorrow", "See you tomorrow!"]) for number in range(30)]
    tally, parts = divided(tmp_path, documents, valid_sentences=5, test_sentences=5)
    assert sum(line.lower().startswith("see you") for lines in parts.values() for line in lines) == 1
    assert tally.left_out["duplicate"] == 59
    shared = [Document(["a shared sentence", f"only in {part}"], part) for part in PARTS]
    assert divided(tmp_path, shared)[1] == {
        "train": ["only in train"], "valid": ["only in valid"], "test": ["a shared sentence", "only in test"],
    }  # fmt: skip


def test_every_text_left_out_is_counted_by_its_reason(tmp_path):
    """Also what a reader leaves out, at the end of the source too."""
    odd = Document(["", " \t", "word", "Sentence 1 of talk 1", "a " * 50], left_out={"bot": 3})
    documents = [*conversations(20), odd, Document([], left_out={"bot": 2})]
    limits = {"minimum_words": 2, "maximum_words": 40, "valid_sentences": 5, "test_sentences": 5}
    tally, _ = divided(tmp_path, documents, **limits)
    assert tally.left_out == {"empty": 2, "too_short": 1, "too_long": 1, "duplicate": 1, "beyond_limit": 0, "bot": 5}
    assert (tally.texts, tally.documents) == (110, 21)
    assert sum(tally.sentences.values()) + sum(tally.left_out.values()) == tally.texts


def test_a_missing_part_is_taken_from_train_which_is_drawn_by_the_seed(tmp_path):
    documents = [Document([f"Line {number} of {part}"], part) for part in ("train", "test") for number in range(40)]
    first, same, other = (
        divided(tmp_path, documents, train_sentences=20, valid_sentences=4, seed=seed) for seed in (1, 1, 2)
    )
    assert first[0].sentences == {"train": 20, "valid": 4, "test": 40}
    assert first[1] == same[1]
    assert first[1]["train"] != other[1]["train"]
    numbers = [int(line.split()[1]) for line in first[1]["train"]]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("documents", [[Document(["", " "])], conversations(3), conversations(1, sentences=500)])
def test_too_little_text_is_an_error(tmp_path, documents):
    with pytest.raises(CorpusError, match=r"too few|no sentence is left after cleaning"):
        divided(tmp_path, documents, **SMALL)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("sentences", "test", "valid"), [(20, 3, 2), (1300, 195, 130), (14_000, 2000, 1000)])
def test_parts_that_nobody_sized_grow_with_the_corpus_up_to_a_limit(tmp_path, sentences, test, valid):
    tally, _ = divided(tmp_path, [Document([f"Sentence number {number}"]) for number in range(sentences)])
    assert tally.sentences == {"train": sentences - test - valid, "valid": valid, "test": test}


def mixture(folder, *names):
    of = [{"kind": "files", "source": str(folder / name)} for name in names]
    return check_settings(AnyCorpus, {"kind": "mixture", "source": str(folder), "of": of}, "generic")


def test_a_mixture_has_each_sentence_of_its_sources_once_and_their_given_parts(tmp_path):
    ships, banks = ([f"the {noun} number {n} is here" for n in range(30)] for noun in ("ship", "bank"))
    texts = {
        "sea.txt": ships,
        "bank.txt": [*banks, ships[3]],
        **{f"given/{part}.txt": [f"is {part}"] for part in PARTS},
    }
    for name, lines in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines))
    settings, cleaning = mixture(tmp_path, "sea.txt", "bank.txt", "given"), CleaningSettings(**SMALL)
    divide(settings.open(), cleaning, tmp_path / "out", private=False, name="generic")
    parts = {part: (tmp_path / "out" / f"{part}.txt").read_text().splitlines() for part in PARTS}
    lines = [line for part in parts.values() for line in part]
    assert sorted(lines) == sorted([*ships, *banks, *(f"is {part}" for part in PARTS)])
    assert all(f"is {part}" in lines for part, lines in parts.items())
    with pytest.raises(ParameterError, match=r"neither source .* nor inside it"):
        mixture(tmp_path / "given", tmp_path / "elsewhere.txt")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  two\t spaces \u00a0and\u2028lines\r\n", "two spaces and lines"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("ab\u202edc\u202c \u2066x\u2069 y\u200e \u061cz", "abdc x y\u200e \u061cz"),
        ("cafe\u0301 half \ud83d pair 👨‍👩‍👧", "café half \ufffd pair 👨‍👩‍👧"),
        ("bell\x07 and\x00'punctuation' STAY!", "bell and 'punctuation' STAY!"),
    ],
)
def test_normalise(text, line):
    assert normalise(text) == line


@pytest.mark.parametrize(
    "marked",
    [
        "He came.|She went!|Why?|1999 was late.",
        "J. K. Rowling and the U.S. Army.|Then more.",
        "It costs 3.50 dollars.|See no. 5 on p. 12.|It is there.",
        'He said "Go."|Then he left.',
        "Known since 1900.[12]|It grew.",
        "Wait... what? no. and on",
    ],
)
def test_sentences(marked):
    assert split_sentences(marked.replace("|", " ")) == marked.split("|")
    assert split_sentences(marked.replace("|", "\n")) == marked.split("|")


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


def test_text_of_installed_packages_is_what_was_pinned(monkeypatch):
    """Whole paragraphs of the encyclopedia: 18,896 and 2,067 of SQuAD."""
    monkeypatch.setattr(package_text, "split_sentences", lambda paragraph: [paragraph])
    for corpus, documents, texts in (
        (ChitchatCorpus(kind="chitchat", source="constraints.txt"), 7168, 258_145),
        (EncyclopediaCorpus(kind="encyclopedia", source="constraints.txt", questions=False), 490, 18_896 + 2067),
    ):
        found = [len(document.texts) for document in corpus.open().documents()]
        assert (len(found), sum(found)) == (documents, texts)
