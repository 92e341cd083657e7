"""Every stage that is cut into parts writes the same on a cluster as in one process."""

import importlib.util
import json
import random
from pathlib import Path

import pyarrow.parquet
import pytest
from tiny_language_models import WORDS, save_causal, save_ngram, save_transformer

from tasks import ray_cluster
from tasks.cli import main
from tasks.filling import filled_lines
from tasks.language_model import divided_model
from tasks.masking import masked_lines
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest

TIMINGS = ("seconds", "per_second")
NAMES = ["Zoltan Kovács", "Mary O'Neil", "tomorrow at 5pm", "Springfield", "two dogs", "bob@example.org"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stages")
    dice = random.Random(1)
    lines = [" ".join([*dice.choices(WORDS, k=dice.randrange(8)), dice.choice(NAMES)]) for _ in range(75)]
    (folder / "text.txt").write_text("".join(f"{line}.\n" for line in [*lines, *[""] * 15, "the last"]))
    for name, text in (("text", lines), ("masked", [line.replace("two", "[MASK]") for line in lines])):
        pyarrow.parquet.write_table(pyarrow.table({"text": text}), folder / f"{name}.parquet", row_group_size=20)
    (folder / "mixed.txt").write_text("the cat is here y el perro no está aquí\nwe saw the dog en la casa\n" * 40)
    for name in ("dev", "test"):
        lists = []
        for number in range(30):
            texts = {" ".join(dice.choices(WORDS, k=6)): -float(place) for place in range(4)}
            hypotheses = tuple(ScoredHypothesis(*each) for each in texts.items())
            lists.append(NbestList(f"{name}{number}", dice.choice(list(texts)), hypotheses))
        write_nbest(folder / f"{name}.jsonl", lists)
    return folder


@pytest.fixture(scope="module")
def _models(folder):
    save_ngram(folder / "ngram")
    save_transformer(folder / "sentences")
    save_causal(folder / "causal", "gpt2")


@pytest.fixture(scope="module")
def cluster():
    """Options that name a cluster of two nodes."""
    # Ray reads its environment as it is imported, so it is looked for without that.
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is an extra: '.[cluster]'")
    from ray_nodes import ray_nodes

    with pytest.MonkeyPatch.context() as patch, ray_nodes() as nodes:
        for name, value in nodes.environment.items():
            patch.setenv(name, value)
        for _ in range(2):
            nodes.add(1, private=1)
        yield ["--set", f"resources.cluster={json.dumps({'address': nodes.address, 'private_nodes': 'private'})}"]
        importlib.import_module("ray").shutdown()


@pytest.fixture(autouse=True)
def _small_parts(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for module in (masked_lines, filled_lines, divided_model):
        monkeypatch.setattr(module, "PART_LINES", 30)


def mask(*technique, text="text.txt"):
    return ["mask", "--input", text, "--output", "out.txt", "--sidecar", "out.jsonl", *technique]


def perplexity(model):
    return ["perplexity", "--model", model, "--input", "text.txt", "--scores", "out.txt"]


def rescore(model):
    return ["rescore", "--nbest", "test.jsonl", "--dev", "dev.jsonl", "--model", model, "--output", "out.txt"]


PARTS = "parts=[{kind: allow_list}, {kind: entity_tagger, tagger: {kind: crf}}]"
CUT = {
    "combination": mask("--technique", "combination", "--set", "rule=union", "--set", PARTS),
    "sentences": perplexity("sentences"),
    "causal": perplexity("causal"),
    "rescore": rescore("ngram"),
    "parquet": "mask --technique crf --input text.parquet --output out.parquet --sidecar out.jsonl".split(),
    "fill": "fill --method unigram --input masked.parquet --output out.parquet --threads 1".split(),
    "audit": "audit --model sentences --base ngram --members text.txt --non-members mixed.txt".split(),
}
WHOLE = {
    "list": mask("--technique", "allow_list"),
    "language_lists": mask("--technique", "language_lists", text="mixed.txt"),
}


def written(stage, *options):
    """What a stage has written, its report without timings."""
    assert main([*stage, "--report", "report.json", *options]) == 0
    measured = json.loads(Path("report.json").read_text())["measured"]
    numbers = {name: value for name, value in measured.items() if not name.endswith(TIMINGS)}
    files = [path for name in ("out.txt", "out.jsonl", "out.parquet/*") for path in sorted(Path().glob(name))]
    return numbers, [path.read_bytes() for path in files]


@pytest.mark.slow
@pytest.mark.usefixtures("_models")
@pytest.mark.parametrize("stage", CUT.values(), ids=CUT)
def test_a_cluster_writes_what_one_process_writes(stage, cluster, monkeypatch):
    alone, rooms, room_of = written(stage), [], ray_cluster.room_of
    monkeypatch.setattr(ray_cluster, "room_of", lambda *given, **on: rooms.append(room_of(*given, **on)) or rooms[-1])
    assert written(stage, *cluster) == alone
    assert max(rooms) >= 1


def test_what_learns_from_the_text_or_costs_nothing_sees_it_whole(monkeypatch):
    alone = {name: written(stage) for name, stage in WHOLE.items()}
    monkeypatch.setattr(masked_lines, "computed", None)
    nowhere = ["--set", 'resources.cluster={"address": "127.0.0.1:1", "private_nodes": "private"}']
    assert {name: written(stage, *nowhere) for name, stage in WHOLE.items()} == alone
