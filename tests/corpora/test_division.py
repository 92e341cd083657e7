import pytest

from tasks.corpora.division import divide
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.document import PARTS, Document, Source
from tasks.errors import CorpusError

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


def test_the_document_of_each_training_line_is_written(tmp_path):
    mails = [(f"Mail {number} of thread {number % 7} is here", f"thread {number % 7}") for number in range(60)]
    named = [Document([text], name=name) for text, name in mails]
    folder = tmp_path / "private"
    _, parts = divided(folder, [*named, *conversations(30)], private=True, **SMALL)
    documents = (folder / "train.documents").read_text().splitlines()
    numbers = {}
    for line, document in zip(parts["train"], documents, strict=True):
        numbers.setdefault(line.split(" of ")[1], set()).add(document)
    assert all(len(found) == 1 for found in numbers.values())
    assert len(set.union(*numbers.values())) == len(numbers) > 20
    threads = [{line.split(" of ")[1] for line in part if line.startswith("Mail")} for part in parts.values()]
    assert sum(map(len, threads)) == len(set.union(*threads)) == 7
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_no_sentence_of_valid_or_test_is_in_train_however_it_is_written(tmp_path):
    documents = [Document([f"Talk {number} is here", "see YOU, tomorrow", "See you tomorrow!"]) for number in range(30)]
    tally, parts = divided(tmp_path, documents, valid_sentences=5, test_sentences=5)
    assert sum(line.lower().startswith("see you") for lines in parts.values() for line in lines) == 1
    assert tally.left_out["duplicate"] == 59


def test_labels_stay_with_their_lines(tmp_path):
    """Though lines are shuffled into parts, repeated or too short ones left out."""
    texts = ([f"Sentence number {number}", "No", "again and again"] for number in range(40))
    documents = [Document(text, label=f"l{number}") for number, text in enumerate(texts)]
    _, parts = divided(tmp_path, documents, private=True, minimum_words=2)
    labels = (tmp_path / "train.labels").read_text().splitlines()
    pairs = zip(parts["train"], labels, strict=True)
    numbered = [(f"l{line.split()[-1]}", label) for line, label in pairs if line != "again and again"]
    assert len(numbered) > 20
    assert [line for line, _ in numbered] == [label for _, label in numbered]
    assert (tmp_path / "train.labels").stat().st_mode & 0o777 == 0o600


def test_every_text_left_out_is_counted_by_its_reason(tmp_path):
    """Also what a reader leaves out, at the end of the source too."""
    odd = Document(["", " \t", "word", "Sentence 1 of talk 1", "a " * 50], left_out={"bot": 3})
    documents = [*conversations(20), odd, Document([], left_out={"bot": 2})]
    limits = {"minimum_words": 2, "maximum_words": 40, "valid_sentences": 5, "test_sentences": 5}
    tally, _ = divided(tmp_path, documents, **limits)
    assert tally.left_out == {"empty": 2, "too_short": 1, "too_long": 1, "duplicate": 1, "beyond_limit": 0, "bot": 5}
    assert (tally.texts, tally.documents) == (110, 21)
    assert sum(tally.sentences.values()) + sum(tally.left_out.values()) == tally.texts


def test_parts_that_the_source_brings_stay_and_test_comes_first(tmp_path):
    shared = {part: Document(["a shared sentence", f"only in {part}"], part) for part in PARTS}
    assert divided(tmp_path, shared.values())[1] == {
        "train": ["only in train"], "valid": ["only in valid"], "test": ["a shared sentence", "only in test"],
    }  # fmt: skip


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


@pytest.mark.parametrize(("sentences", "test", "valid"), [(20, 3, 2), (1300, 195, 130), (20000, 2000, 1000)])
def test_parts_that_nobody_sized_grow_with_the_corpus_up_to_a_limit(tmp_path, sentences, test, valid):
    tally, _ = divided(tmp_path, [Document([f"Sentence number {number}"]) for number in range(sentences)])
    assert tally.sentences == {"train": sentences - test - valid, "valid": valid, "test": test}
