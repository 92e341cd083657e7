"""The ledger of releases, one line a release: ``data/private/ledger.jsonl``.

Epsilon is a promise about the masked words of the released text, given the masked text. A fill is made from masked
text, public data and a public seed, unless something reads the sidecar. If nothing does, epsilon is 0. If only noisy
counts do, their epsilon is that of the fill (post-processing; Dwork and Roth 2014, proposition 2.1). Surrogates and
matched classes read the masked words themselves: no epsilon holds. Epsilons of different sets of counts add up for each
unit, a line or a document of any corpus (basic composition; theorem 3.16). Two releases with the same counts cost as
much as one. ``earlier_releases`` finds the releases that contain a unit.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

from filelock import FileLock

from tasks.errors import CorpusError, ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.files.clone_key import private_home
from tasks.filling.settings import CountingMethod, FillingMethod
from tasks.spelling import nearest

LEDGER = "ledger.jsonl"


@dataclass(frozen=True, slots=True)
class Release:
    """Record of one release."""

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
    """Id of the clone's key; ``None`` if it has none yet."""
    lines: int
    """Lines of the private text."""
    unit: str | None
    """Unit of the epsilon: ``line``, ``document``, or ``None`` if the fill read no masked word."""
    epsilon: float | None
    """Epsilon: 0 for a fill that is a function of the masked text and public data; ``None``: none holds."""
    words_per_unit: int | None
    counts: str | None
    """Id of the set of noisy counts; releases with the same id share its epsilon."""
    files: dict[str, str] = field(default_factory=dict)
    """Released files: SHA-256 by name."""
    also: list[str] = field(default_factory=list)
    """Names of earlier releases of the same lines, which the user named with ``--also``."""
    spent: float | None = None
    """Largest sum of epsilons for a unit of its text, over all releases up to this one; ``None`` if one has none."""
    shown_together: float | None = None
    """Share of the words masked by any of them that all of them together show; ``None`` without others."""
    approved_by: list[str] = field(default_factory=list)
    """Names of the persons who approved it, on the day of ``when``."""
    sample_lines: int | None = None
    """Of ``lines``, those in the sample of the run: a cell was applied to the others later, and counts do not read
    them. ``None``: the text is the run's own."""
    withdrawn: str | None = None
    """Date and time of its withdrawal, ISO 8601, UTC. It stays in every sum: nobody can unread it."""
    withdrawn_for: str | None = None
    """Reason of the withdrawal."""


def read_ledger() -> list[Release]:
    """All releases, the first one first. ``CorpusError`` for a damaged line, since the sum would be too
    small."""
    path = private_home() / LEDGER
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


def append_to_ledger(release: Release) -> None:
    """Add one release; the file is either the old or the whole new one."""
    with _changing() as releases:
        releases.append(release)


def withdraw(name: str, reason: str) -> None:
    """Record the withdrawal of a release now. ``ParameterError`` if it is unknown, or was withdrawn before."""
    with _changing() as releases:
        places = {release.name: place for place, release in enumerate(releases)}
        if name not in places:
            raise ParameterError(
                f"The ledger has no release {name!r}{nearest(name, places)}. List them with: palimpsest ledger"
            )
        release = releases[places[name]]
        if release.withdrawn:
            raise ParameterError(f"Release {name!r} was withdrawn already, on {release.withdrawn[:10]}.")
        when = datetime.now(UTC).isoformat(timespec="seconds")
        releases[places[name]] = replace(release, withdrawn=when, withdrawn_for=reason)


@contextmanager
def _changing() -> Iterator[list[Release]]:
    """The ledger, to be changed; it is written if no error is raised."""
    path = private_home() / LEDGER
    with FileLock(path.with_name(f".{LEDGER}.lock")):
        releases = read_ledger()
        yield releases
        with atomic_writer(path, private=True) as stream:
            stream.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in releases)


def epsilon_spent(releases: Iterable[Release]) -> float | None:
    """The sum over the different sets of counts, for one unit; ``None`` if a release has no epsilon."""
    spent: dict[str | None, float] = {}
    for release in releases:
        if release.epsilon is None:
            return None
        spent[release.counts] = release.epsilon
    return sum(spent.values())


def of_corpus(releases: Sequence[Release], dataset: str) -> list[Release]:
    """The releases of one corpus."""
    return [release for release in releases if release.dataset == dataset]


def linked_to(releases: Sequence[Release], dataset: str) -> list[Release]:
    """The releases of a corpus, and those of other names that share lines with them, also indirectly."""
    names = {release.name for release in of_corpus(releases, dataset)}
    while (
        linked := {
            name
            for release in releases
            if release.name in names or names.intersection(release.also)
            for name in (release.name, *release.also)
        }
        - names
    ):
        names |= linked
    return [release for release in releases if release.name in names]


def check_budget(releases: Sequence[Release], *, total: float, epsilon: float | None, budget: float | None) -> None:
    """Raise ``ParameterError`` if one more release would exceed the budget of epsilon for a unit.

    ``releases``: those with lines of it; ``total``: the sum of theirs and its own for a unit; ``epsilon``: its own, or
    ``None`` for a fill without one; ``budget``: ``None`` for no limit.
    """
    if budget is None:
        return
    unbounded = [release.name for release in releases if release.epsilon is None]
    if unbounded or epsilon is None:
        what = f"release {unbounded[0]!r} has" if unbounded else "this fill has"
        raise ParameterError(
            f"{what} no epsilon, so that no sum stays within release.epsilon_budget={budget:g}; "
            "set it to null, or release only fills with prior: counted"
        )
    if total > budget * (1 + 1e-9):
        names = ", ".join(repr(release.name) for release in releases)
        raise ParameterError(
            f"epsilon {epsilon:g} and {total - epsilon:g} of releases {names or 'before'} are {total:g}, above "
            f"release.epsilon_budget={budget:g}; take a smaller epsilon, counts that have left already, or raise the "
            "budget"
        )


def check_key(releases: Sequence[Release], *, key: str | None, other_keys: Sequence[str]) -> None:
    """Raise ``ParameterError`` if counts of these lines were released with another key, and no setting names it.

    ``key``: id of this clone's, or ``None`` if it has none yet.
    """
    for release in releases:
        if release.counts is not None and release.key != key and release.key not in other_keys:
            raise ParameterError(
                f"release {release.name!r} of corpus {release.dataset!r} was counted by key {release.key!r}, and this "
                f"clone's is {key!r}: a second noise for the same words; bring back the folder data/private/keys of "
                f"then, or set release.other_keys: ['{release.key}'] to have their epsilons added up"
            )


def epsilon_of(settings: FillingMethod) -> float | None:
    """Epsilon of a fill by a method of ``filling``, and of all of its ``copies`` together; ``None``: none
    holds."""
    if settings.follows_originals:
        return None
    counts = settings.counts if isinstance(settings, CountingMethod) else None
    return counts.epsilon if counts else 0.0
