"""The secret of a clone: what noise, draws and the hashes in reports are made of.

It lies in ``data/private/keys`` beside the private text, mode 0600, and outlives outputs: ``make clean`` leaves it
alone. The worktrees of one git clone share it, since a second key for the same text would give its counts a second
noise. Its id is public; the key itself stands in no report.
"""

import hmac
import os
import secrets
from pathlib import Path

from tasks.errors import ParameterError
from tasks.files.atomic_file import make_folder

_KEY = Path("keys", "clone_key")
_BYTES = 32


def private_home() -> Path:
    """``data/private`` of the clone that the working folder belongs to: of its main worktree, where it has several.

    Where no folder above is a git checkout it is that of the working folder.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        git = folder / ".git"
        if git.is_dir():
            return folder / "data" / "private"
        if git.is_file():
            # "gitdir: MAIN/.git/worktrees/NAME"
            named = Path(git.read_text(encoding="utf-8").partition(":")[2].strip())
            common = (folder / named).resolve().parent.parent
            return (common.parent if common.name == ".git" else folder) / "data" / "private"
    return here / "data" / "private"


def clone_key(purpose: str) -> bytes:
    """32 secret bytes for one purpose, the same whenever this clone asks; another purpose gives others.

    The key is made where there is none. ``ParameterError`` where it is damaged.
    """
    return hmac.digest(_secret(private_home() / _KEY), purpose.encode(), "sha256")


def key_id() -> str | None:
    """Twelve digits that name the key of this clone; ``None`` where it has none yet."""
    path = private_home() / _KEY
    return clone_key("id").hex()[:12] if path.exists() else None


def _secret(path: Path) -> bytes:
    if not path.exists():
        _make(path)
    key = path.read_bytes()
    if len(key) != _BYTES:
        raise ParameterError(
            f"{str(path)!r} has {len(key)} bytes instead of {_BYTES}; bring back the copy that made this clone's "
            "releases. Without one, remove it: what is counted then is counted with a second noise, and epsilons add up"
        )
    return key


def _make(path: Path) -> None:
    """Write a new key; of several processes that do so at once, all take the one that was linked first."""
    make_folder(path.parent, private=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(secrets.token_bytes(_BYTES))
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
