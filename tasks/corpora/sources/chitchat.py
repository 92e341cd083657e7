"""Typed conversations: the package ``chitchat-dataset`` (BYU's Chit-Chat Challenge, MIT licence).

One unchanged message is one sentence of the corpus; one conversation is one document.
"""

from functools import cache
from typing import Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part, Source, package_file, read_package_json
from tasks.settings.base import SourcePath


class ChitchatCorpus(CorpusSettings):
    """Typed conversations of the package ``chitchat-dataset`` (MIT)."""

    kind: Literal["chitchat"]
    source: SourcePath
    """The file that pins the package's version."""

    @property
    def in_package(self) -> bool:
        """True: the text is in a pip package."""
        return True

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        path = package_file("chitchat_dataset", "dataset.json")

        @cache
        def documents(part: Part | None) -> list[Document]:
            """One document per conversation; a corpus is read twice."""
            conversations = (one["messages"] for one in read_package_json(path).values())
            return [Document([message["text"] for turn in turns for message in turn]) for turns in conversations]

        return Source([str(path)], documents)
