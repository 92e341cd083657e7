import json
import os
import shutil
import stat
import subprocess
import sys

import pytest
import tracked_state
import yaml

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.results.origin.lock_entries import LockEntries, lock_text

TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)
REPORT = f"results/reports/perplexity/{TOP_K.path}.json"


def test_the_chain_of_a_lock_follows_files_and_folders():
    lock = LockEntries(
        {
            "cells": {"cmd": "check", "params": {"params.yaml": {"compare": {}}}, "outs": [{"path": "ok"}]},
            "corpus": {"deps": [{"path": "ok"}], "outs": [{"path": "data/corpora"}]},
            "mask": {"deps": [{"path": "data/corpora/train.txt"}], "outs": [{"path": "data/masked/a"}]},
            "mask_other": {"deps": [{"path": "data/corpora"}], "outs": [{"path": "data/masked/b"}]},
            "both": {"deps": [{"path": "data/masked"}]},
            "alone": {"deps": [{"path": "data/masked/a"}]},
        }
    )
    assert list(lock.chain("alone")) == ["alone", "cells", "corpus", "mask"]
    assert list(lock.chain("both")) == ["both", "cells", "corpus", "mask", "mask_other"]
    assert lock.chain("unknown") == {}
    assert yaml.safe_load(lock_text(lock.chain("corpus"))) == {
        "schema": "2.0",
        "stages": {
            "corpus": {"deps": [{"path": "ok"}], "outs": [{"path": "data/corpora"}]},
            # Not the parameters, of which most are no part of this state.
            "cells": {"cmd": "check", "outs": [{"path": "ok"}]},
        },
    }


def run(*command, folder):
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        environment |= {f"{name}_NAME": "A Tester", f"{name}_EMAIL": "tester@example.org"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tracked):
    """The experiment in a git repository; returns its commit and sets it in the cell's report."""
    run("git", "init", "-q", folder=tracked)
    (tracked / ".gitignore").write_text("/results/\n/mlflow.db*\n/corpus.txt\n/model.txt\n", encoding="utf-8")
    (tracked / "source.txt").write_text("a source\n", encoding="utf-8")
    run("git", "add", ".gitignore", "params.yaml", "source.txt", folder=tracked)
    run("git", "commit", "-q", "-m", "A state", folder=tracked)
    commit = run("git", "rev-parse", "HEAD", folder=tracked)
    set_report(tracked, code={"commit": commit, "dirty": False})
    return commit


def set_report(folder, **values):
    document = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    (folder / REPORT).write_text(json.dumps({**document, **values}), encoding="utf-8")


def test_a_folder_and_this_checkout_cannot_both_be_meant(tracked, capsys):
    assert main(["restore", TOP_K.path, "--in-place", "--folder", "then"]) == 1
    assert "--folder 'then' is a new folder, and --in-place this checkout; give one" in capsys.readouterr().err


def test_a_checkout_with_changes_is_refused_and_left_alone(tracked, repository, capsys):
    (tracked / "source.txt").write_text("changed\n", encoding="utf-8")
    assert main(["restore", TOP_K.path, "--in-place"]) == 1
    error = capsys.readouterr().err
    assert "has 1 changed files that are not committed, 'source.txt' among them" in error
    assert error.count("\n") == 1
    assert (tracked / "source.txt").read_text(encoding="utf-8") == "changed\n"


def test_a_commit_that_is_nowhere_and_a_folder_that_is_there_are_one_line(tracked, repository, capsys):
    assert main(["restore", TOP_K.path, "--folder", str(tracked / "results")]) == 1
    assert "exists; name another folder with --folder" in capsys.readouterr().err
    set_report(tracked, code={"commit": "0123456789" * 4, "dirty": False})
    assert main(["restore", TOP_K.path]) == 1
    assert "this repository does not have the commit '0123456789" in capsys.readouterr().err
    set_report(tracked, code={"commit": None, "dirty": None})
    assert main(["restore", TOP_K.path]) == 1
    assert "it was made outside a git checkout" in capsys.readouterr().err


