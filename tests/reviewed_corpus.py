"""A small private corpus that two techniques have masked, with a plan to review it: answers can be found by hand."""

import shutil
from pathlib import Path

from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.review import record
from tasks.review.plan import Plan, Stratum
from tasks.review.reading import Reading

ROOT = Path(__file__).parents[1]
LINES = (
    "Anna Smith lives in Rome.",
    "Call 555-1234 🙂 and ask for Bob.",
    "Nothing to see here.",
    "👍🏽 Zoë said hi to Tom's aunt.",
    "Nothing to see here.",
    "The end.",
)
DOCUMENTS = ("1", "1", "1", "2", "2", "2")
FOUND = {0: [("Anna", "PERSON"), ("Smith", "PERSON"), ("Rome", "LOCATION")], 1: [("555-1234", "CONTACT")]}
"""What the reference reader marks, by line."""
MASKED = {0: [("Anna", "PERSON"), ("Smith", "PERSON")]}
"""What the technique ``allow_list`` masks."""
QUEUE = (3, 0, 2, 1, 5, 4)
"""Lines in the order of the plan."""


def make_corpus(folder: Path) -> Path:
    """The folder of an experiment with the corpus ``mail`` in it; tests change into it."""
    text = folder / "data" / "private" / "corpora" / "mail" / "train.txt"
    text.parent.mkdir(parents=True)
    text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    text.with_name("train.documents").write_text("".join(f"{name}\n" for name in DOCUMENTS), encoding="utf-8")
    shutil.copy(ROOT / "params.yaml", folder)
    for technique, words in (("every_tagger", FOUND), ("allow_list", MASKED)):
        place = folder / "data" / "private" / "masked" / "mail" / "train" / technique
        place.mkdir(parents=True)
        write_sidecar(place / "sidecar.jsonl", [_spans(number, words.get(number, [])) for number in range(len(LINES))])
    return folder


def plan(lines: tuple[str, ...] = LINES) -> Plan:
    """One stratum, in the order of ``QUEUE``."""
    return Plan(record.text_digest(lines), 1, (Stratum("all", len(lines)),), tuple((line, 0) for line in QUEUE))


def begin(reviewer: str = "ann", **given: object) -> Reading:
    """A reading of the corpus in the current folder, whose review has begun with the plan."""
    if not record.path_of("mail").exists():
        record.create(record.path_of("mail"), plan())
    return Reading("mail", "allow_list", reviewer, 20.0, **given)


def mark(line: int, word: str, label: str = "PERSON", direct: bool = True) -> record.Mark:
    """A word of a line as marked."""
    start = LINES[line].index(word)
    return record.Mark(start, start + len(word), label, direct)


def _spans(number: int, words: list[tuple[str, str]]) -> list[MaskedSpan]:
    starts = [(LINES[number].index(word), word, label) for word, label in words]
    return [MaskedSpan(s, s + len(word), label, "by hand", word, i) for i, (s, word, label) in enumerate(starts)]
