import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import scripted
from tiny_masked_models import random_bert, word_piece_tokenizer

from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import Frame, MaskedLanguageModel
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.top_k import TopK

WORD_PIECES = word_piece_tokenizer()
METHODS = [Top1(kind="top_1"), TopK(kind="top_k", k=4), Sample(kind="sample", temperature=0.7)]


def fills(model, lines, settings, *, candidates=None, kept=(), batch_sentences=64, seed=1):
    candidates = candidates or candidate_words(WORD_PIECES, name="tiny")
    off_list = {None: AllowedWords(kept).off_list(candidates.words)}
    filler = MaskedFiller(
        model, candidates, settings.choose, off_list, MarkerRandomness(seed), batch_sentences=batch_sentences
    )
    sentences = [read_masked_line(line, number, merge_markers=False) for number, line in enumerate(lines, start=1)]
    advanced = []
    filled = filler.fill(sentences, advanced.append)
    assert sum(advanced) == sum(map(len, filled))
    return filled


def words_of(model, line, **options):
    """Top-1 of a scripted model."""
    (filled,) = fills(model, [line], Top1(kind="top_1"), candidates=model.candidates(), **options)
    return [fill.word for fill in filled]


def capitals(words, position):
    """The place of the country would have France; behind Rome it must be Italy. That of the capital would have Rome."""
    left = words[:position]
    if "of" in left:
        return {"Italy": 0.9} if "Rome" in left else {"France": 0.7, "Italy": 0.2}
    return {"Paris": 0.9} if "France" in words else {"Rome": 0.6, "Paris": 0.3}


def test_a_slot_sees_the_fills_before_it():
    model = scripted("capital of Rome Paris Italy France", capitals)
    assert words_of(model, "[MASK] capital of [MASK]") == ["Rome", "Italy"]
    assert model.asked == [(["_", "capital", "of", "_"], [0]), (["Rome", "capital", "of", "_"], [3])]


WORDS = ("the", "cat", "sat", "on", "red", "mat", "tom", "[MASK]", "[MASK],", "'s")
LINES = [" ".join(WORDS[(i * j * j + i + j) % len(WORDS)] for j in range(2 + i % 9)) for i in range(60)]


@pytest.mark.parametrize("settings", METHODS, ids=lambda settings: settings.kind)
def test_the_batch_size_and_the_lines_beside_it_change_no_fill(settings):
    model = MaskedLanguageModel(random_bert(WORD_PIECES), WORD_PIECES, "tiny").prepared()
    results = [fills(model, LINES, settings, kept=["the"], batch_sentences=size) for size in (1, 7, 64)]
    assert results[0] == results[1] == results[2]
    alone = [fills(model, [""] * number + [LINES[number]], settings, kept=["the"])[-1] for number in (11, 34, 59)]
    assert alone == [results[0][number] for number in (11, 34, 59)]
    assert len({fill.word for filled in results[0] for fill in filled}) > 1


@given(st.lists(st.booleans(), min_size=1, max_size=400), st.integers(1, 60), st.integers(0, 2), st.integers(0, 2))
def test_windows_show_every_marker_once_with_text_on_either_side(markers, room, before, behind):
    pieces = [-index - 1 if marker else index + 1 for index, marker in enumerate(markers)]
    positions = [index for index, marker in enumerate(markers) if marker]
    if not positions:
        return
    frame = Frame([0] * before, [0] * behind, room)
    windows = frame.windows(pieces, positions)
    shown = [window.pieces[position] for window in windows for position in window.positions]
    assert shown == [pieces[position] for position in positions]
    for window in windows:
        assert len(window.pieces) == before + min(room, len(pieces)) + behind
        inside = window.pieces[before : len(window.pieces) - behind]
        start = pieces.index(inside[0])
        assert inside == pieces[start : start + room]
        for position in window.positions:
            left = position - before
            assert left >= min(room // 8 - 1, start + left)
            assert len(inside) - left >= min(room // 8, len(pieces) - start - left)
    if len(pieces) <= room:
        assert len(windows) == 1
