"""The article in front of a fill, and the fill that is one."""

from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.choice import ForbiddenOriginals
from tasks.filling.filled_corpus import CorpusFiller, Shard
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.masked_sentence import Casing, Fill


class Scripted:
    """Writes given words, one after the other."""

    forward_seconds = None
    candidate_count = 1

    def __init__(self, words):
        self._words = iter(words)

    def fill(self, sentences, advance):
        return [[Fill(next(self._words)) for _ in sentence.slots] for sentence in sentences]


def filled(line, *words, forbidden=None):
    """The line with these words; ``forbidden``: the original of its first marker, where originals are."""
    originals = ForbiddenOriginals() if forbidden else None
    records = [[MaskedSpan(0, len(forbidden), "MASK", "test", forbidden, 0)]] if forbidden else None
    casing = Casing({}, filler_is_cased=True)
    filler = CorpusFiller(Scripted(words), casing, KeptWords(), merge_markers=False, originals=originals)
    return filler.fill_shard(Shard(0, 1, [line], records)).lines[0]


def test_articles_agree_with_the_words_behind_them():
    for line, words, expected in [
        ("it is a [MASK]", ["apple"], "it is an apple"),
        ("it is an [MASK]", ["university"], "it is a university"),
        ("That was an [MASK], a [MASK] and a [MASK]", ["hour", "dog", "MBA"], "That was an hour, a dog and an MBA"),
        ("A [MASK] in the house. An [MASK] too", ["owl", "cat"], "An owl in the house. A cat too"),
        ("IT IS A [MASK]", ["apple"], "IT IS AN APPLE"),
        ('he said "a [MASK]" to me', ["owl"], 'he said "an owl" to me'),
        ("it is [MASK] [MASK]", ["a", "apple"], "it is an apple"),
        ("it is [MASK] dog", ["an"], "it is a dog"),
        ("[MASK] dog, and you?", ["an"], "A dog, and you?"),
        # Letters, other languages, other spaces, other words.
        ("the vitamin A [MASK] is in it", ["owl"], "the vitamin A owl is in it"),
        ("that is a  [MASK] or a-[MASK]", ["owl", "owl"], "that is a  owl or a-owl"),
        ("vamos a [MASK] con el perro", ["uno"], "vamos a uno con el perro"),
        ("Sie ist an [MASK]", ["Bord"], "Sie ist an Bord"),
        ("the banana [MASK] is it", ["owl"], "the banana owl is it"),
        ("it is a cat, an [MASK]? a owl", ["apple"], "it is a cat, an apple? a owl"),
    ]:
        assert filled(line, *words) == expected


def test_where_words_are_forbidden_a_fill_does_not_become_one():
    assert filled("it is [MASK] apple", "a", forbidden="dog") == "it is a apple"
    assert filled("it is [MASK] apple", "a", forbidden="an") == "it is a apple"
    assert filled("it is a [MASK]", "apple", forbidden="dog") == "it is an apple"
