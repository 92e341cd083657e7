"""N-best lists: a recogniser's hypotheses with their scores, best first.

JSON lines, plain or compressed, one utterance a line, from any recogniser; ``tasks.speech.audio.toolkit_records`` has
the other forms that are read:

    {"utterance_id": "84-121123-0001", "reference": "...", "hypotheses": [{"text": "...", "score": -3.1}, ...]}

Scores are log-probabilities in nats, or any number that is higher for more probable hypotheses. Other keys are
ignored.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import finite_number, write_lines
from tasks.files.atomic_file import atomic_writer
from tasks.speech.audio.toolkit_records import toolkit_records
from tasks.speech.audio.utterance_lines import read_records

_FORM = '{"utterance_id": "u1", "reference": "what was said", "hypotheses": [{"text": "what was sad", "score": -3.1}]}'
"""A correct line, for error messages."""


@dataclass(frozen=True, slots=True)
class ScoredHypothesis:
    """One hypothesis."""

    text: str
    score: float
    """The recogniser's score; higher is better."""


@dataclass(frozen=True, slots=True)
class NbestList:
    """The hypotheses of one utterance by score, highest first; ties in the file's order."""

    utterance_id: str
    reference: str
    hypotheses: tuple[ScoredHypothesis, ...]
    """Empty if the recogniser found nothing: all words of the reference then count as deleted."""


def read_nbest(path: str | Path, at_most: int | None = None, *, measured: bool = True) -> list[NbestList]:
    """The lists of a file in its order, each cut to its ``at_most`` best hypotheses.

    Lists that are not ``measured`` need no reference. Empty lists are valid, so that the test set stays complete.
    Raises ``SpeechError`` that lists problems with their lines: lines that are no JSON objects, missing keys, duplicate
    ids, hypotheses without a text, scores that are missing or not finite. Also raises it if the file has no list.
    """
    parse = partial(_parse, at_most=at_most, measured=measured)
    records = toolkit_records(path, "n-best lists", nbest=True)
    return list(read_records(path, parse, "n-best lists", _FORM, records).values())


def _parse(record: dict[str, Any], at_most: int | None, measured: bool) -> NbestList | list[str]:
    reference = record.get("reference") if measured else record.get("reference", "")
    problems = [] if isinstance(reference, str) else ["has no 'reference' that is text"]
    entries = record.get("hypotheses")
    if not isinstance(entries, list):
        return [*problems, "has no list of 'hypotheses'"]
    texts = [entry.get("text") if isinstance(entry, dict) else None for entry in entries]
    scores = [finite_number(entry.get("score")) if isinstance(entry, dict) else 0.0 for entry in entries]
    if without_text := sum(not isinstance(text, str) for text in texts):
        problems.append(f"{without_text} of {len(entries)} hypotheses have no 'text'")
    if without_score := sum(score is None for score in scores):
        problems.append(f"{without_score} of {len(entries)} hypotheses have no 'score' that is a finite number")
    if problems:
        return problems
    hypotheses = [ScoredHypothesis(entry["text"], float(entry["score"])) for entry in entries]
    hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: ties stay in order
    return NbestList(str(record.get("utterance_id")), str(reference), tuple(hypotheses[:at_most]))


def drawn_lists(lists: Sequence[NbestList], at_most: int | None, seed: int) -> list[NbestList]:
    """At most so many of the lists, in order.

    They are drawn by a hash of the seed and the utterance's id: the same utterances for every recogniser.
    """

    def drawn(nbest: NbestList) -> bytes:
        return hashlib.sha256(f"{seed}:{nbest.utterance_id}".encode()).digest()

    chosen = {nbest.utterance_id for nbest in sorted(lists, key=drawn)[:at_most]}
    return [nbest for nbest in lists if nbest.utterance_id in chosen]


def write_nbest(path: str | Path, lists: Iterable[NbestList]) -> None:
    """Write lists to a private file, compressed if the name ends in ``.gz``; the same lists give the same bytes."""
    records = (json.dumps(asdict(nbest), ensure_ascii=False) for nbest in lists)
    if str(path).endswith(".gz"):
        content = "".join(f"{record}\n" for record in records).encode()
        with atomic_writer(path, private=True, binary=True) as stream:
            stream.write(gzip.compress(content, mtime=0))
    else:
        write_lines(path, records, private=True)