@pytest.mark.slow
def test_a_state_comes_back_from_the_store_after_everything_has_changed(tracked, repository, tmp_path, capsys):
    """A graph of three stages whose last writes the cell's report: published, overwritten, and restored by run id."""
    report = (tracked / REPORT).read_bytes()
    (tracked / "made.json").write_bytes(report)
    stages = {
        "corpus": {"cmd": "cat source.txt > corpus.txt", "deps": ["source.txt"], "outs": ["corpus.txt"]},
        "adapt": {
            "cmd": "cat corpus.txt > model.txt",
            "deps": ["corpus.txt"],
            "params": ["evaluation.seed"],
            "outs": ["model.txt"],
        },
        "evaluate": {"cmd": f"cp made.json {REPORT}", "deps": ["model.txt", "made.json"], "metrics": [REPORT]},
    }
    (tracked / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}), encoding="utf-8")
    dvc = [sys.executable, "-m", "dvc"]
    run(*dvc, "init", "-q", folder=tracked)
    (tracked / "made.json").write_text(json.dumps({**json.loads(report), "dvc_stage": "evaluate"}), encoding="utf-8")
    run("git", "add", ".dvc", ".dvcignore", "dvc.yaml", "made.json", folder=tracked)
    run("git", "commit", "-q", "-m", "A graph", folder=tracked)
    commit = run("git", "rev-parse", "HEAD", folder=tracked)
    document = {**json.loads(report), "dvc_stage": "evaluate", "code": {"commit": commit, "dirty": True}}
    (tracked / "made.json").write_text(json.dumps(document), encoding="utf-8")
    parameters = yaml.safe_load((tracked / "params.yaml").read_text(encoding="utf-8"))
    parameters["evaluation"]["seed"] = 7
    (tracked / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    (tracked / REPORT).unlink()
    run(*dvc, "repro", folder=tracked)
    assert main(["summarise"]) == 0
    assert main(["publish"]) == 0
    key = next(key for key in tracked_state.runs(tracked) if key.startswith(f"{TOP_K.path}#"))
    identifier = tracked_state.runs(tracked)[key]
    kept = (tracked / REPORT).read_bytes()

    # Everything moves on: the report, the lock and the outputs are gone, one of them from the cache too.
    shutil.rmtree(tracked / "results" / "reports" / "perplexity")
    (tracked / "dvc.lock").unlink()
    (tracked / "model.txt").unlink()
    for cached in (tracked / ".dvc" / "cache").rglob("*"):
        if cached.is_file() and cached.read_bytes() == b"a source\n":
            cached.chmod(0o600)
            cached.unlink()
    capsys.readouterr()
    then = tmp_path / "then"
    assert main(["restore", identifier, "--folder", str(then), "--json"]) == 0
    restored = json.loads(capsys.readouterr().out)
    assert (restored["commit"], restored["dirty"]) == (commit, True)
    assert restored["dvc_lock"] == tracked_state.tags(tracked, identifier)["dvc_lock"]
    assert restored["changed_parameters"] == ["evaluation.seed"]
    assert {stat.S_IMODE((then / name).stat().st_mode) for name in ("data", "models", "results")} == {0o700}
    assert yaml.safe_load((then / "params.yaml").read_text(encoding="utf-8"))["evaluation"]["seed"] == 7
    assert restored["restored"] == [REPORT]
    assert sorted(restored["missing"]) == ["corpus.txt", "model.txt"]
    assert (then / REPORT).read_bytes() == kept
    assert (tracked / "source.txt").exists()
    assert main(["restore", identifier, "--folder", str(tmp_path / "again")]) == 0
    said = capsys.readouterr().out
    assert "cannot be brought back: changes that were not committed" in said
    assert "not in the cache, its stage makes it anew: model.txt" in said
    shutil.rmtree(tracked / "data" / "private" / "lineage")
    assert main(["restore", identifier, "--folder", str(tmp_path / "elsewhere")]) == 0
    assert "is not here; the clone that published it has it" in capsys.readouterr().out
