"""Files of an archive (zip, tar) and compressed files, unpacked into a private folder.

A name that leads out of the folder is refused, and so is an archive that unpacks to much more than text does. Links and
devices are not unpacked. Archives in an archive stay packed: a folder's reader names them as left out.
"""

import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tasks.corpora.limits import LARGEST_RATIO, LONGEST_LINE
from tasks.corpora.sources.compressed_lines import damaged, decompressed
from tasks.corpora.text_lines import refuse_long
from tasks.errors import CorpusError

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
    try:
        with open(path, "rb") as head:
            is_zip = head.read(2) == b"PK"
        if is_zip:
            refuse_zip_bomb(path, str(path))
            with zipfile.ZipFile(path) as archive:
                members = [one for one in archive.infolist() if not (one.is_dir() or one.external_attr >> 28 == 0o12)]
                if any(one.flag_bits & 1 for one in members):
                    raise CorpusError(f"{str(path)!r} is protected by a password; unpack it, and give its files")
                _check_names(path, [one.filename for one in members])
                archive.extractall(folder, members)
        elif _is_tar(path):
            with tarfile.open(path, "r:") as tar:
                files = [one for one in tar if one.isreg()]
                _check_names(path, [one.name for one in files])
                # Python before 3.11.4 has no filter; names and kinds of members are checked here anyway.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(folder, files)
        else:
            _decompress(path, folder)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, NotImplementedError) as error:
        raise CorpusError(f"{str(path)!r} is damaged ({type(error).__name__}); copy it again, or unpack it") from None


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


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Raise ``CorpusError`` for a name that leads out of the folder or occurs twice, or too many names."""
    places = [PurePosixPath(name.replace("\\", "/")) for name in names]
    if any(one.is_absolute() or ".." in one.parts or ":" in (one.parts or ("",))[0] for one in places):
        raise CorpusError(f"{str(path)!r} holds a file whose place is outside of it; make the archive again")
    if len(set(places)) < len(places) or set(places) & {one for place in places for one in place.parents}:
        raise CorpusError(f"{str(path)!r} holds a file twice; unpack it, and give its files")
    if len(places) > _MOST_FILES:
        raise CorpusError(f"{str(path)!r} holds more than {_MOST_FILES:,} files; unpack and divide it")


def _is_tar(path: Path) -> bool:
    """Whether a file is a tar that is not compressed: Python's reader decompresses without a limit."""
    try:
        tarfile.open(path, "r:").close()
    except (tarfile.TarError, EOFError, ValueError):
        return False
    return True


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
