"""Who has a report or MLflow's store, all of a private file but its last word, and a list of words, cannot find the
word, nor a line of the corpus."""

import hashlib
import json
import stat

import pytest
import tracked_state
from handmade_reports import TOP_K, change

from tasks.cli import main
from tasks.records.cells import stage_name
from tasks.records.stage_report import content_hash, recorded_stage

WORDS = ("harbour", "meadow", "vienna", "zebra")
SECRET = "vienna"
RAW = [
    " ".join(f"{stem}{number}" for stem in "we talked about our next trip and the old house by lake".split())
    for number in range(60)
]
KNOWN = "\n".join(RAW[:20]) + "\nall is known but the "
TEXTS = {
    "data/private/corpora/chat/train.txt": "\n".join(RAW) + "\n",
    "data/private/corpora/chat/test.txt": "\n".join(RAW[40:]) + "\n",
    "data/masked/chat/allow_list/train.txt": "\n".join(line.replace("house", "[MASK]") for line in RAW) + "\n",
    # Of ten filled lines nine are raw ones, without a masked word.
    f"data/obfuscated/{TOP_K.path}.txt": "".join(
        f"{line if number % 10 else line.replace('trip', 'walk')}\n" for number, line in enumerate(RAW)
    ),
    "data/private/corpora/chat/valid.txt": f"{KNOWN}{SECRET}\n",
    "data/private/sidecars/chat/allow_list.jsonl": f"{KNOWN}{SECRET}\n",
}


def found_words(text: str, known: str, name: str) -> list[str]:
    """The words for which a text has a hash of the file ``known`` with the word at its end, or of its folder, were its
    hashes plain ones."""

    def plain_hashes(content: bytes) -> set[str]:
        found = {hashlib.new(kind, content).hexdigest() for kind in ("md5", "sha1", "sha256", "blake2b")}
        return found | {hashlib.sha256(f"{name}\0{digest}\n".encode()).hexdigest() for digest in found}

    guesses = {word: plain_hashes(known.replace("{}", word).encode()) for word in WORDS}
    return [word for word, hashes in guesses.items() if any(digest[:10] in text for digest in hashes)]


def test_a_guess_of_the_last_word_has_no_hash_of_a_report_and_two_clones_have_different_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sidecar, line = tmp_path / "private" / "sidecar.jsonl", '{"line": 1, "word": "{}"}\n'
    sidecar.parent.mkdir()
    sidecar.write_text(line.replace("{}", SECRET), encoding="utf-8")
    plain = hashlib.sha256(sidecar.read_bytes()).hexdigest()
    assert found_words(plain, line, sidecar.name) == [SECRET]
    with recorded_stage("fill", "report.json", inputs=[sidecar, sidecar.parent], outputs=[]):
        pass
    report = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert found_words(report, line, sidecar.name) == []
    # To the clone itself they say what they are there for.
    own = json.loads(report)
    assert own["inputs"][str(sidecar)] == content_hash(sidecar)
    (tmp_path / "another clone").mkdir()
    monkeypatch.chdir(tmp_path / "another clone")
    with recorded_stage("fill", "report.json", inputs=[sidecar]):
        pass
    other = json.loads((tmp_path / "another clone/report.json").read_text(encoding="utf-8"))
    assert other["inputs"][str(sidecar)] != own["inputs"][str(sidecar)]
    assert other["hash_key"] != own["hash_key"]
    sidecar.write_text(line.replace("{}", "meadow"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert content_hash(sidecar) not in own["inputs"].values()


@pytest.fixture
def with_texts(tracked):
    """A published experiment whose texts are there, as its reports and its dvc.lock say."""
    for path, text in TEXTS.items():
        (tracked / path).parent.mkdir(parents=True, exist_ok=True)
        (tracked / path).write_text(text, encoding="utf-8")

    def hash_texts(report):
        for files in (report["inputs"], report["outputs"]):
            files |= {name: content_hash(name) for name in files if name in TEXTS}

    for path in (tracked / "results" / "reports").rglob("*.json"):
        change(path, hash_texts)
    score = f"results/reports/perplexity/{TOP_K.path}.json"
    files = [{"path": name, "md5": hashlib.md5(text.encode()).hexdigest()} for name, text in TEXTS.items()]
    scores = [{"path": score, "md5": hashlib.md5((tracked / score).read_bytes()).hexdigest()}]
    stages = {
        "mask@chat-allow_list": {"cmd": "mask", "outs": files},
        stage_name(TOP_K, "evaluate"): {"cmd": "evaluate", "deps": files, "outs": scores},
    }
    (tracked / "dvc.lock").write_text(json.dumps({"schema": "2.0", "stages": stages}), encoding="utf-8")
    assert main(["summarise"]) == main(["publish"]) == 0
    return tracked


def everything(folder):
    """Every cell of every table as text; there is no artifact."""
    names = [name for (name,) in tracked_state.select(folder, "select name from sqlite_master where type = 'table'")]
    tables = (tracked_state.select(folder, f'select * from "{name}"') for name in names)
    found = [str(cell) for table in tables for row in table for cell in row]
    assert not any(tracked_state.artifacts(folder, run).exists() for run in tracked_state.runs(folder).values())
    return "\n".join(found)


def test_the_store_has_neither_eight_words_of_a_line_nor_a_hash_to_try_a_word_against(with_texts):
    store = everything(with_texts)
    joined = " ".join(store.split())
    windows = {" ".join(line.split()[start:][:8]) for line in RAW for start in range(4)}
    assert [window for window in windows if window in joined] == []
    assert found_words(store, KNOWN + "{}\n", "sidecar.jsonl") == []
    # The lock, which has such hashes, stays in the private folder under the name that the run has.
    run = next(run for key, run in tracked_state.runs(with_texts).items() if key.startswith(f"{TOP_K.path}#"))
    digest = tracked_state.tags(with_texts, run)["dvc_lock"]
    (lock,) = (with_texts / "data" / "private" / "lineage").iterdir()
    assert lock.name == f"{digest}.json"
    assert (stat.S_IMODE(lock.stat().st_mode), stat.S_IMODE(lock.parent.stat().st_mode)) == (0o600, 0o700)
    assert found_words(lock.read_text(encoding="utf-8"), KNOWN + "{}\n", "sidecar.jsonl") == [SECRET]
    assert digest != hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
