"""Every stage that is cut into shards writes what it writes in one process, and goes on with what is finished."""

import json
import random
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from tiny_language_models import WORDS, save_causal, save_ngram, save_transformer

from tasks.cli import main
from tasks.language_model import sharded_model
from tasks.masking import masked_lines
from tasks.masking.technique import Technique
from tasks.masking.techniques import AnyTechnique
from tasks.shards import work_key
from tasks.shards.shard_store import ShardStore
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest

TIMINGS = ("seconds", "per_second")
NAMES = ["Zoltan Kovács", "Mary O'Neil", "tomorrow at 5pm", "Springfield", "two dogs", "bob@example.org"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stages")
    dice = random.Random(1)
    lines = [" ".join([*dice.choices(WORDS, k=dice.randrange(8)), dice.choice(NAMES)]) for _ in range(75)]
    (folder / "text.txt").write_text("".join(f"{line}.\n" for line in [*lines, *[""] * 15, "the last"]))
    (folder / "mixed.txt").write_text("the cat is here y el perro no está aquí\nwe saw the dog en la casa\n" * 40)
    for name in ("dev", "test"):
        lists = []
        for number in range(30):
            texts = {" ".join(dice.choices(WORDS, k=6)): -float(place) for place in range(4)}
            hypotheses = tuple(ScoredHypothesis(*each) for each in texts.items())
            lists.append(NbestList(f"{name}{number}", dice.choice(list(texts)), hypotheses))
        write_nbest(folder / f"{name}.jsonl", lists)
    save_ngram(folder / "ngram")
    save_transformer(folder / "sentences")
    save_transformer(folder / "stream", context="stream")
    save_causal(folder / "causal", "gpt2")
    return folder


@pytest.fixture(autouse=True)
def _small_shards(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for module in (masked_lines, sharded_model):
        monkeypatch.setattr(module, "SHARD_LINES", 10)
    monkeypatch.setattr(work_key, "_code_hash", str)


def mask(*technique, text="text.txt"):
    return ["mask", "--input", text, "--output", "out.txt", "--sidecar", "out.jsonl", *technique]


def perplexity(model):
    return ["perplexity", "--model", model, "--input", "text.txt", "--scores", "out.txt"]


def rescore(model):
    return ["rescore", "--nbest", "test.jsonl", "--dev", "dev.jsonl", "--model", model, "--output", "out.txt"]


PARTS = "parts=[{kind: allow_list}, {kind: entity_tagger, tagger: {kind: crf}}]"
CUT = {
    "tagger": mask("--technique", "spacy"),
    "combination": mask("--technique", "combination", "--set", "rule=union", "--set", PARTS),
    "sentences": perplexity("sentences"),
    "causal": perplexity("causal"),
    "rescore": rescore("ngram"),
    "audit": "audit --model sentences --base ngram --members text.txt --non-members mixed.txt".split(),
}
WHOLE = {
    "list": mask("--technique", "allow_list"),
    "language_lists": mask("--technique", "language_lists", text="mixed.txt"),
    "stream": perplexity("stream"),
}


def written(stage, *options):
    """What a stage has written, its report without timings."""
    assert main([*stage, "--report", "report.json", *options]) == 0
    measured = json.loads(Path("report.json").read_text())["measured"]
    numbers = {name: value for name, value in measured.items() if not name.endswith(TIMINGS)}
    return numbers, [path.read_bytes() for path in map(Path, ("out.txt", "out.jsonl")) if path.exists()]


def in_two(*more):
    return ["--set", "resources.devices=2", *more]


@pytest.mark.parametrize("stage", CUT.values(), ids=CUT)
def test_several_processes_write_what_one_writes(stage, monkeypatch):
    alone, shards = written(stage), []
    save = ShardStore.save
    monkeypatch.setattr(ShardStore, "save", lambda self, *shard: (shards.append(shard[0]), save(self, *shard)))
    assert written(stage, *in_two()) == alone
    assert len(shards) >= 5
    assert not list(Path(".palimpsest/shards").iterdir())


def test_what_learns_from_the_text_or_costs_nothing_sees_it_whole(monkeypatch):
    alone = {name: written(stage) for name, stage in WHOLE.items()}
    monkeypatch.setattr(masked_lines, "ShardedWork", None)
    monkeypatch.setattr(sharded_model, "ShardedWork", None)
    assert {name: written(stage, *in_two()) for name, stage in WHOLE.items()} == alone
    # A mask by one process keeps no shards.
    written(CUT["tagger"])


def test_what_is_cut_says_so():
    """A technique of another package, which may learn from the text, is not cut unless it says so."""
    lists = {"kind": "language_lists", "lists": {"en": 9, "es": 9}}
    parts = [{"kind": "allow_list"}, lists]
    assert not Technique.is_by_line
    for settings, is_by_line in [
        ({"kind": "allow_list"}, True),
        (lists, False),
        ({"kind": "combination", "rule": "union", "parts": parts}, False),
        ({"kind": "combination", "rule": "union", "parts": parts[:1] * 2}, True),
    ]:
        assert TypeAdapter(AnyTechnique).validate_python(settings).build(None, 1).is_by_line is is_by_line


@pytest.mark.parametrize("name", ["tagger", "sentences", "rescore"])
def test_an_interrupted_stage_goes_on_with_what_is_finished(name, monkeypatch):
    alone, saved, save = written(CUT[name]), [], ShardStore.save

    def interrupted(self, index, result):
        if len(saved) == 3:
            raise KeyboardInterrupt
        saved.append(index)
        save(self, index, result)

    with monkeypatch.context() as patch:
        patch.setattr(ShardStore, "save", interrupted)
        assert main([*CUT[name], *in_two()]) != 0
    (kept,) = (path for path in Path(".palimpsest/shards").iterdir() if list(path.glob("*.shard")))
    assert {path.stat().st_mode & 0o777 for path in (kept, *kept.iterdir())} == {0o700, 0o600}
    later = []
    monkeypatch.setattr(ShardStore, "save", lambda self, *shard: (later.append(shard[0]), save(self, *shard)))
    assert written(CUT[name], *in_two()) == alone
    assert later
    assert not set(saved) & set(later)
