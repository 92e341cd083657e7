"""The whole graph, small, by ``palimpsest run``, with private canaries planted; then a change by both drivers.

The corpora are made here from templates (synthetic, and called so), the filler is a tiny untrained BERT made here:
what is tested is the machinery from raw text to tracking store, not the quality of a number.
"""

import json
import os
import random
import re
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from project_copy import copy_project

from tasks.parameters.cells_file import write_cells
from tasks.parameters.parameter_file import read_parameters

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.timeout(2700)  # a whole experiment is made first
CANARIES = ("Zyxwquill", "Vexmorthane", "quorblatt77@hiddenmail.example")
"""Strings that stand in the private corpus alone. No technique of this run keeps them."""

PARAMETERS = yaml.safe_load("""
compare:
  datasets: [mail]
  techniques: [allow_list]
  baselines: [baseline1]
  fills:
    - {filler: tiny, methods: [top_k]}
    - {methods: [unigram], audited: [unigram]}
  seeds: [1]
  speech_datasets: [mail]
  recognisers: []
  rescored_datasets: []
  taggers: [crf]
  detectors: [allow_list, crf]
  gold_sets: [mail]
generic:
  kind: files
  source: data/raw/generic.txt
  cleaning: {minimum_words: 3, valid_sentences: 20, test_sentences: 20}
word_counts: {published_share: 0.0}
corpora:
  mail:
    kind: files
    source: data/raw/mail.txt
    cleaning: {minimum_words: 3, valid_sentences: 20, test_sentences: 30}
masking:
  allow_list: {kind: allow_list}
  crf: {kind: entity_tagger, tagger: {kind: crf, model: models/taggers/crf}}
labelled_text: {sentences: 300}
taggers:
  crf: {kind: crf, embeddings: null, iterations: 10}
masking_evaluation:
  gold_sets:
    mail: {source: data/raw/labelled_mail.jsonl}
  bootstrap_samples: 100
  confidence: 0.95
  seed: 1
fillers:
  tiny: {kind: masked_lm, model: ./data/raw/tiny_untrained_bert}
tuned_fillers: {}
filling:
  top_k: {kind: top_k, k: 5}
  unigram: {kind: unigram}
language_model:
  kind: transformer
  transformer: {}
  vocabulary: {size: 400, minimum_count: 1}
  architecture: {layers: 1, heads: 2, width: 16, maximum_tokens: 32}
  pretraining: {epochs: 1.0, batch_tokens: 256, learning_rate: 0.01, seed: 1}
  adaptation: {epochs: 1.0, batch_tokens: 256, learning_rate: 0.01}
evaluation: {bootstrap_samples: 100, confidence: 0.95, seed: 1}
fluency: {lines: 50, judged_lines: 20}
# The attacker of the text is the masked language model that ships.
audit: {places: 50, canaries: 2, references: 255, coins: 100, bootstrap_samples: 100, sampled: 100}
speech:
  text: {kind: files, source: data/raw/generic.txt}
  recogniser: {kind: trained}
  corpora:
    mail:
      dev:
        kind: synthetic
        source: data/private/corpora/mail/valid.txt
        synthesis: {sentences: 6, voice_set: dev, seed: 1}
      test:
        kind: synthetic
        source: data/private/corpora/mail/test.txt
        synthesis: {sentences: 6, voice_set: test, seed: 1}
  search: {beam_width: 2}
  fusion: {lm_weights: [0.0, 0.3], insertion_bonuses: [0.0], tuning_rounds: 1}
  nbest: {}
  word_errors: {bootstrap_samples: 100, confidence: 0.95, seed: 1}
resources: {threads: 1, parallel_stages: 2}
tracking: {uri: "sqlite:///mlflow.db", experiment: palimpsest, live: true, log_every_steps: 1}
""")

TUNED = {"base": "tiny", "kind": "masked_lm", "text": "filled", "method": {"kind": "top_k", "k": 5}, "steps": 2}
"""A tuned filler, for experiments that have one."""
SUBJECTS = "the manager, my brother, the new teacher, our neighbour, her friend, the old doctor, a customer".split(", ")
VERBS = ["called", "visited", "paid", "thanked", "helped", "found", "asked", "wrote to", "waited for", "talked about"]
OBJECTS = ["the office", "a large house", "the same train", "his sister", "the small shop", "our garden", "a good book"]
TIMES = ["yesterday", "last week", "in the morning", "before lunch", "after the meeting", "two days ago", "again"]
NAMES = ["Marigold", "Thaddeus", "Springfield", "Oxbridge", "Fennimore", "Lockwood", "Acme"]


