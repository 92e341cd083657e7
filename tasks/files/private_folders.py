"""The folders of a checkout below which everything private lies are closed to other users before anything works there.

DVC gives what it checks out the modes that the umask leaves, and makes folders that are missing anew; the mode of a
folder above them, which is never removed, lasts. What is not private lies there too, and is closed with the rest.

DVC's tables of hashes and links lie by default in a folder that every user of the machine may write to. They hold
pickles, which DVC loads: another user could run commands as this one. They move into the checkout.

``python -m tasks.files.private_folders`` closes those of the working folder.
"""

from pathlib import Path

from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, PRIVATE_MODE, make_folder

PRIVATE_FOLDERS = ("data", "data/private/review", "models", "results", ".dvc/cache", ".dvc/tmp")
"""Text, what a review says of it (a stage depends on that folder, so it is always there), what is trained on it and
measured with it; the copies of all that in DVC's cache, and DVC's notes of what it works at."""

DVC_TABLES = ".palimpsest/dvc"
_PREFECT_DATABASE = ".palimpsest/prefect/*.db*"
"""SQLite gives its files the modes that the umask leaves; servers of earlier versions had the user's."""


def close_private_folders(checkout: Path) -> None:
    """Make the private folders where they are missing, with mode 0700, and give them that mode where they are not.

    In a DVC repository ``core.site_cache_dir`` of ``.dvc/config.local`` names the folder of DVC's tables. DVC takes a
    relative path from the working folder, so the path is absolute, and a checkout that was moved gets a new one.
    """
    for name in (*PRIVATE_FOLDERS, DVC_TABLES):
        make_folder(checkout / name, private=True).chmod(PRIVATE_FOLDER_MODE)
    for file in checkout.glob(_PREFECT_DATABASE):
        file.chmod(PRIVATE_MODE)
    tables, local = (checkout / DVC_TABLES).resolve(), checkout / ".dvc" / "config.local"
    if (checkout / ".dvc" / "config").is_file() and not (local.is_file() and f"{tables}\n" in local.read_text()):
        from dvc.config import Config

        with Config(str(checkout / ".dvc")).edit("local") as settings:
            settings.setdefault("core", {})["site_cache_dir"] = str(tables)


if __name__ == "__main__":
    close_private_folders(Path())
