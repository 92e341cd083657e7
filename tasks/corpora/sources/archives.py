"""Files of an archive (zip, tar) and compressed files, unpacked into a private folder.

A name that leads out of the folder is refused, and so is an archive that unpacks to much more than text does. Links and
devices are not unpacked. Archives in an archive stay packed: a folder's reader names them as left out.
"""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from tasks.corpora.limits import LARGEST_RATIO, LONGEST_LINE
from tasks.corpora.sources.compressed_lines import damaged, decompressed
from tasks.corpora.text_lines import refuse_long
from tasks.errors import CorpusError

_CHUNK = 1 << 20
_MOST_FILES = 100_000


def unpacked(path: Path) -> tuple[TemporaryDirectory[str], Path]:
    """A private folder with the files of an archive, and its path; the folder lasts as long as the first of them.

    Raises the errors of ``unpack``.
    """
    place = TemporaryDirectory(prefix="palimpsest-")
    folder = Path(place.name, "files")
    folder.mkdir()
    unpack(path, folder)
    return place, folder


def unpack(path: Path, folder: Path) -> None:
    """Write the files of an archive, or the decompressed file, into an empty folder.

    Raises ``CorpusError`` if it is damaged, protected, leads out of the folder, or is too large unpacked.
    """
    left = LARGEST_RATIO * path.stat().st_size + LONGEST_LINE
    try:
        with open(path, "rb") as head:
            is_zip = head.read(2) == b"PK"
        if is_zip:
            refuse_zip_bomb(path, str(path))
            members = _zip_members(path)
        elif _is_tar(path):
            members = _tar_members(path)
        else:
            _decompress(path, folder)
            return
        for number, (name, stream) in enumerate(members):
            target = folder / _inside(path, name)
            if number >= _MOST_FILES:
                raise CorpusError(f"{str(path)!r} holds more than {_MOST_FILES:,} files; unpack and divide it")
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "xb") as written:
                while chunk := stream.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise _too_large(str(path))
                    written.write(chunk)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, NotImplementedError) as error:
        raise CorpusError(f"{str(path)!r} is damaged ({type(error).__name__}); copy it again, or unpack it") from None
    except (FileExistsError, NotADirectoryError):
        raise CorpusError(f"{str(path)!r} holds a file twice; unpack it, and give its files") from None


def refuse_zip_bomb(path: Path, name: str) -> None:
    """Raise ``CorpusError`` if the files of a zip are much larger than text is; none is larger than it says."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile as error:
        raise CorpusError(f"{name!r} is damaged ({type(error).__name__}); copy it again") from None
    if size > LARGEST_RATIO * path.stat().st_size + LONGEST_LINE:
        raise _too_large(name)


def _too_large(name: str) -> CorpusError:
    return CorpusError(f"{name!r} unpacks to more than {LARGEST_RATIO} times its size; if it is text, unpack it")


def _inside(path: Path, name: str) -> PurePosixPath:
    inside = PurePosixPath(name.replace("\\", "/"))
    if inside.is_absolute() or ".." in inside.parts or ":" in (inside.parts or ("",))[0]:
        raise CorpusError(f"{str(path)!r} holds a file whose place is outside of it; make the archive again")
    return inside


def _zip_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.flag_bits & 1:
                raise CorpusError(f"{str(path)!r} is protected by a password; unpack it, and give its files")
            is_link = member.external_attr >> 28 == 0o12
            if not member.is_dir() and not is_link:
                with archive.open(member) as stream:
                    yield member.filename, stream


def _is_tar(path: Path) -> bool:
    """Whether a file is a tar that is not compressed: Python's reader decompresses without a limit."""
    try:
        tarfile.open(path, "r:").close()
    except (tarfile.TarError, EOFError, ValueError):
        return False
    return True


def _tar_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield member.name, stream


def _decompress(path: Path, folder: Path) -> None:
    """Write the decompressed file, and the files of a tar in its place."""
    inner = folder / (f"{path.stem}.tar" if path.suffix.lower() == ".tgz" else path.stem)
    with damaged(path), open(inner, "wb") as written, decompressed(path) as lines:
        written.writelines(refuse_long(lines, str(path), path.stat().st_size))
    if _is_tar(inner):
        tar = folder.with_name(f"{folder.name}.tar")
        inner.rename(tar)
        unpack(tar, folder)
        tar.unlink()
