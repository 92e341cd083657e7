"""Gold lines with marks for tests: ``<PER:Ann Lee>`` is a gold span, ``*word*`` a masked word, ``*word/PERSON*`` one
with a class."""

import re

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.masking.technique import Finding
from tasks.masking_evaluation.judged_line import judge
from tasks.masking_evaluation.label_classes import LabelMapping

_MARK = re.compile(r"<([\w-]+):|>|\*([^*]+)\*")


def marked(source, number=1, document=None):
    """A gold line and its findings."""
    text, spans, findings, opened = "", [], [], None
    position = 0
    for match in _MARK.finditer(source):
        text += source[position : match.start()]
        position = match.end()
        if match.group(1):
            opened = (len(text), match.group(1))
        elif match.group(2):
            word, _, name = match.group(2).partition("/")
            findings.append(Finding(len(text), len(text) + len(word), name or "MASK", "test"))
            text += word
        else:
            spans.append(LabelledSpan(opened[0], len(text), opened[1]))
    text += source[position:]
    return LabelledLine(text, tuple(spans), number, document=document), findings


def judged(*sources, own=None, documents=None):
    """Judged lines, each a document unless ``documents`` says otherwise."""
    return [
        judge(*marked(source, number, documents and documents[number - 1]), LabelMapping(own or {}))
        for number, source in enumerate(sources, start=1)
    ]
