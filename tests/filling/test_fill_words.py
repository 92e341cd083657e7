"""What is written in the place of a marker: a word where a word stood, a figure where the text asks for one."""

from tasks.filling.fill_words import wanted
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.unigram import UnigramFiller


def test_what_is_wanted():
    for line, want in [
        ("he is [MASK] years old", "word"),
        ("it costs $[MASK] now", "figure"),
        ("up by [MASK]%", "figure"),
        ("at [MASK]:30", "figure"),
        ("at 5:[MASK]", "figure"),
        ("at [MASK] pm", "figure"),
        ("he [MASK] pmi", "word"),
        ("the [MASK]-[MASK]", "word"),
        ("it is 5 [MASK]", "word"),
        ("in [DATE]", "either"),
        ("see [PERSON]", "word"),
    ]:
        assert wanted(read_masked_line(line, 1, merge_markers=True), 0) == want


def test_a_draw_by_frequency_writes_what_is_wanted():
    counts = {"dog": 50, "1996": 90, "51,739": 90, "5pm": 90, "shit": 99, "武家": 99}
    frequencies = WordFrequencies.of([*counts.items(), *((f"{number}pm", 1) for number in range(10, 20))])
    filler = UnigramFiller({None: frequencies}, MarkerRandomness(1))
    found = [set() for _ in range(3)]
    for number in range(1, 100):
        sentence = read_masked_line("the [MASK] for $[MASK] in [DATE]", number, merge_markers=True)
        (fills,) = filler.fill([sentence], lambda _: None)
        for words, fill in zip(found, fills, strict=True):
            words.add(fill.word)
    assert found[:2] == [{"dog"}, {"1996", "51,739"}]
    assert found[2] >= {"dog", "1996", "51,739", "5pm"}
    assert found[2] & {"shit", "武家"} == set()
