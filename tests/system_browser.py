import shutil


def system_chromium() -> str | None:
    """The path of the system's Chromium; ``None`` if it is missing."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
