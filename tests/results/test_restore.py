"""``palimpsest restore``: the code, parameters and files of a number in a worktree."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import forked_commands
import pytest
import yaml
from command_results import refusal
from handmade_reports import change
from project_copy import copy_project


def environment():
    """Of commands that git and DVC run in."""
    known = {**os.environ, "DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    # The stages of a bare `dvc repro` call `palimpsest`: the one of this interpreter, activated or not.
    known["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{known['PATH']}"
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        known |= {f"{name}_NAME": "A Tester", f"{name}_EMAIL": "tester@example.org"}
    return known


def run(*command, folder=Path()):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def palimpsest(folder, *arguments, status=0):
    """One of our commands in a folder; what it printed."""
    done = forked_commands.palimpsest(folder, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout.strip()


def corpus_report(folder):
    return json.loads((folder / "results/reports/corpora/mail.json").read_text(encoding="utf-8"))


def patch_of(folder):
    """The uncommitted changes of the stage."""
    (patch,) = (folder / "data/private/lineage").iterdir()
    return patch


@pytest.fixture(scope="module")
def made_checkout(tmp_path_factory):
    """A checkout of the code that runs, whose small private corpus was made with parameters that are not committed."""
    folder = tmp_path_factory.mktemp("made") / "a checkout"
    # Models that no stage of a corpus reads are left out.
    copy_project(folder, "tests/", "docs/", "models/", "tasks/ready_made/", "profiles/")
    run("git", "add", "-A", folder=folder)
    run("git", "commit", "-q", "-m", "A state", folder=folder)
    (folder / "data" / "raw").mkdir(exist_ok=True)
    (folder / "data" / "raw" / "mail.txt").write_text("".join(f"This is mail {n}.\n" for n in range(60)))
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["compare"] |= {"datasets": ["mail"], "speech_datasets": [], "recognisers": []}
    cleaning = {"valid_sentences": 10, "test_sentences": 10}
    parameters["corpora"]["mail"] = {"kind": "files", "source": "data/raw/mail.txt", "cleaning": cleaning}
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    palimpsest(folder, "add", "data/raw/mail.txt")
    palimpsest(folder, "cells")
    # The reports name the commit of the code that runs.
    variables = environment() | {"PYTHONPATH": str(folder)}
    made = forked_commands.dvc(folder, "repro", "-q", "corpus@mail", environment=variables)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def checkout(made_checkout, tmp_path):
    """A copy of it, to be changed."""
    return Path(shutil.copytree(made_checkout, tmp_path / "a checkout", symlinks=True))


def test_what_is_printed_makes_a_number_of_uncommitted_parameters_again(checkout):
    """The stage is in no commit; since then parameters, the text and the lock have changed."""
    first, patch = corpus_report(checkout), patch_of(checkout)
    assert (first["code"]["dirty"], first["measured"]["sentences"]) == (True, {"train": 40, "valid": 10, "test": 10})
    assert patch.name == f"{first['code']['changes']}.patch"
    assert (stat.S_IMODE(patch.stat().st_mode), stat.S_IMODE(patch.parent.stat().st_mode)) == (0o600, 0o700)
    assert "make again  palimpsest restore corpus@mail\n" in palimpsest(checkout, "where-from", "corpus@mail")
    command = palimpsest(checkout, "restore", "corpus@mail").splitlines()[-1].removeprefix("make again: ")
    then = checkout.with_name(f"{checkout.name}-{first['code']['changes'][:10]}")
    assert corpus_report(then) == first
    assert (then / "data/raw/mail.txt").exists()

    # Even with nothing in the cache of what the stage made.
    shutil.rmtree(then / "data/private/corpora")
    shutil.rmtree(checkout / ".dvc/cache/runs")
    parameters = (checkout / "params.yaml").read_text(encoding="utf-8")
    changed = parameters.replace("test_sentences: 10", "test_sentences: 20")
    assert changed != parameters
    (checkout / "params.yaml").write_text(changed, encoding="utf-8")
    (checkout / "data/raw/mail.txt").write_text("".join(f"This is another mail {n}.\n" for n in range(80)))
    run("bash", "-c", command.replace("dvc repro", f"{sys.executable} -m dvc repro --force"), folder=checkout)
    second = corpus_report(then)
    assert second["started"] != first["started"] or second["wall_seconds"] != first["wall_seconds"]
    for name in ("measured", "parameters", "inputs", "outputs", "code"):
        assert second[name] == first[name]


def test_a_restore_that_fails_leaves_no_folder_and_says_why_in_one_line(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    patch_of(checkout).write_bytes(b"no patch")
    error = palimpsest(checkout, "restore", "corpus@mail", "--folder", "../then", status=1)
    assert error.count("\n") == 1
    assert "git apply" in error
    for code, folder, message in (
        ({}, "results", "exists; name another folder with --folder"),
        ({"commit": "0123456789" * 4}, "../then", "invalid reference: 0123456789"),
        ({"commit": None, "dirty": None}, "../then", "it was made outside a git checkout"),
    ):
        change("corpora/mail", lambda report, code=code: report["code"].update(code))
        assert message in refusal("restore", "corpus@mail", "--folder", folder)
    assert not (checkout.parent / "then").exists()