def sentences(count: int, names: list[str], seed: int) -> list[str]:
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        words = [generator.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, TIMES)]
        lines.append(f"{' '.join(words).capitalize()} with {generator.choice(names)}.")
    return lines


def make_tiny_filler(folder: Path) -> None:
    """A BERT of 2 layers with untrained weights and a word-level WordPiece vocabulary."""
    import torch

    from tasks.torch_setup import stand_in_for_torchaudio_extension

    stand_in_for_torchaudio_extension()
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    texts = [text for part in (SUBJECTS, VERBS, OBJECTS, TIMES, NAMES) for text in part]
    words = sorted({word.lower() for text in texts for word in text.split()})
    folder.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "with"]
    vocabulary = list(dict.fromkeys([*special, *words, "harbour", "violet", "kettle", "meadow"]))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    torch.manual_seed(0)
    configuration = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertForMaskedLM(configuration).save_pretrained(folder)


def environment() -> dict[str, str]:
    """As after a fresh log-in: our commands on PATH, no tracking server, no git user."""
    # PyTorch names its cache in the environment of a process that has imported it.
    own = ("MLFLOW_", "GIT_", "DVC_", "TORCHINDUCTOR_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    # An empty home: no git user, no settings of Prefect or DVC.
    variables["HOME"] = variables["XDG_CONFIG_HOME"] = tempfile.gettempdir() + "/palimpsest-empty-home"
    Path(variables["HOME"]).mkdir(exist_ok=True)
    return variables


def run(folder: Path, *command: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert result.returncode == expect, result.stdout + result.stderr
    return result


def make_checkout(folder: Path) -> Path:
    """A checkout of the project's files at a path with a space, with corpora, filler and parameters of our own."""
    copy_project(folder, "tests/", "dvc.lock")
    raw = folder / "data" / "raw"
    raw.mkdir(parents=True)
    private = [f"Yesterday {name} called the manager about a small house." for name in CANARIES * 6]
    private = [f"{line} {number}" for number, line in enumerate(private)]
    (raw / "generic.txt").write_text("\n".join(sentences(400, NAMES, seed=1)) + "\n", encoding="utf-8")
    (raw / "mail.txt").write_text("\n".join(sentences(300, NAMES, seed=2) + private) + "\n", encoding="utf-8")
    labelled = [
        {"text": line, "spans": [{"start": line.index(name), "end": line.index(name) + len(name), "label": "PERSON"}]}
        for line, name in zip(private, CANARIES * 6, strict=True)
    ]
    (raw / "labelled_mail.jsonl").write_text("\n".join(map(json.dumps, labelled)) + "\n", encoding="utf-8")
    make_tiny_filler(raw / "tiny_untrained_bert")
    return with_parameters(folder, PARAMETERS)


def with_parameters(folder: Path, parameters: dict) -> Path:
    """Write ``params.yaml``, and ``cells.yaml`` as it asks."""
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    write_cells(read_parameters(folder / "params.yaml"), folder)
    return folder


@pytest.fixture(scope="module")
def by_prefect(tmp_path_factory) -> Path:
    folder = make_checkout(tmp_path_factory.mktemp("by prefect"))
    fewer = {"baselines": [], "fills": [{"filler": "tiny", "methods": ["top_k"]}, {"methods": ["unigram"]}]}
    with_parameters(folder, PARAMETERS | {"compare": PARAMETERS["compare"] | fewer})
    run(folder, "palimpsest", "run")
    return folder


def changed(experiment: Path, folder: Path, *command: str) -> Path:
    """A copy of the finished experiment, where a setting changes and a command runs."""
    subprocess.run(["cp", "-a", str(experiment), str(folder)], check=True)
    # A tracking store names its folder.
    (folder / "mlflow.db").unlink()
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["filling"]["top_k"]["k"] = 3
    with_parameters(folder, parameters)
    if command[0] == "dvc":
        plan = json.loads(run(folder, "palimpsest", "plan", "--json").stdout)
        reasons = {stage["name"]: stage["reasons"] for stage in plan["stages"] if stage["action"] != "unchanged"}
        (folder / ".palimpsest" / "reasons.json").write_text(json.dumps(reasons), encoding="utf-8")
    (folder / ".palimpsest" / "said").write_text(run(folder, *command).stdout, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def by_dvc(by_prefect, tmp_path_factory) -> Path:
    return changed(by_prefect, tmp_path_factory.mktemp("by dvc") / "copy", "dvc", "repro")


@pytest.fixture(scope="module")
def by_run(by_prefect, tmp_path_factory) -> Path:
    return changed(by_prefect, tmp_path_factory.mktemp("by run") / "copy", "palimpsest", "run", "--json")


def summary(folder: Path) -> list[dict]:
    return json.loads((folder / "results" / "summary.json").read_text(encoding="utf-8"))


def test_both_drivers_give_the_same_summary(by_prefect, by_dvc, by_run):
    rows = summary(by_dvc)
    assert [row["method"] for row in rows] == ["no_language_model", "pretrained", "oracle", "top_k", "unigram"]
    assert all(row["perplexity"] > 1 for row in rows[1:])
    assert all(row["wer"] > 0 and row["synthetic_speech"] for row in rows)
    assert rows == summary(by_run)
    assert rows != summary(by_prefect)


def test_each_driver_finds_nothing_left_to_do_after_the_other(by_dvc, by_run):
    output = run(by_run, "dvc", "repro").stdout
    assert "Running stage" not in output
    assert "Data and pipelines are up to date." in output
    result = json.loads(run(by_dvc, "palimpsest", "run", "--json").stdout)
    assert {stage["state"] for stage in result["stages"]} == {"unchanged"}


def test_a_changed_parameter_reruns_its_branch_alone(by_dvc, by_run):
    planned = json.loads((by_dvc / ".palimpsest" / "reasons.json").read_text(encoding="utf-8"))
    of_cell = {f"{step}@mail-allow_list-tiny-top_k-1" for step in ("fill", "adapt", "evaluate", "recognise")}
    shared = {"cells", "examples@mail-tiny", "fluency@mail", "summarise", "report", "publish"}
    assert set(planned) == of_cell | shared
    assert "filling.top_k.k" in " ".join(planned["fill@mail-allow_list-tiny-top_k-1"])
    output = (by_dvc / ".palimpsest" / "said").read_text(encoding="utf-8")
    assert set(re.findall(r"Running stage '(.+)'", output)) == set(planned)
    stages = json.loads((by_run / ".palimpsest" / "said").read_text(encoding="utf-8"))["stages"]
    assert {stage["name"] for stage in stages if stage["state"] == "ran"} == set(planned)


def test_one_run_per_cell_and_publishing_again_changes_nothing(by_dvc):
    def tracked() -> list:
        with sqlite3.connect(by_dvc / "mlflow.db") as store:
            asked = ("select count(*) from metrics", "select count(*) from tags")
            runs = store.execute("select run_uuid, end_time, status from runs order by 1").fetchall()
            return [runs, *(store.execute(question).fetchone() for question in asked)]

    before = tracked()
    assert len(before[0]) == len(summary(by_dvc))
    run(by_dvc, "palimpsest", "publish")
    assert tracked() == before


def test_a_number_is_followed_to_where_it_comes_from(by_dvc, by_prefect):
    origin = run(by_dvc, "palimpsest", "where-from", "mail/allow_list/tiny-top_k-1").stdout
    assert "palimpsest restore evaluate@mail-allow_list-tiny-top_k-1" in origin
    assert "data/private/corpora/mail" in origin
    # A report names the flow run that made it.
    name = "results/reports/perplexity/mail/allow_list/tiny-top_k-1.json"
    assert json.loads((by_dvc / name).read_text(encoding="utf-8"))["flow_run"] is None
    assert len(json.loads((by_prefect / name).read_text(encoding="utf-8"))["flow_run"]) == 36


def test_private_text_stays_in_private_places_that_are_closed_to_others(by_prefect):
    """Canaries may be found in the raw data, in data/private and in DVC's cache, nowhere else."""
    allowed = ("data/raw/", "data/private/", ".dvc/cache/", ".git/")
    searched, holders = 0, []
    for path in by_prefect.rglob("*"):
        name = path.relative_to(by_prefect).as_posix()
        if not path.is_file() or name.startswith(allowed):
            continue
        searched += 1
        content = path.read_bytes().lower()
        holders += [name for canary in CANARIES if canary.lower().encode() in content]
    assert searched > 40
    assert holders == []
    raw = (by_prefect / "data" / "private" / "corpora" / "mail" / "train.txt").read_text(encoding="utf-8")
    assert any(canary in raw for canary in CANARIES)
    private = [path for path in (by_prefect / "data" / "private").rglob("*") if path.name != ".gitignore"]
    assert len(private) > 5
    private.append(by_prefect / ".dvc" / "cache")
    assert [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
