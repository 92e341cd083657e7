"""Copies of a user's files in which each text is filled: all texts, whatever they are, and nothing is left out."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from tasks.corpora.sources.text_files import FilesCorpus
from tasks.corpora.text_lines import read_lines
from tasks.corpora.text_places import TextPlaces, lines_of
from tasks.files.atomic_file import make_folder


def placed_files(reader: FilesCorpus) -> dict[str, TextPlaces]:
    """The files of a source, by their path in it; ``CorpusError`` if one cannot be written back."""
    source = Path(reader.source)
    return {
        str(file.path.relative_to(source)) if source.is_dir() else source.name: TextPlaces(file)
        for file in reader.open().given_files()
    }


def placed_sentences(files: Mapping[str, TextPlaces], reader: FilesCorpus) -> Iterator[tuple[object, list[str]]]:
    """The document and the lines of each text: every line that is not blank is a sentence."""
    for name, places in files.items():
        for number, text in enumerate(places.texts()):
            document = text.document
            if document is None:
                document = (name,) if reader.documents == "files" else (name, number)
            yield document, _sentences(text.text)


def write_back(files: Mapping[str, TextPlaces], folder: Path, text: Path) -> None:
    """Write copies of the files into a folder. ``text``: the filled sentences, one a line."""
    filled = read_lines(text)
    for name, places in files.items():
        make_folder((folder / name).parent, private=True)
        places.write(folder / name, partial(_filled, filled))


def _sentences(text: str) -> list[str]:
    # JSON can hold halves of surrogate pairs, which no file of text can.
    lines = (line.encode("utf-8", "replace").decode("utf-8") for line in lines_of(text)[::2])
    return [line for line in lines if line.strip()]


def _filled(filled: Iterator[str], text: str) -> str:
    """A text with the next filled lines in place of those that are not blank."""
    return "".join(
        next(filled) if number % 2 == 0 and piece.strip() else piece for number, piece in enumerate(lines_of(text))
    )
