"""Handmade labelled sentences in which the context alone says what is private."""

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, write_labelled

NAMES = "Ana Bo Cem Dov Eli Fay Gus Hal Ida Jon Kim Lou Mia Ned Ola Pia Quin Rae Sol Tess".split()
TOWNS = "Aarau Bregenz Cottbus Dillingen Erfurt Fulda Gotha Hameln Ilmenau Jena".split()


def labelled(text: str, **labels: str) -> LabelledLine:
    """A line; ``labels`` are stretches of the text by label."""
    spans = tuple(LabelledSpan(text.index(part), text.index(part) + len(part), label) for label, part in labels.items())
    return LabelledLine(text, spans, 1)


def sentences(names, towns):
    lines = []
    for index, name in enumerate(names):
        town = towns[index % len(towns)]
        lines += [
            labelled(f"my name is {name} and that is all", PERSON=name),
            labelled(f"she lives in {town} with a dog", CITY=town),
            labelled("that is all we know about it"),
            labelled("the dog is with us and it lives"),
        ]
    return lines


def write_folder(folder, train, test):
    folder.mkdir()
    write_labelled(folder / "train.jsonl", train)
    write_labelled(folder / "test.jsonl", test)
    return folder
