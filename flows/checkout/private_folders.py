"""The folders of a checkout that hold private text are closed to other users before a stage runs.

DVC gives copies of private files the modes that the umask leaves; the mode of the folder above them lasts.
"""

from pathlib import Path

from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder

PRIVATE_FOLDERS = ("data/private", ".dvc/cache")
"""Raw text, sidecars and models trained on raw text; and the copies of all that in DVC's cache."""


def close_private_folders(checkout: Path) -> None:
    """Make the private folders where they are missing, with mode 0700, and give them that mode where they are not."""
    for name in PRIVATE_FOLDERS:
        make_folder(checkout / name, private=True).chmod(PRIVATE_FOLDER_MODE)
