"""Blending counts of a text with published word frequencies."""

from tasks.cli import main
from tasks.corpora.sources.published_frequencies import blend_counts, published_frequencies

COUNTS = {"the": 6, "Nice": 3, "nice": 1}


def test_at_half_the_published_words_weigh_as_much_as_the_text():
    blended = blend_counts(COUNTS, {"the": 0.1, "yeah": 0.5, "nice": 0.4}, 0.5)
    # ten words counted: the published list stands for ten more, 1 "the", 5 "yeah", 4 "nice", of which one is small
    assert blended == {"the": 7, "Nice": 6, "nice": 2, "yeah": 5}


def test_share_nothing_and_share_all():
    frequencies = {"the": 0.5, "yeah": 0.5}
    assert blend_counts(COUNTS, frequencies, 0.0) == COUNTS
    assert blend_counts(COUNTS, frequencies, 1.0) == {"the": 5, "yeah": 5}


def test_words_that_round_to_nothing_are_left_out():
    assert "rare" not in blend_counts(COUNTS, {"rare": 0.01}, 0.5)


def test_the_published_list_is_conversational_and_has_no_numbers():
    frequencies = published_frequencies()
    assert frequencies["the"] > frequencies["yeah"] > frequencies["encyclopedia"] > 0
    assert not any(character.isdigit() for word in frequencies for character in word)


def test_of_several_languages_each_has_its_part():
    english, both = published_frequencies(), published_frequencies(["en", "es"])
    spanish = published_frequencies(["es"])
    assert both["the"] == english["the"] / 2 + spanish["the"] / 2
    assert both["después"] == english.get("después", 0.0) / 2 + spanish["después"] / 2
    assert both["después"] > 100 * english.get("después", 0.0)


def test_a_language_without_published_frequencies_is_refused(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("one line\n", encoding="utf-8")
    files = ["--input", str(tmp_path / "text.txt"), "--output", str(tmp_path / "counts.tsv")]
    assert main(["count-words", *files, "--set", "published_languages=[en, cy]"]) == 1
    assert "cy: no published frequencies; give some of ar, " in capsys.readouterr().err
