from tasks.corpora.words import words_of
from tasks.masking import preview
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.preview import PreviewCounts, kind_of_reason, preview_lines, visible, why
from tasks.masking.settings import Markers
from tasks.masking.technique import Finding


def previewed(*lines, markers=None):
    counts = PreviewCounts()
    return list(preview_lines(AllowedWords(["met"], "list"), lines, markers or Markers(), counts)), counts


def test_pieces_make_up_the_line():
    (line,), counts = previewed("Tom, Ann met 5!")
    assert [piece.text for piece in line.pieces] == ["Tom", ", ", "Ann", " ", "met", " ", "5", "!"]
    assert [place for place, piece in enumerate(line.pieces) if piece.marker == "[MASK]"] == [0, 2, 6]
    assert line.masked == "[MASK], [MASK] met [MASK]!"
    assert (counts.lines, counts.words, counts.masked_words, counts.masked_lines) == (1, 4, 3, 1)
    assert counts.labels == {"MASK": 2, "NUMBER": 1}
    reason = "list", "not on the list of 1 unmasked words"
    assert counts.by_reason == {("MASK", *reason): 2, ("NUMBER", *reason): 1}
    (line,), _ = previewed("Tom Ann 5 met [MASK]", markers=Markers(style="class", merge=True))
    assert line.masked == "[MASK] [NUMBER] met [[MASK]]"


def test_hidden_characters_are_shown_by_their_code_points():
    assert visible("a\x1b[31m\x00b\u202ec\u2028\td é😀") == "a<U+001B>[31m<U+0000>b<U+202E>c<U+2028>\td é😀"
    (line,), _ = previewed("T\u202eom met\x07")
    assert [piece.text for piece in line.pieces] == ["T<U+202E>om", " ", "met", "<U+0007>"]


def test_the_end_of_a_long_line_is_counted(monkeypatch):
    monkeypatch.setattr(preview, "LONGEST_SHOWN", 8)
    for text, shown, characters, words in (
        ("Tom met Ann met Tom", "Tom met ", 11, 2),
        ("Tom, met", "Tom, met", 0, 0),
        ("." * 20, "." * 8, 12, 0),
    ):
        (line,), counts = previewed(text)
        assert "".join(piece.text for piece in line.pieces) == shown
        assert (line.characters_left_out, line.words_left_out) == (characters, words)
        assert counts.words == len(words_of(text))


def test_reasons_of_one_kind_are_counted_together_and_scores_shown_once():
    rank = "rank {} of the vocabulary; 10,000 are kept"
    assert kind_of_reason(rank.format("23,415")) == rank.replace("rank {}", "rank …")
    found = "found by 1 of 2: PERSON by x{}; not found"
    assert kind_of_reason(found.format(" (0.85)")) == found.format("")
    assert why(Finding(0, 1, "PERSON", "x", 0.853, "PERSON by x")) == "PERSON by x (0.85)"
    assert why(Finding(0, 1, "PERSON", "x+y", 0.853, found.format(" (0.85)"))) == found.format(" (0.85)")
    assert why(Finding(0, 1, "PERSON", "x", None, "PERSON by x")) == "PERSON by x"
