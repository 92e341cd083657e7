"""Handmade labelled sentences in which the context alone says what is private, and a tagger that learns from them."""

from command_results import measured
from stage_commands import settings

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, write_labelled

NAMES = "Ana Bo Cem Dov Eli Fay Gus Hal Ida Jon Kim Lou Mia Ned Ola Pia Quin Rae Sol Tess".split()
TOWNS = "Aarau Bregenz Cottbus Dillingen Erfurt Fulda Gotha Hameln Ilmenau Jena".split()


def labelled(text: str, **labels: str) -> LabelledLine:
    """A line; ``labels`` are stretches of the text by label."""
    spans = tuple(LabelledSpan(text.index(part), text.index(part) + len(part), label) for label, part in labels.items())
    return LabelledLine(text, spans, 1)


def sentences(name: str, town: str) -> list[LabelledLine]:
    return [
        labelled(f"my name is {name} and that is all", PERSON=name),
        labelled(f"she lives in {town} with a dog", CITY=town),
        labelled("that is all we know about it"),
        labelled("the dog is with us and it lives"),
    ]


LINES = [line for index, name in enumerate(NAMES) for line in sentences(name, TOWNS[index % len(TOWNS)])]
"""Four sentences for each name."""


def found_by(tagger, *lines):
    """The words and classes that a tagger finds in each line."""
    return [[(line[span.start : span.end], span.label) for span in spans] for line, spans in tagger.tag(lines)]


def train_crf(folder, test):
    """Write ``folder/crf`` by the command; what was measured on these held-out lines."""
    write_labelled(folder / "train.jsonl", LINES)
    write_labelled(folder / "test.jsonl", test)
    options = settings("kind=crf", "embeddings=null", "iterations=60")
    return measured("train-tagger", "--labelled", folder, "--output", folder / "crf", *options)
