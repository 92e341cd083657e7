"""``palimpsest apply``: another text comes out as the run's own did, and can be released."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import applied_experiment as experiment
import psutil
import pytest
from applied_experiment import CELLS, attacked, make_experiment, sentences
from made_up_words import made_up_words

from flows import release_command
from tasks.cli import command_parser, main
from tasks.errors import PalimpsestError
from tasks.privacy.earlier_releases import shared_lines
from tasks.privacy.ledger import read_ledger

COUNTED = "mail/words/counted-1"
OWN = "data/private/corpora/mail/train.txt"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apply") / "an experiment"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_experiment(folder, 60)
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    copy = tmp_path / "an experiment"
    shutil.copytree(template, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "dvc"))
    return copy


def apply(cell: str, text: str, output: str = "out", *options: str) -> Path:
    assert main(["apply", cell, "--input", text, "--output", output, "--processes", "1", *options]) == 0
    return Path(output)


@pytest.mark.parametrize("cell", CELLS)
def test_the_sentences_of_the_run_come_out_as_the_run_made_them(folder, cell, capsys):
    # Surrogates by document need the source, where documents are.
    by_document = "consistent" in cell
    made = apply(cell, "mail.txt" if by_document else OWN)
    raw, text = ((made / name).read_bytes().splitlines() for name in ("raw.txt", "text.txt"))
    own = dict(zip(Path(OWN).read_bytes().splitlines(), Path(CELLS[cell]).read_bytes().splitlines(), strict=False))
    if by_document:
        assert len(raw) == 140
        assert own.items() <= dict(zip(raw, text, strict=True)).items()
    else:
        masked = f"data/private/masked/mail/train/{cell.split('/')[1]}"
        assert (made / "text.txt").read_bytes() == Path(CELLS[cell]).read_bytes()
        assert (made / "sidecar.jsonl").read_bytes() == Path(masked, "sidecar.jsonl").read_bytes()
        assert (made / "raw.txt").read_bytes() == Path(OWN).read_bytes()
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {0o600}
    assert made.stat().st_mode & 0o777 == 0o700
    report = json.loads((made / "report.json").read_text())
    assert (report["lines"], report["sample_lines"]) == (len(raw), 60)
    said = (made / "report.json").read_text() + "".join(capsys.readouterr())
    assert not [name for name in experiment.NAMES if name in said]
    # Nothing private is left of the work.
    assert not [path for path in Path(".palimpsest/applied").glob("*") if path.is_dir()]


def test_neither_processes_nor_a_killed_call_change_a_byte(folder, tmp_path):
    lines = sentences(9000, seed=2)
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"body": one}) + "\n" for one in [*lines, lines[0]]))
    given = [str(tmp_path / "new.jsonl"), "killed", "--text-field", "body"]
    whole = apply(COUNTED, given[0], "whole", *given[2:])
    killed = subprocess.Popen(
        [sys.executable, "-m", "tasks.cli", "apply", COUNTED, "--input", given[0], "--output", "killed",
         "--processes", "2", *given[2:]],
        env={**os.environ, "PYTHONPATH": str(experiment.ROOT)},
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not list(Path(".palimpsest/applied").glob("*/done.json")):
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = psutil.Process(killed.pid).children()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    # No worker outlives the call.
    assert not psutil.wait_procs(workers, timeout=30)[1]
    assert not Path("killed").exists()
    (done,) = Path(".palimpsest/applied").glob("*/done.json")
    parts = json.loads(done.read_text())["parts"]
    assert parts < 3
    # What a kill left after the last part is cut off.
    with (done.parent / "text.txt").open("ab") as stream:
        stream.write(b"half a li")
    again = apply(COUNTED, *given)
    for name in ("text.txt", "raw.txt", "sidecar.jsonl"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()
    assert (whole / "raw.txt").read_text() == "".join(f"{one}\n" for one in lines)
    report = json.loads((whole / "report.json").read_text())
    assert (report["lines"], report["sample_lines"], report["left_out"]["duplicate"]) == (9000, 0, 1)


@pytest.mark.parametrize(
    ("change", "cell", "text", "says"),
    [
        (None, "mail/words/counter-1", OWN, "no filled cell of this experiment (did you mean 'mail/words/counted-1'?)"),
        ("data/word_counts.tsv", COUNTED, OWN, "'data/word_counts.tsv' has changed since the run made"),
        ("words.txt", COUNTED, OWN, "'words.txt' has changed since the run made"),
        ("out/mine", COUNTED, OWN, "'out' is no finished folder of 'palimpsest apply'"),
        ("none.txt", COUNTED, "none.txt", "none.txt' is empty"),
        (
            "code",
            "mail/crf/baseline1-1",
            OWN,
            "60 of the first 60 lines of 'mail/crf/baseline1' come out different now",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_applied_is_refused_in_one_line(folder, monkeypatch, capsys, change, cell, text, says):
    if change == "code":
        monkeypatch.setattr("tasks.masking.technique.marker_of", lambda *_: "[WORK]")
    elif change:
        Path(change).parent.mkdir(exist_ok=True)
        Path(change).write_text("" if change == "none.txt" else "other\t1\n")
    assert main(["apply", cell, "--input", text, "--output", "out", "--processes", "1"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert says in said[-1]
    assert not Path("out/text.txt").exists()


def release(*options: str) -> int:
    return release_command.run(command_parser("release", release_command).parse_args(list(options)))


@pytest.fixture
def repository(folder):
    (folder / ".dvc").mkdir()
    (folder / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (folder / "dvc.yaml").write_text("stages: {}\n")
    return folder


def test_an_applied_text_is_released_and_only_the_sample_costs_epsilon(repository, monkeypatch, capsys):
    attacked(COUNTED)
    monkeypatch.setattr("tasks.privacy.gate.unmasked", _unmasked)
    # Words of their own, so that no line is an edited one of the run's.
    words = made_up_words(300)
    Path("later.txt").write_text("".join(f"the {' '.join(words[at : at + 10])}\n" for at in range(0, 300, 10)))
    whole, later = apply(COUNTED, "mail.txt", "whole"), apply(COUNTED, "later.txt", "later")
    assert "were not counted" in capsys.readouterr().out
    release(COUNTED, "--applied", str(later), "--name", "later", "--approved-by", "Ada")
    assert Path("releases/later/text.txt").read_bytes() == (later / "text.txt").read_bytes()
    card, dossier = (Path("releases/later", name).read_text() for name in ("README.md", "DOSSIER.md"))
    assert "30 lines of UTF-8 text" in card
    assert "measured on a sample of 60 lines" in card
    assert "measured on a sample of 60 lines" in dossier
    release(COUNTED, "--applied", str(whole), "--name", "whole")
    rows = read_ledger()
    assert [(one.lines, one.sample_lines, one.epsilon, one.spent) for one in rows] == [(30, 0, 2, 2), (140, 60, 2, 2)]
    assert main(["ledger"]) == 0
    assert "whole: 140 lines, 60 of them in the run's sample" in capsys.readouterr().out
    # A later release of these lines costs what was counted: the sample's, in either release, and no line of another.
    held = {name: shared_lines(Path(place), Path(sidecar), rows) for name, place, sidecar in (
        ("sample", OWN, "data/private/masked/mail/train/words/sidecar.jsonl"),
        ("later", "later/raw.txt", "later/sidecar.jsonl"),
    )}  # fmt: skip
    other = {name: one.spent(one.among(rows, "mail"), "others", 1.0, "line") for name, one in held.items()}
    assert other == {"sample": 3.0, "later": 1.0}
    assert {one.name for one in held["sample"].among(rows, "mail")} == {"later", "whole"}
    assert set(held["sample"].lines) == {"whole"}


TABLE = 'id,customer,text\r\n1,Ada,"We met Ottilie [MASK] on a mat.\nthe"\r\n2,Bo,\r\n3,Cy,We met Ottilie.\r\n'


def test_a_table_is_written_back_and_released_with_the_fields_that_are_named(repository, monkeypatch, capsys):
    attacked(COUNTED)
    monkeypatch.setattr("tasks.privacy.gate.unmasked", _unmasked)
    Path("tickets.csv").write_bytes(TABLE.encode())
    made = apply(COUNTED, "tickets.csv", "out", "--write-back")
    assert "written back: out/files/tickets.csv; unchanged: customer, id" in capsys.readouterr().out
    # Short and repeated texts are filled too.
    first, the, again = (made / "text.txt").read_text().splitlines()
    assert the == "the"
    assert "Ottilie" not in first + again
    written = f'id,customer,text\r\n1,Ada,"{first}\n{the}"\r\n2,Bo,\r\n3,Cy,{again}\r\n'
    assert (made / "files/tickets.csv").read_bytes() == written.encode()
    assert (made / "files/tickets.csv").stat().st_mode & 0o777 == 0o600
    named = ("--applied", str(made), "--name", "tickets", "--public-field", "id")
    for more, says in (
        ((), "fields that are not filled: customer"),
        (("--public-field", "custmer"), "did you mean 'customer'"),
    ):
        with pytest.raises(PalimpsestError, match=says):
            release(COUNTED, *named, *more)
    release(COUNTED, *named, "--public-field", "customer")
    # The name of a file may be that of a person.
    assert Path("releases/tickets/files/1.csv").read_bytes() == written.encode()
    card = Path("releases/tickets/README.md").read_text()
    assert "The fields `customer`, `id` are those of the private files." in card
    assert main(["apply", "mail/words/tiny-top_k-1", "--input", "tickets.csv", "--output", "two", "--write-back"]) == 1
    assert "has 2 fills of each text" in capsys.readouterr().err


def test_halves_of_surrogate_pairs_are_written_back_as_text(folder):
    Path("chat.jsonl").write_text('{"text": "We met Ottilie \\ud83d on a mat."}\n', encoding="utf-8")
    made = apply(COUNTED, "chat.jsonl", "out", "--write-back")
    written = json.loads((made / "files/chat.jsonl").read_text())["text"]
    assert written.startswith("We met ")
    assert written.isprintable()


def _unmasked(cell, earlier):
    """As a review of the sample has found it; no reference reader runs here."""
    from tasks.review.estimate import Interval, Unmasked
    from tasks.review.unmasked import TechniqueUnmasked

    none = Unmasked(0, 0, Interval(0.0, 0.0, 1.0), None)
    return TechniqueUnmasked("review", "60 lines", none, none, {})


def test_another_folder_is_not_released(repository, monkeypatch):
    attacked(COUNTED)
    monkeypatch.setattr("tasks.privacy.gate.unmasked", _unmasked)
    made, other = apply(COUNTED, OWN), apply("mail/crf/surrogate-1", OWN, "other")
    report = json.loads((made / "report.json").read_text())
    cases = {
        "altered": "is not what 'palimpsest apply' wrote",
        "state": "another state",
        "unfinished": "no finished folder",
    }
    for name in cases:
        shutil.copytree(made, name)
    (Path("altered") / "text.txt").write_text("Ada\n")
    (Path("state") / "report.json").write_text(json.dumps(report | {"state": "0"}))
    (Path("unfinished") / "report.json").unlink()
    for name, says in {**cases, str(other): "was made by 'mail/crf/surrogate-1'"}.items():
        with pytest.raises(PalimpsestError, match=says):
            release(COUNTED, "--applied", name, "--name", "a")
    with pytest.raises(PalimpsestError, match="--with-model"):
        release(COUNTED, "--applied", str(made), "--name", "a", "--with-model")
    assert not read_ledger()
