"""A command lists the fonts of its plots in the checkout."""

import os
import subprocess
import sys


def test_a_command_lists_fonts_in_the_checkout(tmp_path):
    home, checkout = tmp_path / "home", tmp_path / "checkout"
    home.mkdir()
    (checkout / ".dvc").mkdir(parents=True)
    code = "from tasks.cli import main\nmain(['--version'])\nimport matplotlib.font_manager"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MPL"))}
    environment |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], cwd=checkout, env=environment, check=True)
    assert list(home.rglob("*")) == []
    assert list((checkout / ".palimpsest/matplotlib").iterdir())
