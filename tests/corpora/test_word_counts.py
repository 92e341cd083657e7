from tasks.cli import main
from tasks.corpora.word_counts import count_lines, read_word_counts, write_word_counts
from tasks.corpora.words import words_of


def test_counts_are_cased_and_in_order(tmp_path):
    (tmp_path / "text.txt").write_text("The cat, the dog.\nthe cat's Dog!\n\n")
    assert main(["count-words", "--input", str(tmp_path / "text.txt"), "--output", str(tmp_path / "counts.tsv")]) == 0
    assert (tmp_path / "counts.tsv").read_text() == "cat\t2\nthe\t2\nDog\t1\nThe\t1\ndog\t1\n"
    assert dict(read_word_counts(tmp_path / "counts.tsv")) == {"the": 2, "cat": 2, "Dog": 1, "The": 1, "dog": 1}


def test_counting_by_stretches_is_counting_by_words():
    lines = ["Tom's well-known a@b.com, x", "\u00a0and\tTom\x00Tom 'tis", "हिन्दी (U.S.) 1,000"] * 3
    counts = count_lines(lines)
    assert sum(counts.values()) == sum(len(words_of(line)) for line in lines)
    assert counts["Tom"] == 9


def test_no_word_at_all(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("...\n\n")
    write_word_counts(tmp_path / "counts.tsv", {"old": 1})
    assert main(["count-words", "--input", str(tmp_path / "text.txt"), "--output", str(tmp_path / "counts.tsv")]) == 1
    assert "holds no word" in capsys.readouterr().err
    assert (tmp_path / "counts.tsv").read_text() == "old\t1\n"
