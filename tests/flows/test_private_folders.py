"""Folders with private text are closed whether or not they are there."""

import stat

from flows.checkout.private_folders import close_private_folders


def test_folders_are_made_and_closed(tmp_path):
    (tmp_path / ".dvc" / "cache").mkdir(parents=True, mode=0o755)
    close_private_folders(tmp_path)
    for name in ("data/private", ".dvc/cache"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / ".dvc").stat().st_mode) == 0o755
