"""N-best lists: what a recogniser takes for possible, the best first, with its scores.

JSON lines, plain or compressed, one utterance a line, from any recogniser:

    {"utterance_id": "84-121123-0001", "reference": "...", "hypotheses": [{"text": "...", "score": -3.1}, ...]}

Scores are log-probabilities in nats, or any number that is larger for what is more probable. ``"vocabulary"`` may name
the hash of the language model that belongs to the recogniser; other keys are let be.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import finite_number, write_lines
from tasks.errors import ModelError, SpeechError
from tasks.files.atomic_file import atomic_writer
from tasks.speech.audio.utterance_lines import fail_with_problems, read_json_lines

FORM = '{"utterance_id": "u1", "reference": "what was said", "hypotheses": [{"text": "what was sad", "score": -3.1}]}'
"""A line, as refusals show it."""


@dataclass(frozen=True, slots=True)
class ScoredHypothesis:
    """One hypothesis."""

    text: str
    score: float
    """The recogniser's, larger is better."""


@dataclass(frozen=True, slots=True)
class NbestList:
    """The hypotheses of one utterance, the highest score first; those with equal scores in the file's order."""

    utterance_id: str
    reference: str
    hypotheses: tuple[ScoredHypothesis, ...]
    """Empty where the recogniser found nothing: all words of the reference then count as deleted."""
    vocabulary: str | None = None
    """Hash of the language model's vocabulary that the recogniser was made for, where the list says so."""

    @property
    def best(self) -> ScoredHypothesis:
        """The recogniser's own choice; ``IndexError`` where the list is empty."""
        return self.hypotheses[0]


def read_nbest(path: str | Path, at_most: int | None = None, *, measured: bool = True) -> list[NbestList]:
    """The lists of a file in its order, each cut to its ``at_most`` best hypotheses.

    Lists that are not ``measured`` need no reference.

    Raises ``SpeechError`` that lists every problem with its line: lines that are no JSON objects, missing keys, ids
    that stand twice, hypotheses without a text, scores that are missing or no finite numbers; and where the file holds
    no list. Empty lists are let be, so that the test set stays whole.
    """
    problems: list[str] = []
    lists: list[NbestList] = []
    first_lines: dict[str, int] = {}
    for number, record in read_json_lines(path):
        nbest, found = (None, [record]) if isinstance(record, str) else _parse(record, measured)
        if nbest is not None:
            earlier = first_lines.setdefault(nbest.utterance_id, number)
            if earlier != number:
                found.append(f"utterance_id {nbest.utterance_id!r} stands in line {earlier} too")
        problems += [f"line {number}: {problem}" for problem in found]
        if nbest is not None and not problems:
            lists.append(replace(nbest, hypotheses=nbest.hypotheses[:at_most]))
    fail_with_problems(path, problems, FORM)
    if not lists:
        raise SpeechError(f"n-best lists {str(path)!r} hold no utterance; give a file of JSON lines, one list a line")
    return lists


def _parse(record: dict[str, Any], measured: bool) -> tuple[NbestList | None, list[str]]:
    if not measured:
        record = {"reference": "", **record}
    problems = [
        f"has no {key!r} that is text"
        for key in ("utterance_id", "reference")
        if not isinstance(record.get(key), str) or (key == "utterance_id" and not record[key])
    ]
    entries = record.get("hypotheses")
    if not isinstance(entries, list):
        return None, [*problems, "has no list of 'hypotheses'"]
    is_object = [isinstance(entry, dict) for entry in entries]
    without_text = sum(
        1 for ok, e in zip(is_object, entries, strict=True) if not ok or not isinstance(e.get("text"), str)
    )
    without_score = sum(
        1 for ok, e in zip(is_object, entries, strict=True) if ok and finite_number(e.get("score")) is None
    )
    if without_text:
        problems.append(f"{without_text} of {len(entries)} hypotheses have no 'text'")
    if without_score:
        problems.append(f"{without_score} of {len(entries)} hypotheses have no 'score' that is a finite number")
    vocabulary = record.get("vocabulary")
    if vocabulary is not None and not isinstance(vocabulary, str):
        problems.append("'vocabulary' is no hash")
    if problems:
        return None, problems
    hypotheses = [ScoredHypothesis(entry["text"], float(entry["score"])) for entry in entries]
    hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: equal scores stay in their order
    return NbestList(record["utterance_id"], record["reference"], tuple(hypotheses), vocabulary), []


def drawn_lists(lists: Sequence[NbestList], at_most: int | None, seed: int) -> list[NbestList]:
    """At most so many of the lists, in their order.

    Drawn by a hash of the seed and the utterance's id: of any recogniser's lists the same utterances.
    """
    if at_most is None or len(lists) <= at_most:
        return list(lists)

    def drawn(nbest: NbestList) -> bytes:
        return hashlib.sha256(f"{seed}:{nbest.utterance_id}".encode()).digest()

    kept = {nbest.utterance_id for nbest in sorted(lists, key=drawn)[:at_most]}
    return [nbest for nbest in lists if nbest.utterance_id in kept]


def write_nbest(path: str | Path, lists: Iterable[NbestList]) -> None:
    """Write lists, compressed where the name ends in ``.gz``. They are private.

    The same lists give the same bytes, compressed too.
    """
    records = []
    for nbest in lists:
        record: dict[str, Any] = {"utterance_id": nbest.utterance_id, "reference": nbest.reference}
        if nbest.vocabulary is not None:
            record["vocabulary"] = nbest.vocabulary
        record["hypotheses"] = [{"text": entry.text, "score": entry.score} for entry in nbest.hypotheses]
        records.append(json.dumps(record, ensure_ascii=False))
    if str(path).endswith(".gz"):
        with (
            atomic_writer(path, private=True, binary=True) as stream,
            gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as zipped,
        ):
            zipped.writelines(f"{record}\n".encode() for record in records)
    else:
        write_lines(path, records, private=True)


_HASH_DIGITS = 8


def expected_vocabulary(lists: Sequence[NbestList]) -> str | None:
    """Hash of the vocabulary that the lists name; ``SpeechError`` where they name several."""
    named = sorted({nbest.vocabulary for nbest in lists if nbest.vocabulary is not None})
    if len(named) > 1:
        raise SpeechError(
            f"the n-best lists name {len(named)} vocabularies ({', '.join(name[:12] for name in named[:4])}); "
            "rescore the lists of one recogniser at a time"
        )
    return named[0] if named else None


def check_vocabulary(vocabulary: str, expected: str | None, model: str) -> None:
    """``ModelError`` where the model's vocabulary is another one than expected; some first digits will do."""
    if expected is None:
        return
    if len(expected) < _HASH_DIGITS:
        raise ModelError(f"vocabulary hash {expected!r} is too short; give {_HASH_DIGITS} digits or more")
    if not vocabulary.startswith(expected):
        raise ModelError(
            f"model {model!r} has the vocabulary {vocabulary[:12]}, and the recogniser's partner has "
            f"{expected[:12]}; give the language model that belongs to the recogniser, or name this "
            "vocabulary with --vocabulary-hash"
        )
