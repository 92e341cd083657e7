"""List masking beside its peer, on the messages of the chat corpus, and its memory on a file of 1 GiB.

- Speed: ours (tokenisation, look-up, escaping and counting included) against the straightforward way with the same
  rules: the word pattern, and one look-up per word in a replacement function. The outputs are the same.
- Memory: ``palimpsest mask`` as a process of its own on 1 GiB of the same messages, a new word in every fifth, and its
  peak as its own report has it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.turns import compared, row
from tasks.corpora.division import normalise
from tasks.corpora.masked_text import escape
from tasks.corpora.sources.chitchat import ChitchatCorpus
from tasks.corpora.words import count_words, fold, word_spans

ROUNDS = 5
TARGET_WORDS_PER_SECOND = 3_000_000
VOCABULARY_SIZE = 85_000
FILE_BYTES = 1 << 30
MESSAGES_PER_NEW_WORD = 5
MEMORY_LIMIT_MEBIBYTES = 300


def run() -> list[dict[str, Any]]:
    """Rows ``{"name", "ours", "peer", "unit", "ratio", "target", "holds"}``."""
    sentences = messages()
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = write_vocabulary(Path(folder) / "vocabulary.txt")
        return [*list_masking(sentences, vocabulary), *memory(sentences, vocabulary, Path(folder))]


def messages() -> list[str]:
    """258,000 typed messages, 2.5 million words."""
    return [
        line
        for document in ChitchatCorpus(kind="chitchat", source="constraints.txt").open().documents()
        for line in map(normalise, document.texts)
        if line
    ]


def write_vocabulary(path: Path) -> Path:
    """The most frequent English words, as the vocabulary threshold takes them."""
    from wordfreq import iter_wordlist

    words = dict.fromkeys(fold(word) for word in iter_wordlist("en"))
    path.write_text("".join(f"{word}\n" for word, _ in zip(words, range(VOCABULARY_SIZE), strict=False)))
    return path


def list_masking(sentences: list[str], vocabulary: Path) -> list[dict[str, Any]]:
    """Words per second of the list techniques, and of the peer."""
    from tasks.masking.lists.allow_list import AllowList
    from tasks.masking.lists.vocabulary_threshold import VocabularyThreshold

    threshold = VocabularyThreshold(kind="vocabulary_threshold", vocabulary_size=VOCABULARY_SIZE, path=str(vocabulary))
    return [
        _list_masking("allow list", AllowList(kind="allow_list").build(None, 1), sentences),
        _list_masking("vocabulary threshold", threshold.build(None, 1), sentences),
    ]


def _list_masking(name: str, technique: Any, sentences: list[str]) -> dict[str, Any]:
    from tasks.masking.technique import MaskingTally

    kept = technique.allowed_words

    def ours() -> list[str]:
        return [text for text, _ in technique.mask(sentences, "mask", MaskingTally(), with_spans=False)]

    def peer_line(line: str) -> str:
        pieces, position = [], 0
        for start, end in word_spans(line):
            if fold(line[start:end]) not in kept:
                pieces += [escape(line[position:start]), "[MASK]"]
                position = end
        return "".join([*pieces, escape(line[position:])])

    def peer() -> list[str]:
        return [peer_line(line) for line in sentences]

    if ours() != peer():
        raise AssertionError(f"masking by {name} and its peer differ")
    words = sum(map(count_words, sentences))
    our_seconds, peer_seconds, ratio = compared(ROUNDS, ours, peer)
    return row(
        f"list masking ({name})",
        round(words / our_seconds),
        round(words / peer_seconds),
        "words/s",
        round(ratio, 2),
        f"ours >= {TARGET_WORDS_PER_SECOND:,} words/s a core",
        words / our_seconds >= TARGET_WORDS_PER_SECOND,
    )


def memory(sentences: list[str], vocabulary: Path, folder: Path) -> list[dict[str, Any]]:
    """Peak memory of ``palimpsest mask`` on a large file, for each list technique."""
    corpus = folder / "corpus.txt"
    with open(corpus, "w", encoding="utf-8") as stream:
        for block in _large_text(sentences):
            stream.write(block)
    rows = []
    for technique, *options in (["allow_list"], ["vocabulary_threshold", "--vocabulary", str(vocabulary)]):
        masked = folder / "masked.txt"
        command = ["mask", "--technique", technique, *options, "--input", str(corpus), "--output", str(masked)]
        peak = _peak_mebibytes(command, folder / "report.json")
        _check(corpus, masked, len(sentences))
        masked.unlink()
        rows.append(
            row(
                f"list masking ({technique.replace('_', ' ')}), peak memory for a file of 1 GiB",
                round(peak),
                None,
                "MiB",
                None,
                f"ours <= {MEMORY_LIMIT_MEBIBYTES} MiB",
                peak <= MEMORY_LIMIT_MEBIBYTES,
            )
        )
    return rows


def _large_text(sentences: list[str]) -> Iterator[str]:
    """The messages again and again, with words that were not there before, until there is enough."""
    numbers = count()
    size = 0
    while size < FILE_BYTES:
        block = "".join(
            f"{line}\n" if index % MESSAGES_PER_NEW_WORD else f"{line} word{next(numbers):x}\n"
            for index, line in enumerate(sentences)
        )
        size += len(block.encode())
        yield block


def _peak_mebibytes(arguments: list[str], report: Path) -> float:
    """The largest resident memory of ``palimpsest`` by its own report.

    What the system says of a child counts what its parent held when it was started.
    """
    command = [sys.executable, "-m", "tasks.cli", *arguments, "--report", str(report)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(report.read_text())["peak_memory_bytes"] / (1 << 20)


def _check(corpus: Path, masked: Path, period: int) -> None:
    """Every line came out, and the new words were masked."""
    with open(corpus, encoding="utf-8") as raw, open(masked, encoding="utf-8") as written:
        for index, (_, after) in enumerate(zip(raw, written, strict=True)):
            if index % period % MESSAGES_PER_NEW_WORD == 0 and not after.endswith("[MASK]\n"):
                raise AssertionError("a word that is on no list was not masked")


if __name__ == "__main__":
    for result in run():
        print(result)
