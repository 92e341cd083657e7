import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import tracked_state
import yaml

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.results.origin.lock_entries import chain_of

ROOT = Path(__file__).parents[2]
TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)
REPORT = f"results/reports/perplexity/{TOP_K.path}.json"


def test_the_chain_of_a_lock_follows_files_and_folders():
    stages = {
        "cells": {"cmd": "check", "params": {"params.yaml": {"compare": {}}}, "outs": [{"path": "ok"}]},
        "corpus": {"deps": [{"path": "ok"}], "outs": [{"path": "data/corpora"}]},
        "mask": {"deps": [{"path": "data/corpora/train.txt"}], "outs": [{"path": "data/masked/a"}]},
        "mask_other": {"deps": [{"path": "data/corpora"}], "outs": [{"path": "data/masked/b"}]},
        "both": {"deps": [{"path": "data/masked"}]},
        "alone": {"deps": [{"path": "data/masked/a"}]},
    }
    assert list(chain_of("alone", stages)) == ["alone", "cells", "corpus", "mask"]
    assert list(chain_of("both", stages)) == ["both", "cells", "corpus", "mask", "mask_other"]
    assert chain_of("unknown", stages) == {}
    # Not the parameters, of which most are no part of this state.
    assert chain_of("corpus", stages)["cells"] == {"cmd": "check", "outs": [{"path": "ok"}]}


def run(*command, folder):
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    # The stages of a bare `dvc repro` call `palimpsest`: the one beside this interpreter, activated or not.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
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
    assert main(["restore", identifier, "--folder", str(then)]) == 0
    said = capsys.readouterr().out
    assert f"commit {commit[:10]} in {then}\n" in said
    assert f"dvc.lock {tracked_state.tags(tracked, identifier)['dvc_lock']}: " in said
    assert "cannot be brought back: changes that were not committed when the number was made and are not" in said
    assert {stat.S_IMODE((then / name).stat().st_mode) for name in ("data", "models", "results")} == {0o700}
    assert "1 of 3 files and folders came out of the cache\n" in said
    for name in ("corpus.txt", "model.txt"):
        assert f"not in the cache, its stage makes it again: {name}\n" in said
    assert (then / REPORT).read_bytes() == kept
    assert (tracked / "source.txt").exists()
    shutil.rmtree(tracked / "data" / "private" / "lineage")
    assert main(["restore", identifier, "--folder", str(tmp_path / "elsewhere")]) == 0
    assert "is not here; the clone that published it has it" in capsys.readouterr().out


@pytest.fixture(scope="module")
def made_checkout(tmp_path_factory):
    """A checkout of the code that runs, with a small private corpus under DVC and parameters that are not committed."""
    folder = tmp_path_factory.mktemp("made") / "a checkout"
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard", folder=ROOT).splitlines()
    for name in (name for name in names if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/"))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    run("git", "init", "-q", folder=folder)
    run("git", "add", "-A", folder=folder)
    run("git", "commit", "-q", "-m", "A state", folder=folder)
    (folder / "data" / "raw").mkdir()
    (folder / "data" / "raw" / "mail.txt").write_text("".join(f"This is mail {n}.\n" for n in range(60)))
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["compare"] |= {"datasets": ["mail"], "speech_datasets": [], "recognisers": []}
    cleaning = {"valid_sentences": 10, "test_sentences": 10}
    parameters["corpora"]["mail"] = {"kind": "files", "source": "data/raw/mail.txt", "cleaning": cleaning}
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    palimpsest(folder, "add", "data/raw/mail.txt")
    palimpsest(folder, "cells")
    return folder


@pytest.fixture
def checkout(made_checkout, tmp_path):
    """A copy of it, to be changed."""
    shutil.copytree(made_checkout, tmp_path / "a checkout", symlinks=True)
    return tmp_path / "a checkout"


def palimpsest(folder, *arguments):
    return run("env", f"PYTHONPATH={folder}", sys.executable, "-m", "tasks.cli", *arguments, folder=folder)


def set_test_sentences(folder, count):
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["corpora"]["mail"]["cleaning"]["test_sentences"] = count
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")


def corpus_report(folder):
    return json.loads((folder / "results/reports/corpora/mail.json").read_text(encoding="utf-8"))


def test_what_is_printed_makes_a_number_of_uncommitted_parameters_again(checkout):
    """The stage is in no commit; since then parameters, the text and the lock have changed."""
    repro = ["env", f"PYTHONPATH={checkout}", sys.executable, "-m", "dvc", "repro", "-q", "corpus@mail"]
    run(*repro, folder=checkout)
    first = corpus_report(checkout)
    assert (first["code"]["dirty"], first["measured"]["sentences"]) == (True, {"train": 40, "valid": 10, "test": 10})
    (kept,) = (checkout / "data/private/lineage").iterdir()
    assert kept.name == f"{first['code']['changes']}.patch"
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(kept.parent.stat().st_mode)) == (0o600, 0o700)
    assert "make again  palimpsest restore corpus@mail\n" in palimpsest(checkout, "where-from", "corpus@mail")
    said = palimpsest(checkout, "restore", "corpus@mail")
    command = said.splitlines()[-1].removeprefix("make again: ")
    then = checkout.with_name(f"{checkout.name}-{first['code']['changes'][:10]}")
    assert corpus_report(then) == first
    assert (then / "data/raw/mail.txt").exists()

    # Even with nothing in the cache of what the stage made.
    shutil.rmtree(then / "data/private/corpora")
    shutil.rmtree(checkout / ".dvc/cache/runs")
    palimpsest(checkout, "restore", "corpus@mail", "--folder", "../other")
    set_test_sentences(checkout, 20)
    (checkout / "data/raw/mail.txt").write_text("".join(f"This is another mail {n}.\n" for n in range(80)))
    run("bash", "-c", command.replace("dvc repro", f"{sys.executable} -m dvc repro --force"), folder=checkout)
    second = corpus_report(then)
    assert second["started"] != first["started"] or second["wall_seconds"] != first["wall_seconds"]
    for name in ("measured", "parameters", "inputs", "outputs", "code"):
        assert second[name] == first[name]


def test_a_restore_that_fails_leaves_no_folder(checkout):
    run("env", f"PYTHONPATH={checkout}", sys.executable, "-m", "dvc", "repro", "-q", "corpus@mail", folder=checkout)
    (kept,) = (checkout / "data/private/lineage").iterdir()
    program = ["env", f"PYTHONPATH={checkout}", sys.executable, "-m", "tasks.cli", "restore", "corpus@mail"]
    kept.write_bytes(b"no patch")
    said = ["git apply"]
    # Where the changes are in another clone, the commit alone has no such stage.
    said.append("cannot be brought back: changes that were not committed when the number was made: ")
    for part in said:
        failed = subprocess.run([*program, "--folder", "../then"], cwd=checkout, capture_output=True, text=True)
        assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
        assert part in failed.stderr
        assert not (checkout.parent / "then").exists()
        kept.unlink(missing_ok=True)
