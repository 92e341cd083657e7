"""Blending counts of a text with published word frequencies."""

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
