"""Gold lines and what is masked in them, and every level of the evaluation: each number is counted by hand."""

import re

import pytest

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.masking.technique import Finding
from tasks.masking_evaluation.judged_line import judge, rates
from tasks.masking_evaluation.label_classes import LabelMapping
from tasks.masking_evaluation.levels import (
    document_scores,
    entity_scores,
    over_masking,
    per_type,
    span_scores,
    token_intervals,
    token_scores,
    typed_scores,
)

MARK = re.compile(r"<([\w-]+):|>|\*([^*/]+)(?:/(\w+))?\*")


def marked(source, number=1, document=None):
    """A gold line and its findings: ``<PER:Ann Lee>`` is a span, ``*word*`` or ``*word/PERSON*`` a masked word."""
    text, spans, findings, position = "", [], [], 0
    for match in MARK.finditer(source):
        text += source[position : match.start()]
        position = match.end()
        label, word, name = match.groups()
        if label:
            opened = (len(text), label)
        elif word:
            findings.append(Finding(len(text), len(text) + len(word), name or "MASK", "test"))
            text += word
        else:
            spans.append(LabelledSpan(opened[0], len(text), opened[1]))
    return LabelledLine(text + source[position:], tuple(spans), number, document=document), findings


def judged(*sources, own=None, documents=None):
    """Judged lines, each a document unless ``documents`` says otherwise."""
    names = documents or [None] * len(sources)
    lines = (marked(source, number, name) for number, (source, name) in enumerate(zip(sources, names, strict=True), 1))
    return [judge(*line, LabelMapping(own or {})) for line in lines]


@pytest.mark.parametrize(
    ("source", "labels", "lengths", "without_words"),
    [
        # "rk Cit" of "New York City": both words are touched, "New" is not.
        ("New Yo<LOC:rk Cit>y is big", [None, "LOC", "LOC", None, None], [("LOC", 2)], 0),
        ("Ann<PER:, >Bob", [None, None], [], 1),
        ("<TITLE:Dr> <PER:Lee>, <TITLE:Mr> <PER:Wu>", [None, "PER", None, "PER"], [("PER", 1), ("PER", 1)], 0),
    ],
)
def test_a_word_is_private_where_a_span_touches_it(source, labels, lengths, without_words):
    (line,) = judged(source, own={"TITLE": None})
    assert [span and span.label for span in line.gold] == labels
    assert sorted((span.label, len(span.words)) for span in line.spans) == lengths
    assert (line.spans_without_words, line.ignored_spans) == (without_words, {"TITLE": 2} if "TITLE" in source else {})


def test_of_two_spans_the_longer_one_says_the_label_and_runs_end_at_punctuation_and_unmasked_words():
    spans = (LabelledSpan(0, 3, "PER"), LabelledSpan(0, 12, "ORG"))
    line = judge(LabelledLine("Ann Lee Corp", spans, 1), [], LabelMapping({}))
    assert [span.label for span in line.gold] == ["ORG"] * 3
    assert sorted((span.label, len(span.words)) for span in line.spans) == [("ORG", 3), ("PER", 1)]
    (line,) = judged("*Ann* *Lee*, *Bob* saw *Wu*\t *Li*-*Po*")
    assert line.masked_runs() == [range(0, 2), range(2, 3), range(4, 6), range(6, 7)]


