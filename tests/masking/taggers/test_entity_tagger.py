import pytest

from tasks.corpora.words import word_spans
from tasks.errors import ModelError, ParameterError
from tasks.masking.taggers.entity_tagger import TaggedEntities
from tasks.masking.taggers.spelled_numbers import is_harmless
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.masking.technique import MaskingTally


class Scripted(Tagger):
    """A tagger that returns what it is told to."""

    name = "scripted"

    def __init__(self, *spans, types=("PERSON", "GPE", "ORDINAL")):
        self._spans, self._types = [EntitySpan(*span) for span in spans], list(types)

    @property
    def entity_types(self):
        return self._types

    def tag(self, lines):
        for line in lines:
            yield line, [span for span in self._spans if line]


def masked(line, *spans):
    ((text, _),) = TaggedEntities(Scripted(*spans)).mask([line], "class", MaskingTally(), with_spans=False)
    return text


@pytest.mark.parametrize(
    ("spans", "text"),
    [
        ([(0, 8, "PERSON")], "[PERSON] [PERSON]'s in Paris, 2nd"),
        ([(5, 6, "PERSON")], "Tom [PERSON]'s in Paris, 2nd"),
        ([(14, 20, "GPE")], "Tom Gray's in [LOCATION], 2nd"),
        ([(19, 20, "GPE"), (21, 24, "ORDINAL")], "Tom Gray's in Paris, 2nd"),
        ([(0, 3, "GPE"), (0, 8, "PERSON"), (4, 8, "GPE")], "[PERSON] [PERSON]'s in Paris, 2nd"),
    ],
    ids=["two words", "part of a word", "with a comma", "a comma alone, a type that stays unmasked", "nested"],
)
def test_words_that_entities_touch(spans, text):
    assert masked("Tom Gray's in Paris, 2nd", *spans) == text


def test_a_model_that_tags_what_is_not_there_is_an_error():
    for span, says in (((0, 4, "GPE"), "a place outside the line"), ((0, 3, "ALIEN"), "'ALIEN', which it does not")):
        with pytest.raises(ModelError, match=f"scripted: the model tags {says}"):
            masked("Tom", span)


def test_explanations_and_scores():
    spans = [(0, 3, "PERSON", 0.75, "PhoneBook"), (7, 10, "ORDINAL")]
    ((_, words),) = TaggedEntities(Scripted(*spans)).explain(["Tom me 1st"])
    assert [word.reason for word in words] == [
        "PERSON by PhoneBook", "not tagged by scripted", "ORDINAL by scripted, a type that stays unmasked",
    ]  # fmt: skip
    assert (words[0].score, words[0].source) == (0.75, "scripted/PhoneBook")


def test_numbers_in_words():
    tagger = Scripted((0, 3, "CARDINAL"), (7, 10, "CARDINAL"), types=["CARDINAL"])
    for setting, first in (("keep", "one"), ("mask", "[NUMBER]")):
        technique = TaggedEntities(tagger, None, setting)
        ((text, _),) = technique.mask(["one of 300 here"], "class", MaskingTally(), with_spans=False)
        assert text == f"{first} of [NUMBER] here"


def test_a_mapping_of_ones_own():
    labels = {"PERSON": "GROUP", "GPE": None, "ORDINAL": "NUMBER"}
    technique = TaggedEntities(Scripted((0, 3, "PERSON"), (4, 7, "ORDINAL"), (8, 9, "GPE")), labels)
    ((text, spans),) = technique.mask(["Tom 1st A"], "class", MaskingTally(), with_spans=True)
    assert text == "[GROUP] [NUMBER] A"
    found = [(span.label, span.source, span.original) for span in spans]
    assert found == [("GROUP", "scripted", "Tom"), ("NUMBER", "scripted", "1st")]


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ({"PERSON": "PERSONS"}, ParameterError, r"labels\.PERSON: 'PERSONS' is no class \(did you mean 'PERSON'\?\)"),
        ({"NORP": "GROUP"}, ParameterError, r"labels\.NORP: the model 'scripted' has no such type"),
        ({}, ModelError, r"scripted: the model tags 'GENE', and the mapping .* has no such type"),
    ],
)
def test_a_mapping_with_a_mistake_is_refused(labels, error, message):
    types = ["PERSON", "GPE"] if labels else ["GENE", "PERSON"]
    with pytest.raises(error, match=message):
        TaggedEntities(Scripted(types=types), {"PERSON": None, "GPE": None} | labels if labels else None)


HARMLESS = [
    "{one} of them", "{One} of them", 'he left. "{Two days ago}"', "see you {last night}", "{a year ago}", "{today}",
    "{about twenty five} people", "{two hundred} people", "{one and a half years}", "{two or three years}",
    "{the fourth quarter}", "{next summer}", "no one, and {two}",
]  # fmt: skip
PRIVATE = [
    "{2 days ago}", "{last March}", "{last march}", "in {may}", "on {monday morning}", "at {christmas}",
    "{the day of enscombe}", "it is {the Day of it}", "in {nineteen eighty}", "in {nineteen eighty four}",
    "at {five thirty}", "call {five five five one}", "call five five five {one}", "{one hundred and fifty}",
    "{five oh five}", "look {😀} here",
]  # fmt: skip


@pytest.mark.parametrize(("marked", "harmless"), [(text, text in HARMLESS) for text in HARMLESS + PRIVATE])
def test_numbers_and_times_in_words_that_identify_nobody(marked, harmless):
    start, end = marked.index("{"), marked.index("}") - 1
    line = marked.replace("{", "").replace("}", "")
    words = word_spans(line)
    touched = [index for index, (first, last) in enumerate(words) if first < end and last > start]
    found = range(touched[0], touched[-1] + 1) if touched else range(0)
    assert is_harmless(line, words, found) == harmless
