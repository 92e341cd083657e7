"""One release: checked, written, and entered into the ledger, in this order; whatever fails leaves nothing behind.

The ledger is written before the folder is there, and DVC hears of the folder last: nothing can leave that the ledger
does not know of.
"""

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from tasks.audit.clear_text import configured_taggers, masked_words
from tasks.errors import ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder, make_folder
from tasks.files.clone_key import key_id, private_home
from tasks.filling.frequencies.released_counts import mark_released
from tasks.parameters.parameter_file import Parameters
from tasks.privacy.card import CardFacts, card
from tasks.privacy.earlier_releases import RAW, SIDECAR, SharedLines, shared_lines
from tasks.privacy.gate import (
    Check,
    attacks_on,
    checks_of,
    clear_words,
    percent,
    refuse_beyond,
    refuse_clear_words,
    with_clear_share,
)
from tasks.privacy.ledger import Release, append_to_ledger, check_budget, check_key, epsilon_of, of_corpus, read_ledger
from tasks.privacy.released_cell import FilledCell
from tasks.records.stage_report import content_hash
from tasks.spelling import nearest

RELEASES = Path("releases")
TEXT, CARD, MODEL = "text.txt", "README.md", "model"


@dataclass(frozen=True, slots=True)
class Made:
    """A release that was made."""

    folder: Path
    checks: list[Check]
    earlier: SharedLines


def make_release(cell: FilledCell, name: str, also: Sequence[str], parameters: Parameters) -> Made:
    """Check a cell and write it to ``releases/NAME``; ``ParameterError`` or ``CorpusError`` says why it may not leave.

    ``cell``: with ``adapt``, the model is released too. ``also``: earlier releases of the same lines that it may stand
    beside.
    """
    home = private_home()
    make_folder(home / RELEASES, private=True)
    # Two at once would not see each other's entry.
    with FileLock(home / f".{RELEASES}.lock"):
        before = read_ledger()
        _check_name(name, before)
        cell.check_one_state()
        files = _files(cell)
        _refuse_same(files, before)
        earlier = shared_lines(cell.raw, cell.sidecar, before, home / RELEASES)
        _check_also(earlier, also, before)
        entry = _entry(cell, name, files, earlier)
        allowed = parameters.release
        of_this_corpus = of_corpus(before, entry.dataset)
        check_key([*of_this_corpus, entry], key=key_id(), other_keys=allowed.other_keys)
        check_budget(of_this_corpus, counts=entry.counts, epsilon=entry.epsilon, budget=allowed.epsilon_budget)
        attacks = attacks_on(cell)
        limit = allowed.clear_share
        found = clear_words(cell, configured_taggers(parameters.masking.values()), parameters.resources.threads)
        refuse_clear_words(cell, found, limit)
        private = [*map(masked_words, cell.masks), *(words.by_line for words in found)]
        attacks = with_clear_share(attacks, earlier.clear_share(cell.raw, private))
        refuse_beyond(cell, attacks, allowed.at_most)
        checks = checks_of(cell, found, limit, attacks, allowed.at_most)
        of_others = {one.name: one.cell for one in before}
        facts = CardFacts(name, allowed.license, allowed.language, checks, earlier, of_others)
        return Made(_write(cell, entry, card(cell, facts), home / RELEASES), checks, earlier)


