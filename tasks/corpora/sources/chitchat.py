"""Typed conversations: the package ``chitchat-dataset`` (BYU's Chit-Chat Challenge, MIT licence).

One message is one sentence of the corpus, as people sent it; one conversation is one document.
"""

from collections.abc import Iterator
from typing import Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part, package_file, read_package_json
from tasks.settings.base import SourcePath


class ChitchatCorpus(CorpusSettings):
    """Typed conversations of the package ``chitchat-dataset`` (MIT)."""

    kind: Literal["chitchat"]
    source: SourcePath
    """The file that pins the package's version."""

    @property
    def in_package(self) -> bool:
        """It does."""
        return True

    def open(self) -> "Chitchat":
        """The reader; ``CorpusError`` where its files are not there. Nothing is read yet."""
        return Chitchat()


class Chitchat:
    """The source ``kind: chitchat``."""

    parts: tuple[Part | None, ...] = (None,)

    def __init__(self) -> None:
        self._path = package_file("chitchat_dataset", "dataset.json")
        self.files = [str(self._path)]
        self._documents: list[Document] | None = None

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """One document per conversation, in the order of the file."""
        if self._documents is None:
            conversations = read_package_json(self._path).values()
            self._documents = [
                Document([message["text"] for turn in conversation["messages"] for message in turn])
                for conversation in conversations
            ]
        return iter(self._documents)
