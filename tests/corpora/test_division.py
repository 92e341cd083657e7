import pytest

from tasks.corpora.division import divide
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.document import Document
from tasks.errors import CorpusError


class Documents:
    def __init__(self, *documents):
        self.files = []
        self._documents = list(documents)
        self.parts = {document.part for document in documents}

    def documents(self, part=None):
        return (document for document in self._documents if document.part == part)


def conversations(count, sentences=5):
    return [Document([f"Sentence {number} of talk {talk}" for number in range(sentences)]) for talk in range(count)]


def read(folder):
    return {part: (folder / f"{part}.txt").read_text().splitlines() for part in ("train", "valid", "test")}


SMALL = CleaningSettings(valid_sentences=12, test_sentences=20, seed=3)


def test_sizes_are_exact_and_documents_stay_whole(tmp_path):
    tally = divide(Documents(*conversations(40)), SMALL, tmp_path, private=False, name="talks")
    parts = read(tmp_path)
    assert {part: len(lines) for part, lines in parts.items()} == tally.sentences
    assert (tally.sentences["valid"], tally.sentences["test"]) == (12, 20)
    talks = {part: {line.split()[-1] for line in lines} for part, lines in parts.items()}
    assert not talks["train"] & talks["valid"]
    assert not talks["train"] & talks["test"]
    assert not talks["valid"] & talks["test"]
    # 20 test sentences are four talks; 12 valid ones are two and a part of a third, whose rest is left out.
    assert tally.part_documents == {"train": 33, "valid": 3, "test": 4}
    assert tally.left_out["beyond_limit"] == 3
    assert sum(tally.sentences.values()) + sum(tally.left_out.values()) == tally.texts == 200


def test_the_document_of_each_training_line_is_written(tmp_path):
    named = [
        Document([f"Mail {number} of thread {number % 7} is here"], name=f"thread {number % 7}") for number in range(60)
    ]
    folder = tmp_path / "private"
    divide(Documents(*named, *conversations(30)), SMALL, folder, private=True, name="talks")
    lines = read(folder)["train"]
    documents = (folder / "train.documents").read_text().splitlines()
    assert len(lines) == len(documents)
    numbers = {}
    for line, document in zip(lines, documents, strict=True):
        numbers.setdefault(line.split(" of ")[1], set()).add(document)
    assert all(len(found) == 1 for found in numbers.values())
    assert len(set.union(*numbers.values())) == len(numbers) > 20
    threads = [{line.split(" of ")[1] for line in part if line.startswith("Mail")} for part in read(folder).values()]
    assert sum(map(len, threads)) == len(set.union(*threads)) == 7
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_same_seed_same_bytes_and_another_seed_another_division(tmp_path):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        settings = SMALL.model_copy(update={"seed": seed})
        divide(Documents(*conversations(40)), settings, tmp_path / folder, private=False, name="talks")
    assert read(tmp_path / "a") == read(tmp_path / "b")
    assert read(tmp_path / "a") != read(tmp_path / "c")


def test_no_sentence_of_valid_or_test_is_in_train_however_it_is_written(tmp_path):
    documents = [Document([f"Talk {number} is here", "see YOU, tomorrow", "See you tomorrow!"]) for number in range(30)]
    settings = CleaningSettings(valid_sentences=5, test_sentences=5)
    tally = divide(Documents(*documents), settings, tmp_path, private=False, name="talks")
    lines = [line for part in read(tmp_path).values() for line in part]
    assert sum(line.lower().startswith("see you") for line in lines) == 1
    assert tally.left_out["duplicate"] == 59


def test_every_text_left_out_is_counted_by_its_reason(tmp_path):
    documents = [*conversations(20), Document(["", " \t", "word", "Sentence 1 of talk 1", "a " * 50])]
    settings = CleaningSettings(minimum_words=2, maximum_words=40, valid_sentences=5, test_sentences=5)
    tally = divide(Documents(*documents), settings, tmp_path, private=False, name="talks")
    assert tally.left_out == {"empty": 2, "too_short": 1, "too_long": 1, "duplicate": 1, "beyond_limit": 0}
    assert tally.texts == 105


