"""The folders of a checkout below which everything private lies are closed to other users before anything works there.

DVC gives what it checks out the modes that the umask leaves, and makes folders that are missing anew; the mode of a
folder above them, which is never removed, lasts. What is not private lies there too, and is closed with the rest.

``python -m tasks.files.private_folders`` closes those of the working folder.
"""

from pathlib import Path

from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder

PRIVATE_FOLDERS = ("data", "data/private/review", "models", "results", ".dvc/cache")
"""Text, what a review says of it (a stage depends on that folder, so it is always there), what is trained on it and
measured with it; and the copies of all that in DVC's cache."""


def close_private_folders(checkout: Path) -> None:
    """Make the private folders where they are missing, with mode 0700, and give them that mode where they are not."""
    for name in PRIVATE_FOLDERS:
        make_folder(checkout / name, private=True).chmod(PRIVATE_FOLDER_MODE)


if __name__ == "__main__":
    close_private_folders(Path())
