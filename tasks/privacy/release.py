"""Writes a release: private copy, files, card, dossier, entry of the ledger; a failure leaves nothing in place.

The ledger is written before the folder is in place, and DVC tracks the folder last: nothing can leave without an entry
in the ledger.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os.path import relpath
from pathlib import Path

from filelock import FileLock

from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder, make_folder
from tasks.files.clone_key import private_home
from tasks.parameters.parameter_file import Parameters
from tasks.privacy.earlier_releases import COUNTED, RAW, SIDECAR
from tasks.privacy.gate import CARD, DOSSIER, RELEASES, Examined, digest, examine, refuse, same_release
from tasks.privacy.ledger import append_to_ledger, read_ledger
from tasks.privacy.pages import card, dossier
from tasks.privacy.released_cell import FilledCell


@dataclass(frozen=True, slots=True)
class Made:
    """A release that was made."""

    folder: Path
    examined: Examined | None
    """Results of the checks; ``None`` if the release existed before."""

    @property
    def private_dossier(self) -> Path | None:
        """The dossier with all figures, if the one in the release is incomplete."""
        withheld = self.examined is not None and self.examined.public().figures_left_out
        return Path(relpath(private_home() / RELEASES / self.folder.name / DOSSIER)) if withheld else None


def make_release(
    cell: FilledCell, name: str, also: Sequence[str], parameters: Parameters, approved_by: Sequence[str] = ()
) -> Made:
    """Check a cell and write it to ``releases/NAME``; a refusal is a ``ParameterError`` or ``CorpusError``.

    ``cell``: with ``adapt``, the model is released too. ``also``: earlier releases whose lines it may share.
    ``approved_by``: names of persons, for dossier and ledger.
    """
    home = private_home()
    make_folder(home / RELEASES, private=True)
    # Two releases at once would not see each other's entry.
    with FileLock(home / f".{RELEASES}.lock"):
        before = read_ledger()
        made = same_release(cell, before)
        if made is not None and made.name == name:
            return Made(RELEASES / name, None)
        examined = examine(cell, name, also, parameters, before)
        refuse(cell, examined.problems)
        examined = replace(examined, entry=replace(examined.entry, approved_by=list(approved_by)))
        pages = {
            CARD: card(cell, examined.public(), parameters.release, before),
            DOSSIER: dossier(cell, examined.public(), parameters.release, before),
        }
        whole = dossier(cell, examined, parameters.release, before)
        return Made(_write(cell, examined, pages, whole), examined)


def _write(cell: FilledCell, examined: Examined, pages: dict[str, str], whole: str) -> Path:
    """Write the private copy with the ``whole`` dossier, the files and the ledger's entry; then rename the folder."""
    entry = examined.entry
    with atomic_folder(private_home() / RELEASES / entry.name, private=True) as copy:
        leaves = cell.applied or cell
        private = {RAW: leaves.raw, SIDECAR: leaves.sidecar}
        if cell.applied and entry.counts:
            make_folder(copy / COUNTED, private=True)
            private |= {f"{COUNTED}/{RAW}": cell.raw, f"{COUNTED}/{SIDECAR}": cell.sidecar}
        for name, path in private.items():
            shutil.copyfile(path, copy / name)
            (copy / name).chmod(0o600)
        (copy / DOSSIER).write_text(whole, encoding="utf-8")
        (copy / DOSSIER).chmod(0o600)
    folder = RELEASES / entry.name
    with atomic_folder(folder) as released:
        for name, path in examined.files.items():
            make_folder((released / name).parent)
            shutil.copyfile(path, released / name)
            (released / name).chmod(PUBLIC_MODE)
        for name, text in pages.items():
            (released / name).write_text(text, encoding="utf-8")
            (released / name).chmod(PUBLIC_MODE)
            entry.files[name] = digest(released / name)
        append_to_ledger(entry)
    return folder
