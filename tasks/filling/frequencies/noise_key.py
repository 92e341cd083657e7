"""The secret that noise is made of, where a fill needs noise that nobody can take off again.

The same key, counts and parameters give the same noise, so that a fill that is repeated or goes on after it was killed
writes the same bytes. Another clone has another key: its fills differ in their noise. A lost key is made anew; what is
counted then is another release of the same words.
"""

import os
import secrets
from pathlib import Path

from tasks.errors import ParameterError
from tasks.files.atomic_file import make_folder

DEFAULT_PATH = ".palimpsest/noise_key"
_BYTES = 32


def noise_key(path: str | Path = DEFAULT_PATH) -> bytes:
    """The key of this folder, 32 bytes, mode 0600; made where there is none. ``ParameterError`` where it is damaged."""
    path = Path(path)
    make_folder(path.parent, private=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.partial")
    if not path.exists():
        # Several fills may start at once: all of them take the key that was linked first.
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
    key = path.read_bytes()
    if len(key) != _BYTES:
        raise ParameterError(
            f"{str(path)!r} has {len(key)} bytes instead of {_BYTES}; remove it, and another key is made: what is "
            "counted then is another release, and the epsilons add up"
        )
    return key
