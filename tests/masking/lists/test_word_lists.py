"""Lists of words that are never masked: the one that ships, the user's, and the most frequent ones of a vocabulary."""

import pytest
import wordfreq
from hypothesis import given
from hypothesis import strategies as st
from restoring import restored

from tasks.corpora.word_list import read_word_list
from tasks.corpora.words import fold, words_of
from tasks.made_up.made_up import all_values
from tasks.masking.lists import allowed_words
from tasks.masking.lists.allow_list import SHIPPED_LIST, AllowList
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.lists.vocabulary_threshold import VocabularyThreshold
from tasks.masking.technique import MaskingTally, Technique

NAMES = """Smith Johnson Brown Lee White Young King Hill Green Baker Hall Cook Bell Price Stone Fox Knight Rice Page
Cross London Paris Chicago Boston Phoenix Buffalo Mobile Reading Bath Nice Split America England Turkey Jordan Chad
Texas Google Amazon Apple Shell Target Orange Delta five twelve hundred million 1 1990 5pm Monday Sunday January March
August Christmas""".split()
"""People, places, companies, numbers and dates."""


def test_the_shipped_list_holds_common_words_and_no_names():
    kept = read_word_list(SHIPPED_LIST).words
    given = [name for is_female in (True, False) for name in all_values().first["en_US", is_female].values]
    # A city, but an everyday word first.
    assert set(map(fold, [*given, *NAMES])) & kept == {"nice"}
    assert 4800 <= len(kept) <= 5200
    text = "I don't know what you'd like to do, but we can't stay here; they're going to close the door soon."
    assert not [word for word in words_of(text) if fold(word) not in kept]
    lines = SHIPPED_LIST.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))
    assert all(fold(line) == line and words_of(line) == [line] for line in lines)
    assert not [line for line in lines if any(character.isdigit() for character in line)]


def test_a_list_of_ones_own_and_its_lines_that_are_not_one_word(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes("\ufeffThe\r\n\r\n  cat \nCAT\nit’s\nNew York\nwell-known\nTom's\n...\n".encode())
    technique = AllowList(kind="allow_list", path=str(path)).build(None, 1)
    assert technique.allowed_words == {"the", "cat", "it's"}
    (announcement,) = technique.announcements()
    assert announcement.endswith("4 lines are not one word each and keep nothing (line 6, 7, 8, 9)")


LIST = "the a we is it's don't walk cat like dog café may based"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        # Each form must itself be on the list.
        ("walk walks walked walking cats", "walk [MASK] [MASK] [MASK] [MASK]"),
        # Contractions are words; possessive endings neither save nor lose a word.
        ("it’s IT'S don't won't The", "it’s IT'S don't [MASK] The"),
        ("the cat's, Tom's and Tom’s", "the cat's, [MASK]'s [MASK] [MASK]’s"),
        # Each part of a hyphened word is looked up by itself.
        ("Chicago-based cat-like cat/dog", "[MASK]-based cat-like cat/dog"),
        # A word with a digit is masked, its signs stay.
        ("5 $5 1,000.50 5pm cat5 10%", "[MASK] $[MASK] [MASK] [MASK] [MASK] [MASK]%"),
        # Addresses are masked whole, also where each of their words is kept.
        ("cat@dog.com http://the.cat/dog cat.com @cat #dog", "[MASK] [MASK] [MASK] [MASK] [MASK]"),
        # NFKC and format characters make no difference, accents do.
        ("ｃａｔ ca\u00adt cafe\u0301 café cafe", "ｃａｔ ca\u00adt cafe\u0301 café [MASK]"),
        ("кот 猫 γάτα", "[MASK] [MASK] [MASK]"),
        # Emoji, symbols and punctuation are no words.
        ("😀 the cat 👩‍👩‍👧 — … € !", "😀 the cat 👩‍👩‍👧 — … € !"),
        # Control characters divide words, direction marks do not hide them.
        ("the\x00cat the\x07Tom \u202ecat\u202c", "the\x00cat the\x07[MASK] \u202ecat\u202c"),
        ("[MASK] is a [PERSON]", "[[MASK]] is a [[MASK]]"),
    ],
)
def test_what_a_list_masks_and_keeps(line, masked):
    technique = AllowedWords(LIST.split(), "allow_list")
    ((text, spans),) = technique.mask([line], "mask", MaskingTally(), with_spans=True)
    assert text == masked
    assert len(spans) == masked.count("[MASK]")


ALLOWED = ["The", "cat", "it's", "a", "is", "don’t", "person"]
TEXT = st.text(alphabet="aAtThe catis.,'\"()[]\\MASK5@:/-\t\u00a0é😀", max_size=50) | st.text(max_size=30)


@given(
    st.lists(TEXT.map(lambda text: text.replace("\n", " ")), max_size=5),
    st.sampled_from(["mask", "class"]),
    st.booleans(),
    st.sampled_from([{}, {"_MOST_WRITTEN": 3, "_MOST_JUDGED": 5}]),
)
def test_the_remembered_way_is_the_plain_way_and_the_sidecar_restores_the_text(lines, style, merge, most_remembered):
    """Also where the memory is small and forgets."""
    technique = AllowedWords(ALLOWED, "list")
    fast_tally, plain_tally, unmerged_tally = MaskingTally(), MaskingTally(), MaskingTally()
    with pytest.MonkeyPatch.context() as patch:
        for name, most in most_remembered.items():
            patch.setattr(allowed_words, name, most)
        fast = list(technique.mask(lines, style, fast_tally, with_spans=True, merge=merge))
    assert fast == list(Technique.mask(technique, lines, style, plain_tally, with_spans=True, merge=merge))
    unmerged = list(technique.mask(lines, style, unmerged_tally, with_spans=True))
    assert fast_tally == plain_tally == unmerged_tally
    for line, (text, spans), (_, alone) in zip(lines, fast, unmerged, strict=True):
        assert [span.original for span in spans] == [span.original for span in alone]
        assert restored(line, text, spans) == line


def threshold(allowed_words, **more):
    return VocabularyThreshold(kind="vocabulary_threshold", allowed_words=allowed_words, **more)


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.tsv"
    path.write_text("of\t5\nthe\t4\nThe\t3\nzebra\t1\nant\t1\nAnt\t1\nbee\t1\n")
    return str(path)


def test_most_frequent_folded_words_stay_unmasked_and_reasons_say_the_rank(counts, tmp_path):
    for number, words in ((1, "the"), (2, "the of"), (4, "the of ant bee")):
        assert threshold(number).build(counts, 1).allowed_words == set(words.split())
    ((_, words),) = threshold(2).build(counts, 1).explain(["The bee, Tom"])
    assert [word.reason for word in words] == [
        "rank 1 of the vocabulary; the first 2 stay unmasked",
        "rank 4 of the vocabulary; the first 2 stay unmasked",
        "not in the vocabulary of 5 words",
    ]
    # A vocabulary of the user's, in order, goes before word counts.
    path = tmp_path / "words.txt"
    path.write_text("\ufeffThe\nof\nthe\n\nbee\n", encoding="utf-8")
    assert threshold(3, path=str(path)).build(counts, 1).allowed_words == {"the", "of", "bee"}


def test_without_a_file_the_published_frequencies_are_taken(monkeypatch):
    small = wordfreq.get_frequency_dict("en", "small")
    monkeypatch.setattr(wordfreq, "get_frequency_dict", lambda language, wordlist: small)
    technique = threshold(100, vocabulary_size=20_000).build(None, 1)
    assert {"the", "of", "and", "you"} <= technique.allowed_words
    assert len(technique.allowed_words) == 100
