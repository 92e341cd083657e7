"""``palimpsest doctor``: what is there, what is missing and how to get it, in a project of its own."""

import json
import shutil
from pathlib import Path

import pytest

from tasks.cli import main
from tasks.files.private_folders import close_private_folders

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("dvc.yaml", "params.yaml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n")
    close_private_folders(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("DVC_SITE_CACHE_DIR", raising=False)
    on_machine(monkeypatch, 2)
    return tmp_path


def on_machine(monkeypatch, cores, gpus=()):
    monkeypatch.setattr("tasks.doctor.machine_findings.available_cores", lambda: cores)
    monkeypatch.setattr("tasks.settings.resources.available_cores", lambda: cores)
    monkeypatch.setattr("tasks.doctor.machine_findings.gpu_names", lambda: list(gpus))


def diagnose(capsys, *options):
    status = main(["doctor", "--json", *options])
    document = json.loads(capsys.readouterr().out)
    return status, document, {finding["name"]: finding for finding in document["findings"]}


def fetch(project, *models):
    """The hub's cache as its library lays it out, with files of no meaning."""
    for model in models:
        snapshot = project / "hub" / f"models--{model.replace('/', '--')}" / "snapshots" / "0123abcd"
        write(snapshot / "config.json", "{}")
        write(snapshot / "model.safetensors", "weights")


def give_corpora(project):
    raw = project / "data" / "raw"
    for part in ("train", "valid", "test"):
        write(raw / "wikitext-103" / f"wiki.{part}.tokens", " \n = A = \n \n Some text . \n")
    for name in ("fisher/trans/fe_03_00001.txt", "reddit/RC_2019-01.zst", "wsj/dots/a.dot"):
        write(raw / name, "")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_shipped_experiment_is_ready_after_installation(project, monkeypatch, capsys):
    status, document, found = diagnose(capsys)
    assert status == 0
    assert document["ready"] is True
    assert found["generic"]["state"] == found["fillers.minilm.model"]["state"] == "there"
    assert found["threads"]["detail"] == "1 for each of 2 stages at once, 2 cores"
    assert {found[name]["state"] for name in ("Python", "git", "DVC", "espeak-ng", "disk", "GPUs")} == {"there"}
    # As text, each thing has a line and what is missing its remedy.
    on_machine(monkeypatch, 1)
    text = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(text.replace("{threads: 1}", "{threads: 1, parallel_stages: 2}"))
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("MISSING  machine  threads: 1 for each of 2 stages at once, 1 cores")
    assert "-> set resources.threads and resources.parallel_stages" in lines[place + 1]


def test_what_the_paper_needs_is_named_with_its_place_until_all_is_there(project, monkeypatch, capsys):
    status, document, found = diagnose(capsys, "--profile", "paper")
    assert (status, document["ready"]) == (1, False)
    missing = {name for name, finding in found.items() if finding["state"] == "missing"}
    assert missing == {
        *("generic", "corpora.fisher", "corpora.reddit", "corpora.wsj"),
        *("speech.corpora.wsj.dev", "speech.corpora.wsj.test"),
        *("masking.entity_tagger.tagger.model", "fillers.bert.model", "fillers.roberta.model", "fillers.llama.model"),
        *("threads", "GPUs"),
    }
    assert "LDC2004T19" in found["corpora.fisher"]["remedy"]
    assert "hf download meta-llama/Llama-2-7b-hf" in found["fillers.llama.model"]["remedy"]
    assert all(found[name]["remedy"] for name in missing)
    on_machine(monkeypatch, 64, ["NVIDIA H200"] * 4)
    # The corpora here are names of files alone.
    monkeypatch.setattr("tasks.doctor.data_findings._SURVEYED_BYTES", -1)
    give_corpora(project)
    fetch(project, "bert-base-uncased", "roberta-base", "dslim/bert-base-NER", "meta-llama/Llama-2-7b-hf")
    status, _, found = diagnose(capsys, "--profile", "paper")
    assert [name for name, finding in found.items() if finding["state"] == "missing"] == []
    assert status == 0
    on_machine(monkeypatch, 64, ["NVIDIA H200"] * 2)
    gpus = diagnose(capsys, "--profile", "paper")[2]["GPUs"]
    assert (gpus["state"], gpus["detail"]) == ("missing", "2 x NVIDIA H200; 4 asked for")