def check_form(name: str) -> None:
    """``ParameterError`` where a release cannot be called so, whatever there is."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{,99}", name):
        shown = f"--name {name[:120]!r}"
        raise ParameterError(
            f"{shown}: a release's name has letters, digits, hyphens and underscores only, 100 at most"
        )


def _check_name(name: str, before: Sequence[Release]) -> None:
    check_form(name)
    if name in {release.name for release in before} or (RELEASES / name).exists():
        raise ParameterError(
            f"--name {name!r}: there is such a release; give another name, what has left stays as it is"
        )
    known = {release.name for release in before}
    elsewhere = sorted(path.stem for path in RELEASES.glob("*.dvc") if path.stem not in known)
    if elsewhere:
        raise ParameterError(
            f"{str(RELEASES / elsewhere[0])!r} was released in another clone, and the ledger of this one does not know "
            "what it shows; bring data/private/ledger.jsonl, releases and keys from there, or release there"
        )


def _files(cell: FilledCell) -> dict[str, Path]:
    """What leaves besides the card, by its name in the release."""
    files = {TEXT: cell.text}
    if cell.model is not None:
        inside = sorted(path for path in cell.model.rglob("*") if path.is_file())
        files |= {f"{MODEL}/{path.relative_to(cell.model).as_posix()}": path for path in inside}
    return files


def _refuse_same(files: dict[str, Path], before: Sequence[Release]) -> None:
    digests = {name: _digest(path) for name, path in files.items()}
    for release in before:
        if digests.items() <= release.files.items():
            raise ParameterError(
                f"release {release.name!r} of {release.when[:10]} has the same files already; there is nothing new to "
                "release, so give that one away"
            )


def _check_also(earlier: SharedLines, also: Sequence[str], before: Sequence[Release]) -> None:
    names = [release.name for release in before]
    for name in also:
        if name not in names:
            raise ParameterError(
                f"--also {name!r}: the ledger has no such release{nearest(name, names)}; it has: "
                f"{', '.join(names) or 'none'}"
            )
    unknown = [name for name in earlier.unknown if name not in also]
    if unknown:
        raise ParameterError(
            f"the private copy of release {unknown[0]!r} is not in {str(private_home() / RELEASES)!r}, so nobody "
            f"can say which lines both share; bring it back, or say --also {unknown[0]} if its lines are others"
        )
    missing = [name for name in earlier.lines if name not in also]
    if missing:
        listed = ", ".join(f"{name!r} ({earlier.lines[name]:,} lines)" for name in earlier.lines)
        raise ParameterError(
            f"lines of this text have left already, in {listed}: with this one beside, whoever has all of them sees "
            f"{percent(earlier.share)} of the words that any of them masks; give that release away again, or say "
            f"{' '.join(f'--also {name}' for name in earlier.lines)} if that share may be seen"
        )


def _entry(cell: FilledCell, name: str, files: dict[str, Path], earlier: SharedLines) -> Release:
    method = cell.method
    counted = cell.fill["measured"]["counted_frequencies"] if method.counts_masked_words else None
    epsilon = epsilon_of(method)
    return Release(
        name=name,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        cell=cell.cell.path,
        dataset=str(cell.cell.dataset),
        technique=str(cell.cell.technique),
        corpus=content_hash(cell.raw),
        key=counted["key"] if counted is not None else key_id(),
        lines=cell.mask["measured"]["lines"],
        unit=method.counts.unit if counted is not None else None,
        epsilon=epsilon,
        words_per_unit=method.counts.words_per_unit if counted is not None else None,
        counts=counted["counts"] if counted is not None else None,
        files={name: _digest(path) for name, path in files.items()},
        also=[*earlier.lines, *earlier.unknown],
        shown_together=earlier.share if earlier.lines else None,
    )


def _write(cell: FilledCell, entry: Release, text: str, copies: Path) -> Path:
    """The private copy, the files, the ledger's entry; then the folder is put in place."""
    with atomic_folder(copies / entry.name, private=True) as copy:
        for name, path in {RAW: cell.raw, SIDECAR: cell.sidecar}.items():
            shutil.copyfile(path, copy / name)
            (copy / name).chmod(0o600)
    folder = RELEASES / entry.name
    with atomic_folder(folder) as released:
        for name, path in _files(cell).items():
            make_folder((released / name).parent)
            shutil.copyfile(path, released / name)
            (released / name).chmod(PUBLIC_MODE)
        (released / CARD).write_text(text, encoding="utf-8")
        (released / CARD).chmod(PUBLIC_MODE)
        entry.files[CARD] = _digest(released / CARD)
        if entry.counts is not None:
            # Refuses where words would leave twice, so it comes before the entry.
            mark_released(cell.fill["measured"]["counted_frequencies"])
        append_to_ledger(entry)
    return folder


def _digest(path: Path) -> str:
    """Plain SHA-256: whoever has the file may hold it against the ledger."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
