"""The secret of a clone, from which noise, random draws and the hashes in reports are made.

It is in ``data/private/keys`` next to the private text, mode 0600, and survives ``make clean``. The worktrees of one
git clone share it, since a second key for the same text would give its counts a second noise. Its id is public; the key
itself is in no report.
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
    """``data/private`` of the clone that contains the working folder, in the main worktree if there are several.

    Outside a git checkout it is that of the working folder.
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
    """32 secret bytes for one purpose, always the same for this clone; another purpose gives others.

    The key is made if it is missing. ``ParameterError`` if it is damaged.
    """
    return hmac.digest(_secret(private_home() / _KEY), purpose.encode(), "sha256")


def key_id() -> str | None:
    """Twelve digits that name the key of this clone; ``None`` if it has none yet."""
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
    """Write a new key; of several processes at once, all take the one that was linked first."""
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
