import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpora.words import word_spans
from tasks.masking.combined_techniques import CombinedTechniques
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.taggers import entity_tagger
from tasks.masking.technique import Finding, Technique
from tasks.masking.techniques import AnyTechnique
from tasks.settings.checks import check_settings

LINE = "Tom saw Ann and 5 cats"


class Finds(Technique):
    """Finds the words that it is told, like a tagger."""

    def __init__(self, name, words, label="PERSON", score=None):
        self.name, self._words, self._label, self._score = name, words.split(), label, score

    def findings(self, lines):
        for line in lines:
            places = ((start, end) for start, end in word_spans(line) if line[start:end] in self._words)
            found = self._label, self.name, self._score, f"{self._label} by {self.name}"
            yield line, [Finding(*place, *found) for place in places]


def found(rule, *parts, line=LINE):
    ((_, findings),) = CombinedTechniques(parts, rule).findings([line])
    return {line[finding.start : finding.end]: finding for finding in findings}


@pytest.mark.parametrize(
    ("rule", "words"), [("union", "Tom saw Ann 5 cats"), ("intersection", "Ann"), ("majority", "Tom Ann 5")]
)
def test_rules(rule, words):
    parts = [Finds("a", "Tom Ann 5"), Finds("b", "Ann 5 cats"), Finds("c", "saw Tom Ann")]
    assert list(found(rule, *parts)) == words.split()
    # Of two, more than half are both.
    assert list(found("majority", Finds("a", "Tom Ann"), Finds("b", "Ann cats"))) == ["Ann"]


def test_class_source_score_and_reason():
    shape = AllowedWords(["saw", "and", "cats"], "list")
    words = found("union", shape, Finds("a", "Tom", "LOCATION"), Finds("b", "Tom Ann 5", "PERSON", score=0.5))
    # A tagger's class goes before the shape's NUMBER and before MASK; of two taggers the earlier one's is taken.
    labels = {word: finding.label for word, finding in words.items()}
    assert labels == {"Tom": "LOCATION", "Ann": "PERSON", "5": "PERSON"}
    assert (words["Tom"].source, words["Tom"].reason) == ("list+a+b", "LOCATION by a; PERSON by b")
    assert (words["Tom"].score, words["Ann"].score) == (None, 0.5)
    assert found("union", Finds("a", "5", "MASK"), shape)["5"].label == "NUMBER"


VOCABULARY = ["a", "b", "c", "d", "e"]
PART = st.tuples(st.booleans(), st.sets(st.sampled_from(VOCABULARY)))


@given(st.lists(PART, min_size=2, max_size=5), st.sampled_from(["union", "intersection", "majority"]))
def test_allowed_words_are_those_that_no_tagger_can_have_masked(parts, rule):
    lists = [AllowedWords(words, "list") for is_list, words in parts if is_list]
    eager = [Finds("tagger", " ".join(VOCABULARY)) for is_list, _ in parts if not is_list]
    combined = CombinedTechniques([*lists, *eager], rule)
    ((_, findings),) = combined.findings([" ".join(VOCABULARY)])
    masked = {VOCABULARY[finding.start // 2] for finding in findings}
    assert (combined.allowed_words or set()) == set(VOCABULARY) - masked
    assert CombinedTechniques([*lists, *eager, Finds("tagger", "")], "union").allowed_words is None


def test_every_tagger_masks_what_any_of_those_that_ship_finds(monkeypatch, shipped):
    """With the class that the first of them gives."""
    lines = ["Ottilie Kowalczyk lives in Rotterdam.", "write to ada@example.org or call 212-555-0199", "we slept well"]
    monkeypatch.setattr(entity_tagger, "load_tagger", lambda settings, threads: shipped(settings.kind))
    settings = check_settings(AnyTechnique, {"kind": "every_tagger"}, "options")
    alone = [[findings for _, findings in part.build(None, 1).findings(lines)] for part in settings.parts]
    together = [findings for _, findings in settings.build(None, 1).findings(lines)]
    for number, findings in enumerate(together):
        first = {}
        for of_part in alone:
            for finding in of_part[number]:
                first.setdefault((finding.start, finding.end), finding.label)
        assert {(finding.start, finding.end): finding.label for finding in findings} == first
    assert {finding.label for finding in together[0]} >= {"PERSON", "LOCATION"}
    assert together[1]
    assert together[2] == []
