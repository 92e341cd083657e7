"""Who has MLflow's store and its artifacts looks for the corpus in them, and for the last word of a private file."""

import hashlib
import json
import sqlite3
import stat

import pytest
import tracked_state
from handmade_experiment import write_examples
from test_keyed_hashes import WORDS, plain_hashes

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.records.cells import stage_name
from tasks.records.stage_report import content_hash

TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)
RAW = [
    " ".join(f"{stem}{number}" for stem in "we talked about our next trip and the old house by lake".split())
    for number in range(60)
]
SECRET = "vienna"
KNOWN = "\n".join(RAW[:20]) + "\nall is known but the "
TEXTS = {
    "data/private/corpora/chat/train.txt": "\n".join(RAW) + "\n",
    "data/private/corpora/chat/test.txt": "\n".join(RAW[40:]) + "\n",
    "data/masked/chat/allow_list/train.txt": "\n".join(line.replace("house", "[MASK]") for line in RAW) + "\n",
    # What a technique does not mask stands in clear in what is filled: of ten lines nine are raw ones.
    f"data/obfuscated/{TOP_K.path}.txt": "\n".join(
        line if number % 10 else line.replace("trip", "walk") for number, line in enumerate(RAW)
    )
    + "\n",
    "data/private/corpora/chat/valid.txt": f"{KNOWN}{SECRET}\n",
    "data/private/sidecars/chat/allow_list.jsonl": f"{KNOWN}{SECRET}\n",
}


@pytest.fixture
def published(tracked):
    """A published experiment whose texts are there, as its reports and its dvc.lock say."""
    for path, text in TEXTS.items():
        (tracked / path).parent.mkdir(parents=True, exist_ok=True)
        (tracked / path).write_text(text, encoding="utf-8")
    for path in (tracked / "results" / "reports").rglob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        for files in (document["inputs"], document["outputs"]):
            files |= {name: content_hash(name) for name in files if name in TEXTS}
        path.write_text(json.dumps(document), encoding="utf-8")
    report = f"results/reports/perplexity/{TOP_K.path}.json"
    files = [{"path": name, "md5": hashlib.md5(text.encode()).hexdigest()} for name, text in TEXTS.items()]
    score = {"path": report, "md5": hashlib.md5((tracked / report).read_bytes()).hexdigest()}
    stages = {
        "mask@chat-allow_list": {"cmd": "mask", "outs": files},
        stage_name(TOP_K, "evaluate"): {"cmd": "evaluate", "deps": files, "outs": [score]},
    }
    (tracked / "dvc.lock").write_text(json.dumps({"schema": "2.0", "stages": stages}), encoding="utf-8")
    write_examples(tracked)
    assert main(["summarise"]) == 0
    assert main(["publish"]) == 0
    return tracked


def everything(folder):
    """Every cell of every table, and every artifact, as text."""
    found = []
    with sqlite3.connect(folder / "mlflow.db") as store:
        for (table,) in store.execute("select name from sqlite_master where type = 'table'").fetchall():
            found += [str(cell) for row in store.execute(f'select * from "{table}"') for cell in row]
    places = [tracked_state.artifacts(folder, run) for run in tracked_state.runs(folder).values()]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["made_up.txt"]
    found += [path.read_bytes().decode("utf-8", "replace") for path in files]
    return "\n".join(found)


def test_no_line_of_the_corpus_and_no_eight_words_of_one_stand_in_the_store(published):
    store = " ".join(everything(published).split())
    windows = {" ".join(line.split()[start:][:8]) for line in RAW for start in range(4)}
    assert [window for window in windows if window in store] == []


def test_the_last_word_of_a_private_file_cannot_be_tried_against_the_store(published):
    store = everything(published)
    guesses = {word: plain_hashes(f"{KNOWN}{word}\n".encode()) for word in WORDS}
    assert [word for word, hashes in guesses.items() if any(digest[:10] in store for digest in hashes)] == []


def test_the_lock_of_a_run_stays_in_the_private_folder_under_the_name_that_the_run_has(published):
    run = next(run for key, run in tracked_state.runs(published).items() if key.startswith(f"{TOP_K.path}#"))
    digest = tracked_state.tags(published, run)["dvc_lock"]
    (kept,) = (published / "data" / "private" / "lineage").iterdir()
    assert kept.name == f"{digest}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert hashlib.md5(TEXTS["data/private/sidecars/chat/allow_list.jsonl"].encode()).hexdigest() in kept.read_text()
    assert digest != hashlib.sha256(kept.read_bytes()).hexdigest()[:12]