def test_parts_that_the_source_brings_are_kept_and_test_comes_first(tmp_path):
    documents = [
        Document(["a shared sentence", "only in train"], "train"),
        Document(["a shared sentence", "only in valid"], "valid"),
        Document(["A shared sentence.", "only in test"], "test"),
    ]
    divide(Documents(*documents), CleaningSettings(), tmp_path, private=False, name="x")
    assert read(tmp_path) == {
        "train": ["only in train"],
        "valid": ["only in valid"],
        "test": ["A shared sentence.", "only in test"],
    }


def test_a_missing_part_is_taken_from_train(tmp_path):
    documents = [Document([f"Line {number} of train"], "train") for number in range(30)]
    documents += [Document([f"Line {number} of test"], "test") for number in range(7)]
    tally = divide(Documents(*documents), CleaningSettings(valid_sentences=4), tmp_path, private=False, name="x")
    assert tally.sentences == {"train": 26, "valid": 4, "test": 7}


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "no sentence is left after cleaning"),
        ([Document(["", " "])], "no sentence is left after cleaning"),
        (conversations(3), "15 different sentences are too few"),
        (conversations(1, sentences=500), "too few"),
    ],
)
def test_too_little_text_is_an_error(tmp_path, documents, message):
    with pytest.raises(CorpusError, match=message):
        divide(Documents(*documents), SMALL, tmp_path, private=False, name="talks")
    assert not list(tmp_path.iterdir())


def test_what_a_reader_leaves_out_is_counted_among_the_texts(tmp_path):
    documents = [
        *conversations(40),
        Document(["One more sentence"], left_out={"bot": 3}),
        Document([], left_out={"bot": 2}),
    ]
    tally = divide(Documents(*documents), SMALL, tmp_path, private=False, name="talks")
    assert tally.left_out["bot"] == 5
    assert (tally.texts, tally.documents) == (206, 41)
    assert sum(tally.sentences.values()) + sum(tally.left_out.values()) == tally.texts


def test_given_parts_stay_and_train_is_drawn_by_the_seed(tmp_path):
    documents = [Document([f"Line {number} of train"], "train") for number in range(100)]
    documents += [Document([f"Line {number} of {part}"], part) for part in ("valid", "test") for number in range(7)]
    found = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        settings = CleaningSettings(train_sentences=30, valid_sentences=2, test_sentences=2, seed=seed)
        tally = divide(Documents(*documents), settings, tmp_path / name, private=False, name="x")
        assert tally.sentences == {"train": 30, "valid": 7, "test": 7}
        found[name] = read(tmp_path / name)
    assert found["a"] == found["b"]
    assert found["a"]["train"] != found["c"]["train"]
    assert found["a"]["test"] == [f"Line {number} of test" for number in range(7)]
    numbers = [int(line.split()[1]) for line in found["a"]["train"]]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("sentences", "test", "valid"), [(20, 3, 2), (300, 45, 30), (1300, 195, 130), (20000, 2000, 1000)]
)
def test_parts_that_nobody_sized_grow_with_the_corpus_up_to_a_limit(tmp_path, sentences, test, valid):
    lines = [Document([f"Sentence number {number}"]) for number in range(sentences)]

    tally = divide(Documents(*lines), CleaningSettings(), tmp_path, private=False, name="x")

    assert tally.sentences == {"train": sentences - test - valid, "valid": valid, "test": test}
    assert not any(tally.left_out.values())


def test_labels_stay_with_their_lines(tmp_path):
    """Though lines are shuffled into parts, repeated or too short ones left out."""
    lines = [
        Document([f"Sentence number {number}", "No", "again and again"], label=f"l{number}") for number in range(40)
    ]
    source = Documents(*lines)
    source.labelled = True

    divide(source, CleaningSettings(minimum_words=2), tmp_path, private=True, name="x")

    train, labels = ((tmp_path / f"train.{end}").read_text().splitlines() for end in ("txt", "labels"))
    numbered = [(line, label) for line, label in zip(train, labels, strict=True) if line != "again and again"]
    assert len(numbered) > 20
    assert all(f"l{line.split()[-1]}" == label for line, label in numbered)
    assert (tmp_path / "train.labels").stat().st_mode & 0o777 == 0o600
