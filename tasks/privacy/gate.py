"""The gate of a release: all checks of a cell before it may leave, in one place.

In this order: files and reports are of one state, few enough identifiers are unmasked, attacks are within the limits,
and the ledger of earlier releases agrees. ``release`` runs the checks, and so does ``release_outcome``, which only
reports the outcome.
"""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from tasks.errors import PalimpsestError, ParameterError
from tasks.files.clone_key import key_id, private_home
from tasks.parameters.parameter_file import Parameters
from tasks.privacy.checks import Check, attack_checks, attacks_on, percent, unmasked, unmasked_checks, without_figures
from tasks.privacy.earlier_releases import SharedLines, shared_lines
from tasks.privacy.ledger import Release, check_budget, check_key, epsilon_of, read_ledger
from tasks.privacy.released_cell import FilledCell, find_cell
from tasks.records.stage_report import content_hash
from tasks.results.report_index import REPORTS
from tasks.review.unmasked import TechniqueUnmasked
from tasks.spelling import nearest

RELEASES = Path("releases")
TEXT, MODEL = "text.txt", "model"
CARD, DOSSIER = "README.md", "DOSSIER.md"
_SHOWN = 3
"""Failed checks that a refusal lists."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A cell, and the results of all checks."""

    entry: Release
    """Entry for the ledger."""
    files: dict[str, Path]
    """Released files besides card and dossier, by name in the release."""
    earlier: SharedLines
    unmasked: TechniqueUnmasked
    checks: list[Check]
    problems: list[str]
    """Reasons against the release, each with a remedy; empty if it may leave."""
    figures_left_out: bool = False
    """Whether it has no figure that read masked words."""

    def public(self) -> "Examined":
        """The data for card and dossier in the release: with an epsilon, nothing that read masked words."""
        if self.entry.epsilon is None:
            return self
        return replace(self, checks=without_figures(self.checks), figures_left_out=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a release of a cell."""

    passes: bool
    command: str | None
    """Shell command of the release; ``None`` if it would be refused."""
    missing: list[str]
    """Sentences on missing requirements."""


def release_outcome(cell_path: str, parameters: Parameters, *, with_model: bool = False) -> Outcome:
    """The outcome of 'palimpsest release' for a cell such as ``chat/every_tagger/minilm-log_linear-1``.

    Takes about a second for 8,000 lines: no tagger and no attack runs. Paths are relative to the project folder.
    """
    try:
        cell = find_cell(cell_path, REPORTS, with_model=with_model)
        before = read_ledger()
        cell.check_one_state()
        made = same_release(cell, before)
        taken = {release.name for release in before}
        numbered = (f"{cell.cell.dataset}_{number}" for number in count(1))
        free = next(name for name in numbered if name not in taken and not (RELEASES / name).exists())
        if made is None and (problems := examine(cell, free, (), parameters, before).problems):
            return Outcome(False, None, problems)
    except PalimpsestError as error:
        return Outcome(False, None, [str(error)])
    name = made.name if made else free
    command = ["palimpsest", "release", cell_path, "--name", name, *(["--with-model"] if with_model else [])]
    return Outcome(True, shlex.join(command), [])


def same_release(cell: FilledCell, before: Sequence[Release]) -> Release | None:
    """The release that has exactly this cell's text and model, unless it was withdrawn."""
    digests = _digests(files_of(cell))
    for release in before:
        left = {name: digest for name, digest in release.files.items() if name not in (CARD, DOSSIER)}
        if left == digests and not release.withdrawn:
            return release
    return None


def examine(
    cell: FilledCell, name: str, also: Sequence[str], parameters: Parameters, before: Sequence[Release]
) -> Examined:
    """Run all checks of a cell. ``ParameterError`` or ``CorpusError`` if none can be run.

    ``cell``: with ``adapt``, the model is released too. ``also``: earlier releases whose lines it may share.
    ``before``: the ledger.
    """
    _check_name(name, before)
    cell.check_one_state()
    allowed = parameters.release
    digests = _digests(files_of(cell))
    _refuse_same(digests, before)
    row = attacks_on(cell)
    leaves = cell.applied or cell
    earlier = shared_lines(leaves.raw, leaves.sidecar, before)
    sample = shared_lines(cell.raw, cell.sidecar, before) if cell.applied else earlier
    found = unmasked(cell, sample)
    checks = [*unmasked_checks(cell, found, allowed.unmasked_direct), *attack_checks(cell, row, allowed.at_most)]
    problems = [
        f"{check.name}: {check.figure}, limit {check.limit.removeprefix('at most ')}. {check.remedy}"
        for check in checks
        if check.passed is False
    ]
    entry = _entry(cell, name, digests, earlier, also)
    sharing, counted = earlier.among(before, entry.dataset), sample.among(before, entry.dataset)
    total = sample.spent(counted, entry.counts, entry.epsilon or 0.0, entry.unit)
    if cell.applied:
        # Counts read the sample alone: they cost no other line anything.
        total = max(total, earlier.spent(sharing, None, 0.0, entry.unit))
        sharing = [release for release in before if release in sharing or release in counted]
    if all(release.epsilon is not None for release in (*sharing, entry)):
        entry = replace(entry, spent=total)
    try:
        _check_also(earlier, also, before)
        check_key([*sharing, entry], key=key_id(), other_keys=allowed.other_keys)
        check_budget(sharing, total=total, epsilon=entry.epsilon, budget=allowed.epsilon_budget)
    except ParameterError as error:
        problems.append(str(error))
    return Examined(entry, files_of(cell), earlier, found, checks, problems)


def refuse(cell: FilledCell, problems: Sequence[str]) -> None:
    """Raise ``ParameterError`` if something is missing: at most five lines."""
    if not problems:
        return
    more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    first = f"{cell.cell.path!r} is not released: {len(problems)} check{'s' * (len(problems) > 1)} failed."
    raise ParameterError("\n  ".join([first, *problems[:_SHOWN], *more]))


def check_form(name: str) -> None:
    """Raise ``ParameterError`` if a name is invalid for any release."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{,99}", name):
        raise ParameterError(
            f"--name {name[:120]!r}: a release's name has letters, digits, hyphens and underscores only, 100 at most"
        )


def _check_name(name: str, before: Sequence[Release]) -> None:
    check_form(name)
    known = {release.name for release in before}
    if name in known or (RELEASES / name).exists():
        raise ParameterError(f"--name {name!r}: there is such a release, with other files. Give another name.")
    elsewhere = sorted(path.stem for path in RELEASES.glob("*.dvc") if path.stem not in known)
    if elsewhere:
        raise ParameterError(
            f"{str(RELEASES / elsewhere[0])!r} was released in another clone, and the ledger of this one does not know "
            "what it shows. Copy data/private/ledger.jsonl, releases and keys from there, or release there."
        )


def files_of(cell: FilledCell) -> dict[str, Path]:
    """The released files besides card and dossier, by name in the release."""
    files = {TEXT: cell.applied.text, **cell.applied.files} if cell.applied else {TEXT: cell.text}
    if cell.model is not None:
        inside = sorted(path for path in cell.model.rglob("*") if path.is_file())
        files |= {f"{MODEL}/{path.relative_to(cell.model).as_posix()}": path for path in inside}
    return files


def _refuse_same(digests: dict[str, str], before: Sequence[Release]) -> None:
    for release in before:
        if digests.items() <= release.files.items():
            raise ParameterError(
                f"Release {release.name!r} of {release.when[:10]} has the same files"
                + (f" and was withdrawn on {release.withdrawn[:10]}." if release.withdrawn else ". Share that one.")
            )


def _check_also(earlier: SharedLines, also: Sequence[str], before: Sequence[Release]) -> None:
    names = [release.name for release in before]
    for name in also:
        if name not in names:
            raise ParameterError(
                f"--also {name!r}: the ledger has no such release{nearest(name, names)}. It has: "
                f"{', '.join(names) or 'none'}."
            )
    unknown = [name for name in earlier.unknown if name not in also]
    if unknown:
        raise ParameterError(
            f"The private copy of release {unknown[0]!r} is not in {str(private_home() / RELEASES)!r}, so nobody "
            f"knows which lines both share. Restore it, or add --also {unknown[0]} if its lines are others."
        )
    if earlier.lines.keys() <= set(also):
        return
    listed = ", ".join(
        f"{name!r} ({lines:,} lines"
        + (f", {earlier.edited[name]:,} of them edited)" if name in earlier.edited else ")")
        for name, lines in earlier.lines.items()
    )
    shown = f"show {percent(earlier.share)} of the words that any of them masks, and " if earlier.shown else ""
    options = " ".join(f"--also {name}" for name in earlier.lines)
    raise ParameterError(
        f"Lines of this text were released in {listed}. Together they {shown}tell substitutes from real words, "
        f"and epsilons add up. Share that release again, or accept it: {options}"
    )


def _entry(cell: FilledCell, name: str, digests: dict[str, str], earlier: SharedLines, also: Sequence[str]) -> Release:
    method = cell.method
    counted = cell.fill["measured"]["counted_frequencies"] if method.counts_masked_words else None
    return Release(
        name=name,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        cell=cell.cell.path,
        dataset=str(cell.cell.dataset),
        technique=str(cell.cell.technique),
        corpus=content_hash((cell.applied or cell).raw),
        key=counted["key"] if counted is not None else key_id(),
        lines=cell.applied.report["lines"] if cell.applied else cell.mask["measured"]["lines"],
        sample_lines=cell.applied.report["sample_lines"] if cell.applied else None,
        unit=method.counts.unit if counted is not None else None,
        epsilon=epsilon_of(method),
        words_per_unit=method.counts.words_per_unit if counted is not None else None,
        counts=counted["counts"] if counted is not None else None,
        files=digests,
        also=list(dict.fromkeys(also)),
        shown_together=earlier.share if earlier.lines else None,
    )


def digest(path: Path) -> str:
    """The plain SHA-256, so that every recipient of the file can compare it with the ledger."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digests(files: dict[str, Path]) -> dict[str, str]:
    return {name: digest(path) for name, path in files.items()}
