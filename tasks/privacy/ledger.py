"""What has left the private zone, one line a release: ``data/private/ledger.jsonl``.

Noise protects a word from one set of counts. Every further set that is counted anew gives a little more of the same
words away, so epsilons of different sets add up for each unit (basic composition; Dwork and Roth 2014, theorem 3.16). A
fill is made of one set, however often it is drawn from it: two releases with the same counts cost what one costs.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock

from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer
from tasks.files.clone_key import private_home

LEDGER = "ledger.jsonl"


@dataclass(frozen=True, slots=True)
class Release:
    """What one release gave away."""

    name: str
    when: str
    """Date and time of the release, ISO 8601, UTC."""
    cell: str
    """Path of its cell: ``mail/entity_tagger/minilm-top_k-1``."""
    dataset: str
    technique: str
    corpus: str
    """Keyed hash of the private text (``clone_key``)."""
    key: str | None
    """Id of the clone's key; ``None`` where it has none yet."""
    lines: int
    """Lines of the private text."""
    unit: str | None
    """What the epsilon protects: ``line``, ``document``, or ``None`` where the fill read nothing of what was masked."""
    epsilon: float | None
    """0 for a fill that is a function of the masked text and public data; ``None``: none is promised."""
    words_per_unit: int | None
    counts: str | None
    """Id of the set of noisy counts; releases with the same id share its epsilon."""
    files: dict[str, str] = field(default_factory=dict)
    """What left: SHA-256 by name."""
    also: list[str] = field(default_factory=list)
    """Names of the releases of the same lines that this one was put beside, by the user's word."""
    shown_together: float | None = None
    """Share of the words masked by any of them that all of them together show; ``None`` without others."""


def read_ledger(path: Path | None = None) -> list[Release]:
    """All releases, the first one first. ``CorpusError`` where a line is damaged, since the sum would be too small."""
    path = path or private_home() / LEDGER
    if not path.exists():
        return []
    releases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            releases.append(Release(**json.loads(line)))
        except (ValueError, TypeError):
            raise CorpusError(
                f"{str(path)!r}: line {number} is no entry of the ledger; bring back a copy of it, since what has left "
                "cannot be summed without it"
            ) from None
    return releases


def append_to_ledger(release: Release, path: Path | None = None) -> None:
    """Add one release; the file is either the old or the whole new one."""
    path = path or private_home() / LEDGER
    with FileLock(path.with_name(f".{LEDGER}.lock")):
        lines = [*read_ledger(path), release]
        with atomic_writer(path, private=True) as stream:
            stream.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in lines)


def epsilon_spent(releases: Iterable[Release]) -> float | None:
    """Sum over the different sets of counts, for one unit; ``None`` where a release has no epsilon."""
    spent: dict[str | None, float] = {}
    for release in releases:
        if release.epsilon is None:
            return None
        spent[release.counts] = release.epsilon
    return sum(spent.values())


def of_corpus(releases: Sequence[Release], dataset: str) -> list[Release]:
    """The releases of one corpus."""
    return [release for release in releases if release.dataset == dataset]
