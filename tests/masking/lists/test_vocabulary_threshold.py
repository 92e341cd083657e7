import pytest

from tasks.errors import ParameterError
from tasks.masking.lists.vocabulary_threshold import VocabularyThreshold
from tasks.settings.checks import check_settings


def settings(allowed_words, **more):
    return VocabularyThreshold(kind="vocabulary_threshold", allowed_words=allowed_words, **more)


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.tsv"
    path.write_text("of\t5\nthe\t4\nThe\t3\nzebra\t1\nant\t1\nAnt\t1\nbee\t1\n")
    return str(path)


def test_most_frequent_folded_words_stay_unmasked_and_reasons_say_the_rank(counts, tmp_path):
    for number, words in ((1, "the"), (2, "the of"), (4, "the of ant bee")):
        assert settings(number).build(counts, 1).allowed_words == set(words.split())
    ((_, words),) = settings(2).build(counts, 1).explain(["The bee, Tom"])
    assert [word.reason for word in words] == [
        "rank 1 of the vocabulary; the first 2 stay unmasked",
        "rank 4 of the vocabulary; the first 2 stay unmasked",
        "not in the vocabulary of 5 words",
    ]
    # A vocabulary of the user's, in order, goes before word counts.
    path = tmp_path / "words.txt"
    path.write_text("\ufeffThe\nof\nthe\n\nbee\n", encoding="utf-8")
    assert settings(3, path=str(path)).build(counts, 1).allowed_words == {"the", "of", "bee"}


def test_without_a_file_the_published_frequencies_are_taken():
    technique = settings(100, vocabulary_size=20_000).build(None, 1)
    assert {"the", "of", "and", "you"} <= technique.allowed_words
    assert len(technique.allowed_words) == 100


def test_more_words_than_there_are(counts):
    with pytest.raises(ParameterError, match="allowed_words: 6 is more than the 5 words of the vocabulary"):
        settings(6).build(counts, 1)
    values = {"kind": "vocabulary_threshold", "allowed_words": 6, "vocabulary_size": 5}
    with pytest.raises(ParameterError, match="options: allowed_words 6 is more than vocabulary_size 5"):
        check_settings(VocabularyThreshold, values, "options")
