"""Counts of a text's words, and their blending with published word frequencies."""

from tasks.cli import main
from tasks.corpora.sources.published_frequencies import blend_counts, published_frequencies

COUNTS = {"the": 6, "Nice": 3, "nice": 1}


def test_counts_are_cased_and_in_order_and_a_refusal_leaves_them(tmp_path, capsys):
    text, counts = tmp_path / "text.txt", tmp_path / "counts.tsv"
    command = ["count-words", "--input", str(text), "--output", str(counts)]
    text.write_text("The cat, the dog.\nthe cat's Dog!\n\n")
    assert main(command) == 0
    assert counts.read_text() == "cat\t2\nthe\t2\nDog\t1\nThe\t1\ndog\t1\n"
    capsys.readouterr()
    assert main([*command, "--set", "published_languages=[en, cy]"]) == 1
    assert "cy: no published frequencies; give some of ar, " in capsys.readouterr().err
    assert counts.read_text().startswith("cat\t2")


def test_published_words_weigh_their_share():
    # Ten words are counted: at one half the list is ten more, 1 "the", 5 "yeah", 4 "nice", of which one is small.
    blended = blend_counts(COUNTS, {"the": 0.1, "yeah": 0.5, "nice": 0.4}, 0.5)
    assert blended == {"the": 7, "Nice": 6, "nice": 2, "yeah": 5}
    assert blend_counts(COUNTS, {"the": 0.5, "yeah": 0.5}, 0.0) == COUNTS
    assert blend_counts(COUNTS, {"the": 0.5, "yeah": 0.5}, 1.0) == {"the": 5, "yeah": 5}
    assert "rare" not in blend_counts(COUNTS, {"rare": 0.01}, 0.5)


def test_of_several_languages_each_has_its_part_of_the_published_list():
    icelandic, latvian, both = map(published_frequencies, (["is"], ["lv"], ["is", "lv"]))
    for word in ("og", "un"):
        assert both[word] == icelandic.get(word, 0.0) / 2 + latvian.get(word, 0.0) / 2
    assert both["og"] > 100 * latvian.get("og", 0.0)
    assert not any(character.isdigit() for word in both for character in word)
