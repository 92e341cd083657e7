"""Anonymised versions of documents: from files, by techniques of palimpsest, and by programs of any kind."""

import json
import resource
import shlex
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpora.masked_text import MASK
from tasks.corpora.sources.document import split_sentences
from tasks.errors import CorpusError, ParameterError
from tasks.masking.techniques import AnyTechnique, settings_named
from tasks.persons.facts import Document, read_documents
from tasks.settings.checks import check_settings

RAW = "raw text"


@dataclass(frozen=True)
class Version:
    """One version of all documents."""

    name: str
    texts: Sequence[str]
    seconds: float | None = None
    """Processor seconds to make it; ``None`` for a file."""


def of_file(path: str) -> Version:
    """The texts of a file, JSON lines with a key ``text``; its name is that of the file."""
    return Version(Path(path).stem, [document.text for document in read_documents(path)])


def of_technique(name: str, documents: Sequence[Document], threads: int) -> Version:
    """The documents masked by a technique, sentence by sentence: its name is a kind of technique or of tagger."""
    technique = check_settings(AnyTechnique, settings_named(name), "technique").build(None, threads=threads)
    started = time.process_time()
    sentences = [split_sentences(document.text) for document in documents]
    found = technique.findings(sentence for each in sentences for sentence in each)
    texts = []
    for document, each in zip(documents, sentences, strict=True):
        spans, after = [], 0
        for _ in each:
            sentence, words = next(found)
            start = document.text.index(sentence, after)
            after = start + len(sentence)
            spans += [(start + word.start, start + word.end, f"[{MASK}]") for word in words]
        texts.append(replaced(document.text, spans))
    return Version(name, texts, time.process_time() - started)


def of_program(command: str, documents: Sequence[Document]) -> Version:
    """The output of a program that reads documents as JSON lines and writes as many, in the same order.

    Raises ``ParameterError`` if the program cannot be run or fails. The error does not quote the program's messages,
    since they may have private text.
    """
    words = shlex.split(command)
    lines = "".join(f"{json.dumps({'text': document.text}, ensure_ascii=False)}\n" for document in documents)
    before = _seconds_of_children()
    try:
        done = subprocess.run(words, input=lines.encode(), capture_output=True, check=True)
    except (OSError, IndexError) as error:
        raise ParameterError(f"program {command!r} cannot be run ({type(error).__name__}); give its path") from None
    except subprocess.CalledProcessError as error:
        ended = f"program {command!r} ended with status {error.returncode}"
        raise ParameterError(f'{ended}; try it with one line {{"text": "..."}} on its standard input') from None
    try:
        texts = [json.loads(line)["text"] for line in done.stdout.decode().splitlines()]
    except (ValueError, KeyError, TypeError):
        wanted = 'write one line {"text": "..."} for each document, and nothing else'
        raise CorpusError(f"the output of program {command!r} is not JSON lines; {wanted}") from None
    return Version(Path(words[0]).name, texts, _seconds_of_children() - before)


def replaced(text: str, spans: Iterable[Sequence[Any]]) -> str:
    """A text with its spans (start, end, replacement) replaced; of two spans that overlap, the first is."""
    pieces, after = [], 0
    for start, end, replacement in sorted(map(tuple, spans)):
        if start >= after:
            pieces += [text[after:start], replacement]
            after = end
    return "".join([*pieces, text[after:]])


def checked(versions: Iterable[Version], documents: Sequence[Document]) -> list[Version]:
    """The versions, each by a name of its own; ``CorpusError`` if one has not a text for each document."""
    found: dict[str, Version] = {}
    for version in versions:
        if len(version.texts) != len(documents):
            counted = f"{version.name!r} has {len(version.texts):,} documents, and the raw text {len(documents):,}"
            raise CorpusError(f"{counted}; give a version of each document, in the same order")
        if version.name in found:
            raise ParameterError(f"two versions have the name {version.name!r}; rename a file, or leave one out")
        found[version.name] = version
    return list(found.values())


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
