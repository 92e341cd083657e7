"""Other users of the machine reach nothing private, whatever modes a checkout begins with and whoever starts DVC."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tasks.files.private_folders import PRIVATE_FOLDERS, close_private_folders

ROOT = Path(__file__).parents[2]
GRAPH = """
stages:
  corpus:
    cmd: >-
      palimpsest corpora --params params.yaml --name corpora.chat --private
      --output data/private/corpora/chat --report results/reports/corpora/chat.json
    deps: [text.txt]
    outs: [data/private/corpora/chat: {push: false}]
    metrics: [results/reports/corpora/chat.json: {push: false}]
  count:
    cmd: >-
      palimpsest count-words --input data/private/corpora/chat/train.txt
      --output models/tuned_fillers/chat/words.tsv
    deps: [data/private/corpora/chat]
    outs: [models/tuned_fillers: {push: false}]
"""
"""`count` stands for whatever makes something of private text: a model, a fill, scores."""


def open_to_others(folder: Path) -> list[str]:
    """Files and folders that another user can reach: no folder above them, up to the checkout, is closed to all."""
    reached = []
    for path in folder.rglob("*"):
        above = [path, *path.parents]
        if all(stat.S_IMODE(one.stat().st_mode) & 0o077 for one in above[: above.index(folder)]):
            reached.append(path.relative_to(folder).as_posix())
    return reached


def dvc(folder: Path, *arguments: str) -> None:
    """Bare DVC with umask 022, which finds our commands as a user's shell does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DVC_NO_ANALYTICS": "1"}
    environment.pop("DVC_SITE_CACHE_DIR", None)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, umask=0o022)
    assert done.returncode == 0, done.stdout + done.stderr


MADE = {
    "data/private/corpora/chat/train.txt", "models/tuned_fillers/chat/words.tsv", "results/reports/corpora/chat.json",
}  # fmt: skip


def test_bare_dvc_leaves_nothing_private_open_not_even_what_it_checks_out(tmp_path):
    checkout = tmp_path / "a checkout"
    for name in ("data", "models", "results", ".dvc/cache"):
        (checkout / name).mkdir(parents=True, mode=0o755)
    cleaning = {"valid_sentences": 5, "test_sentences": 5}
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    parameters["corpora"]["chat"] = {"kind": "files", "source": "text.txt", "cleaning": cleaning}
    for name, content in {
        "params.yaml": yaml.safe_dump(parameters),
        "text.txt": "".join(f"The dog number {number} of Zyxwquill sleeps.\n" for number in range(40)),
        "dvc.yaml": GRAPH,
        ".dvc/config": "[core]\n    no_scm = true\n",
    }.items():
        (checkout / name).write_text(content, encoding="utf-8")
    dvc(checkout, "repro")
    for is_checked_out in (False, True):
        if is_checked_out:
            for name in ("data/private", "models/tuned_fillers", "results/reports"):
                shutil.rmtree(checkout / name)
            dvc(checkout, "checkout")
        assert all((checkout / name).is_file() for name in MADE)
        assert [name for name in open_to_others(checkout) if name.startswith(PRIVATE_FOLDERS)] == []


def test_another_user_neither_reads_nor_swaps_the_tables_that_dvc_loads() -> None:
    """By default they lie in /var/tmp/dvc with mode 0777: pickles that DVC loads, and hashes of every private file."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        checkout = Path(place) / "a checkout, 'quoted' #1"
        (checkout / ".dvc").mkdir(parents=True)
        (checkout / ".dvc" / "config").write_text("[core]\n    no_scm = true\n")
        (checkout / "dvc.yaml").write_text("stages: {one: {cmd: echo a > data/private/a, outs: [data/private/a]}}")
        close_private_folders(checkout)
        dvc(checkout, "repro")
        tables = checkout / ".palimpsest" / "dvc"
        assert list(tables.glob("repo/*/*/*.db"))
        assert [one for one in open_to_others(checkout) if one.startswith((".palimpsest", "data"))] == []
        if os.geteuid() == 0:
            for attempt in (["mv", tables, f"{tables}2"], ["ls", tables]):
                done = subprocess.run(attempt, user=65534, capture_output=True, text=True)
                assert "Permission denied" in done.stderr, done

        # A checkout that was moved has tables of its own.
        moved = checkout.rename(Path(place) / "moved")
        close_private_folders(moved)
        assert f"site_cache_dir = {moved / '.palimpsest/dvc'}\n" in (moved / ".dvc" / "config.local").read_text()


def test_cleaning_leaves_the_closed_folders_and_what_is_no_output(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    left = set(
        "data/README.md data/raw/mail.txt data/private/keys/clone_key data/private/ledger.jsonl "
        "data/private/releases/mail.json models/recogniser/settings.json models/recogniser_report.json "
        "models/english_spanish/settings.json models/english_spanish_report.json models/taggers/README.md "
        "releases/mail/text.txt results/.gitignore".split()
    )
    outputs = set(
        "data/private/corpora/chat/train.txt data/obfuscated/chat/text.txt data/word_counts.tsv "
        "models/tuned_fillers/chat/filler models/taggers/crf/model results/summary.json results/cells.ok".split()
    )
    for name in left | outputs:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    close_private_folders(tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == left | {"Makefile"}
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in PRIVATE_FOLDERS} == {0o700}
