"""Who has a report, all of a private file but its last word, and a list of words, cannot tell which word is right."""

import hashlib
import json

from tasks.records.stage_report import content_hash, recorded_stage

KNOWN = '{"line": 1, "word": "'
WORDS = ("harbour", "meadow", "vienna", "zebra")


def plain_hashes(content: bytes) -> set[str]:
    """What a report would say of a file with this content, or of a folder that holds it, were its hashes plain ones."""
    found = {hashlib.new(name, content).hexdigest() for name in ("md5", "sha1", "sha256", "blake2b")}
    return found | {hashlib.sha256(f"sidecar.jsonl\0{digest}\n".encode()).hexdigest() for digest in found}


def test_no_guess_of_the_last_word_has_the_hash_of_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sidecar = tmp_path / "private" / "sidecar.jsonl"
    sidecar.parent.mkdir()
    sidecar.write_text(f'{KNOWN}vienna"}}\n', encoding="utf-8")
    with recorded_stage("fill", "report.json", inputs=[sidecar, sidecar.parent], outputs=[]):
        pass
    report = (tmp_path / "report.json").read_text(encoding="utf-8")
    guesses = {word: plain_hashes(f'{KNOWN}{word}"}}\n'.encode()) for word in WORDS}
    assert [word for word, hashes in guesses.items() if any(digest[:10] in report for digest in hashes)] == []
    # To the clone itself they say what they are there for.
    said = json.loads(report)["inputs"]
    assert said[str(sidecar)] == content_hash(sidecar)
    sidecar.write_text(f'{KNOWN}meadow"}}\n', encoding="utf-8")
    assert content_hash(sidecar) not in said.values()


def test_two_clones_have_different_hashes_and_each_report_names_its_key(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("the same text\n", encoding="utf-8")
    reports = []
    for clone in ("one", "other"):
        (tmp_path / clone).mkdir()
        monkeypatch.chdir(tmp_path / clone)
        with recorded_stage("mask", "report.json", inputs=["../text.txt"]):
            pass
        reports.append(json.loads((tmp_path / clone / "report.json").read_text(encoding="utf-8")))
    assert reports[0]["inputs"] != reports[1]["inputs"]
    assert reports[0]["hash_key"] != reports[1]["hash_key"]
