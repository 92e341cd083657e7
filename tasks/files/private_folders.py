"""Closes the folders of a checkout with private data to other users, before any work there.

DVC gives checked-out files the modes that the umask leaves, and recreates missing folders. The mode of a parent folder,
which is never removed, lasts. Public files in these folders are closed too.

DVC's tables of hashes and links are by default in a folder that every user of the machine may write to. They contain
pickles, which DVC loads: another user could run commands as this one. So they move into the checkout.

``python -m tasks.files.private_folders`` closes the folders of the working folder.
"""

from pathlib import Path

from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder

PRIVATE_FOLDERS = ("data", "data/private/review", "models", "results", ".dvc/cache", ".dvc/tmp")
"""Text, reviews (a stage depends on that folder, so it always exists), models trained on text and their measurements;
the copies of all these in DVC's cache, and DVC's working state."""

DVC_TABLES = ".palimpsest/dvc"


def close_private_folders(checkout: Path) -> None:
    """Make missing private folders with mode 0700, and set that mode on the others.

    In a DVC repository ``core.site_cache_dir`` of ``.dvc/config.local`` names the folder of DVC's tables. DVC takes a
    relative path from the working folder, so the path is absolute, and a checkout that was moved gets a new one.
    """
    for name in (*PRIVATE_FOLDERS, DVC_TABLES):
        make_folder(checkout / name, private=True).chmod(PRIVATE_FOLDER_MODE)
    tables, local = (checkout / DVC_TABLES).resolve(), checkout / ".dvc" / "config.local"
    if (checkout / ".dvc" / "config").is_file() and not (local.is_file() and f"{tables}\n" in local.read_text()):
        from dvc.config import Config

        with Config(str(checkout / ".dvc")).edit("local") as settings:
            settings.setdefault("core", {})["site_cache_dir"] = str(tables)


if __name__ == "__main__":
    close_private_folders(Path())