LINES = (
    "<PER:*Ann* Lee> *went* to <LOC:*Bonn*>",  # two of three private words masked, and "went" too many
    "<PER:*Bob*> slept",  # wholly found, nothing too many
    "we had *rather* good tea",  # nothing private, one word too many of five
    "ask <PER:Wu>",  # private, nothing masked
    "fine",  # nothing private, nothing masked
)
RATES = ("recall", "precision", "f2")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((2, 2, 2, 4), (1, 1 / 2, 5 / 6)),  # 5 * 1/2 * 1 / (4 * 1/2 + 1)
        ((1, 2, 1, 1), (1 / 2, 1, 5 / 9)),  # the other way round recall is the worse one
        ((0, 0, 0, 0), (None, None, None)),  # nothing private, nothing masked
        ((0, 0, 0, 7), (None, 0.0, None)),  # nothing private, something masked
        ((0, 4, 0, 0), (0.0, None, 0.0)),  # nothing masked: no precision, but F2 is 0 whatever it were
    ],
)
def test_rates_and_what_is_undefined(counts, expected):
    assert tuple(rates(*counts).values()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("score", "lines", "documents", "expected"),
    [
        # Private: Ann Lee Bonn Bob Wu. Masked: Ann went Bonn Bob rather. Both: Ann Bonn Bob.
        (token_scores, LINES, None,
            {"gold_words": 5, "masked_words": 5, "right_words": 3, **dict.fromkeys(RATES, 0.6)}),
        # Spans: "Ann Lee" half, Bonn and Bob whole, Wu not. Runs: "Ann", "went", "Bonn", "Bob", "rather".
        (span_scores, LINES, None, {"recall": 2 / 4, "precision": 3 / 5, "f2": 15 / 29}),
        # A run beyond the span is right in part only.
        (span_scores, ["call *dear* <PER:*Ann*> *soon*, <PER:*Bob*>"], None, {"recall": 1, "precision": 1 / 2}),
        # Entities: person ann (two mentions, one missed), person bob, place ann. Runs: ann (always private), bob.
        (entity_scores, ["<PER:*Ann*> met <PER:ANN> and <PER:*Bob*> in <LOC:*Ann*>"], None,
            {"recall": 2 / 3, "precision": 2 / 2}),
        # A masked run is right only if it always is.
        (entity_scores, ["<PER:*May*> came in *may*"], None, {"precision": 0, "recall": 1}),
        (entity_scores, ["<PER:*Ann*>", "<PER:Ann>"], None, {"recall": 0.5}),
        (entity_scores, ["<PER:*Ann*>", "<PER:Ann>"], ["a", "a"], {"recall": 0}),
        # With private words: lines 1, 2, 4; wholly masked: 2. With masked words: 1, 2, 3; nothing too many: 2.
        (document_scores, LINES, None, dict.fromkeys(RATES, 1 / 3)),
        # a: Lee missed. b: Wu missed. Both have words too many.
        (document_scores, LINES, ["a", "a", "b", "b", "b"], dict.fromkeys(RATES, 0)),
        (over_masking, LINES, None, {"masked_share": 1 / 6, "lines": 2, "words": 6, "masked_words": 1}),
    ],
)  # fmt: skip
def test_levels(score, lines, documents, expected):
    found = score(judged(*lines, documents=documents))
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_scope_leaves_out_classes_that_the_gold_does_not_annotate_unless_they_protect():
    lines = judged("<PER:*Ann/DATE* *Lee/PERSON*> came *today/DATE* *again/MASK* *soon/PERSON*")
    assert token_scores(lines)["precision"] == 2 / 5
    # "today" is left out; "Ann" is protected, though by a class out of scope.
    scores = token_scores(lines, ["DATE"])
    assert (scores["recall"], scores["precision"], scores["masked_words"]) == (1.0, 0.5, 4)


TYPED = (
    "<PER:*Ann/PERSON* *Lee/LOCATION*> in <LOC:*New/LOCATION* York>",
    "<thing:*Zug/PERSON*> *and/PERSON* <LOC:*Bonn/MASK*>",
)


def test_labels_and_classes():
    lines = judged(*TYPED)
    by_label = per_type(lines).items()
    assert {label: (row["class"], row["token_recall"], row["span_recall"]) for label, row in by_label} == {
        "LOC": ("LOCATION", pytest.approx(2 / 3), 0.5), "PER": ("PERSON", 1.0, 1.0), "thing": (None, 1.0, 1.0),
    }  # fmt: skip
    scores = typed_scores(lines)
    # With a class: Ann Lee New York Bonn. Masked with a class: Ann Lee New and (Zug's label asks for none).
    # Right: Ann, New.
    assert (scores["recall"], scores["precision"]) == (2 / 5, 2 / 4)
    assert [typed_scores(judged("<PER:*Ann*>"))[name] for name in RATES] == [0.0, None, 0.0]


@pytest.mark.parametrize(
    ("lines", "documents", "recall", "precision", "both"),
    [
        # In every draw recall is 1/2, precision 1/2 and so F2.
        (["<PER:*Ann* Lee> *went*"] * 5, None, [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]),
        # Draws: twice the found one (recall 1), one of each (1/2), twice the missed one (0). Precision is undefined
        # where nothing is masked, and 1 in all other draws.
        (["<PER:*Ann*>", "<PER:Bob>"], None, [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]),
        # Lines of one document are drawn together.
        (["<PER:*Ann*>", "<PER:Bob>"] * 2, ["a", "a", "b", "b"], [0.5, 0.5], [1.0, 1.0], [5 / 9, 5 / 9]),
        (["*one* two", "three"], None, None, [0.0, 0.0], None),
    ],
)
def test_intervals(lines, documents, recall, precision, both):
    found = token_intervals(judged(*lines, documents=documents), 1000, 0.95, 1)
    for name, expected in zip(RATES, (recall, precision, both), strict=True):
        assert found[f"{name}_ci"] == (expected if expected is None else pytest.approx(expected))
