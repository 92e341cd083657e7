"""Put private text under DVC, so that no 'dvc push' sends it and no other user can read it.

The file or folder must be in data/raw, and stays there. DVC puts a copy into its cache. NAME.dvc
contains the hash of the text, and goes into git. It also contains 'push: false'. Without that, as
after a bare 'dvc add', a push would send the text. So 'palimpsest run' refuses such a text.

Add the text again after each change.

example:
    palimpsest add data/raw/mail.txt
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from tasks.errors import CorpusError, ParameterError
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, PRIVATE_MODE
from tasks.options import Argument, Command, Options

SUMMARY = "put private text under DVC so that it never leaves this machine"
RAW = Path("data", "raw")


class AddOptions(Options):
    """Options of the command: the text to add."""

    text: Annotated[list[str], Argument(positional=True, metavar="FILE")]
    """file or folder in data/raw"""


def run(options: AddOptions) -> int:
    """Track each text, close it to other users, and print the next step."""
    from flows.graph.graph import project_folder
    from flows.graph.private_sources import named_sources

    root = project_folder()
    # A clone has none; without it, the 'mv' that a refusal suggests would make a file of that name.
    (root / RAW).mkdir(parents=True, exist_ok=True)
    names = [_name_below(root, text) for text in options.text]
    add(root, names)
    known = {source for _, source in named_sources(root)}
    for name in names:
        print(f"{name} is under DVC and stays here: 'dvc push' leaves it out. {name}.dvc goes into git.")
        if name not in known:
            example = f"{Path(name).name.split('.')[0]}: {{kind: files, source: {name}}}"
            print(f"Next, in params.yaml: '{example}' under corpora, and its name in compare.datasets.")
            print("Recordings have their place under speech.corpora instead (docs/speech.md).")
    return 0


def add(root: Path, names: Iterable[str]) -> None:
    """Add files and folders of ``data/raw`` to DVC, so that no push sends them and no other user can read them."""
    from dvc.repo import lock_repo

    from flows.graph.graph import open_repository
    from tasks.files.private_folders import close_private_folders

    (root / RAW).chmod(PRIVATE_FOLDER_MODE)
    close_private_folders(root)
    with open_repository(root) as repository:
        for name in names:
            # One lock for both: no push sees the file before its 'push: false'.
            with lock_repo(repository):
                (stage,) = repository.add(name)
                for output in stage.outs:
                    output.can_push = False
                stage.dump()
            _close(root / name)


def _name_below(root: Path, text: str) -> str:
    """The path in the checkout; an error if it is not in ``data/raw``."""
    path = Path(os.path.abspath(text))
    if not path.exists():
        raise CorpusError(f"{text!r} is not there; give a file or folder in {str(RAW)!r}")
    if path.is_relative_to(root / RAW) and path.parent != root / RAW:
        # Git does not list deeper files, so neither git nor DVC would see the .dvc file.
        whole = RAW / path.relative_to(root / RAW).parts[0]
        raise ParameterError(f"{text!r} is part of a folder: 'palimpsest add {whole}' adds all of it")
    if path.is_symlink() or path.parent != root / RAW:
        raise ParameterError(f"{text!r} is not in {str(RAW)!r}: {shlex.join(['mv', text, str(root / RAW)])}")
    return path.relative_to(root).as_posix()


def _close(path: Path) -> None:
    """Set modes 0600 and 0700; files of other users retain their modes."""
    for one in (path, *path.rglob("*")):
        if not one.is_symlink() and one.stat().st_uid == os.getuid():
            one.chmod(PRIVATE_FOLDER_MODE if one.is_dir() else PRIVATE_MODE)


COMMAND = Command(AddOptions, run)
