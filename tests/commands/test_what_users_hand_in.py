"""Whatever is handed in, a command ends with what was asked for, or with one line that says why not and leaves nothing.

The cases are rows of ``user_cases``.
"""

import io
import shlex
import shutil
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from tiny_masked_models import random_bert, save, word_piece_tokenizer
from user_cases import CASES, PARAMS, SHIPPED, Case

from tasks.cli import main
from tasks.corpora.text_lines import read_lines

PRIVATE = ("Zebulon", "Quux", "Ottilie")
"""Words of the texts that no error may quote."""
MAIL = "Zebulon Quux wrote to Ottilie.\nthe cat sat on the mat\n\nplease call 555-1234 today\n"
GENERIC = ["the cat sat on the mat", "a dog and a cat", "the dog sat on a mat", "on the mat a dog sat today"] * 5
LISTS = (
    '{"utterance_id": "u%d", "reference": "the cat sat", "hypotheses": [{"text": "the mat sat", "score": -1.0}, '
    '{"text": "the cat sat", "score": -2.0}]}\n'
)


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """Small files of every sort that commands read."""
    folder = tmp_path_factory.mktemp("handed_out")
    generic = "".join(f"{line}\n" for line in GENERIC)
    for path, text in {
        "mail.txt": MAIL,
        **dict.fromkeys(("generic.txt", "generic/train.txt", "generic/valid.txt"), generic),
        "dev.jsonl": "".join(LISTS % number for number in range(4)),
        "gold.jsonl": '{"text": "Zebulon Quux left", "spans": [{"start": 0, "end": 12, "label": "PERSON"}]}\n',
        "params.yaml": SHIPPED.decode(),
    }.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    (folder / "folder").mkdir()
    save(random_bert(word_piece_tokenizer()), word_piece_tokenizer(), folder / "filler")
    with chdir(folder):
        for command in (
            "count-words --input generic.txt --output counts.tsv",
            "vocabulary --word-counts counts.tsv --output vocabulary.txt --set size=100",
            "pretrain --set kind=ngram --vocabulary vocabulary.txt --input generic.txt --output model",
            "mask --technique allow_list --input mail.txt --output masked.txt --allowed-words kept.txt "
            "--sidecar sidecar.jsonl",
        ):
            assert main(shlex.split(command)) == 0
    return folder


def hand_in(case: Case) -> None:
    """Write ``x``, which is ``params.yaml`` for those who read it, or the files of the case."""
    x = "params.yaml" if case.command == PARAMS else "x"
    for path, content in (case.x if isinstance(case.x, dict) else {x: case.x}).items():
        if content is None:
            Path(path).unlink(missing_ok=True)
            continue
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("command", sorted({case.command.split()[0] for case in CASES}))
def test_what_is_handed_in(command, handed_out, tmp_path, monkeypatch, capsys):
    """All rows of one command; those that go wrong are shown together."""
    wrong = {}
    for case in (case for case in CASES if case.command.split()[0] == command):
        place = tmp_path / "place"
        shutil.copytree(handed_out, place)
        (place / "link.txt").symlink_to("mail.txt")
        monkeypatch.chdir(place)
        try:
            check(case, place, monkeypatch, capsys)
        except AssertionError as error:
            wrong[f"{case.command} {case.x!r:.80}"] = str(error)
        shutil.rmtree(place)
    assert wrong == {}


def check(case, place, monkeypatch, capsys):
    hand_in(case)
    before = sorted(place.rglob("*"))
    typed = shlex.split(case.command)
    read = typed[typed.index("--input") + 1] if "--input" in typed[:-1] else ""
    content = case.x if read == "-" else Path(read).read_bytes() if read and case.status == 0 else b""
    content = content if isinstance(content, bytes) else content.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    try:
        status = main(typed)
    except SystemExit as exit_status:
        status = exit_status.code
    captured = capsys.readouterr()
    assert status == case.status, captured.err
    assert "Traceback" not in captured.err
    assert not [word for word in PRIVATE if word in captured.err]
    if case.status:
        assert captured.err.count("\n") == 1, captured.err
        assert case.says in captured.err
        assert len(captured.err) < 2000
        assert sorted(place.rglob("*")) == before
        return
    assert case.says in captured.out + captured.err
    assert not (place / "PWNED").exists()
    assert all(path.stat().st_mode & 0o077 == 0 for path in place.glob("o.txt"))
    if typed[0] in ("mask", "fill") and (place / "o.txt").exists():
        assert len(list(read_lines("o.txt"))) == len(content.removesuffix(b"\n").split(b"\n"))
