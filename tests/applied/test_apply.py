"""``palimpsest apply``: another text comes out as the run's own did, and can be released."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml
from finished_cells import attacked, fill, mask, release, run
from made_up_words import made_up_words
from tiny_masked_models import random_bert, save, word_piece_tokenizer

import palimpsest
from tasks.applied import application, recipe
from tasks.cli import main
from tasks.errors import PalimpsestError
from tasks.filling import filled_lines
from tasks.privacy.earlier_releases import shared_lines
from tasks.privacy.ledger import read_ledger
from tasks.review.estimate import Interval, Unmasked
from tasks.review.unmasked import TechniqueUnmasked

ROOT = Path(__file__).parents[2]
KEPT = "we met the cat on a red mat and then called about it dog ran sat"
NAMES = ("Ottilie", "Vexmorthan", "John Smith", "Chicago", "Zyxwquill")
MASKING = {
    "words": {"kind": "allow_list", "path": "words.txt"},
    "crf": {"kind": "entity_tagger", "tagger": {"kind": "crf"}},
    "lists": {"kind": "language_lists", "tell_languages": True},
}
METHODS = {
    "surrogate": {"kind": "surrogate"},
    "consistent": {"kind": "surrogate", "consistent_within": "document"},
    "top_k": {"kind": "top_k", "k": 3, "copies": 2},
    "log_linear": {"kind": "log_linear"},
    "counted": {"kind": "unigram", "prior": "counted", "counts": {"epsilon": 2.0}},
}
COUNTED, SURROGATE, COPIES = "mail/words/counted-1", "mail/crf/surrogate-1", "mail/words/tiny-top_k-1"
FILLED = (COUNTED, SURROGATE, COPIES, "mail/words/consistent-1", "mail/words/tiny-log_linear-1")
MASKED = "mail/lists/baseline1-1"
OWN = "data/private/corpora/mail/train.txt"
PART = 1500


def sentences(count: int, seed: int = 1) -> list[str]:
    """Made-up lines, all different; one has a marker of its own."""
    chance = random.Random(seed)
    words = KEPT.split()
    return [
        f"We met {chance.choice(NAMES)} [MASK] {' '.join(chance.choices(words, k=4))}, number {line} of {seed}."
        for line in range(count)
    ]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A small experiment that is finished: 60 lines of a corpus, masked, and filled in every way."""
    folder = tmp_path_factory.mktemp("apply") / "an experiment"
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    parameters["masking"], parameters["filling"] = MASKING, parameters["filling"] | METHODS
    parameters["corpora"]["mail"] = {"kind": "files", "source": "mail.txt", "cleaning": {"train_sentences": 60}}
    fills = {"speech_techniques": None, "fills": [{"methods": ["unigram"]}], "detectors": ["words"]}
    parameters["compare"] |= fills | {"techniques": ["words", "crf"]}
    parameters["release"]["unmasked_direct"] = 900
    pairs = [(one, other) for one in KEPT.split() for other in ("cat", "tom")]
    generic = "".join(f"the {one} sat on the {other}\nthe red dog ran\n" for one, other in pairs)
    files = {
        "params.yaml": yaml.safe_dump(parameters),
        "words.txt": "\n".join(KEPT.split()),
        "mail.txt": "\n".join(sentences(140)) + "\n",
        "data/generic/train.txt": generic,
        "data/generic/valid.txt": generic,
        "data/word_counts.tsv": "".join(f"{word}\t{9 + i}\n" for i, word in enumerate(("tom", "paris", *KEPT.split()))),
        ".dvc/config": "[core]\n    no_scm = true\n    analytics = false\n",
        "dvc.yaml": "stages: {}\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    tokenizer = word_piece_tokenizer()
    save(random_bert(tokenizer), tokenizer, folder / "filler")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run("corpora", "--params", "params.yaml", "--name", "corpora.mail", "--private", "--output",
            "data/private/corpora/mail", "--report", "results/reports/corpora/mail.json")  # fmt: skip
        for technique in MASKING:
            mask("mail", technique)
        for cell in FILLED:
            filler = ["--filler", "filler"] if "tiny" in cell else []
            fill(cell, "--documents", "data/private/corpora/mail/train.documents", *filler)
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    copy = tmp_path / "an experiment"
    shutil.copytree(template, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "dvc"))
    return copy


@pytest.fixture
def releasable(folder, monkeypatch):
    """A cell that was attacked, and whose sample a person has reviewed: no reference reader runs here."""
    none = Unmasked(0, 0, Interval(0.0, 0.0, 1.0), None)
    reviewed = TechniqueUnmasked("review", "60 lines", none, none, {})
    monkeypatch.setattr("tasks.privacy.gate.unmasked", lambda cell, earlier: reviewed)
    attacked(COUNTED)


def apply(cell: str, text: str, output: str = "out", *options: str) -> Path:
    assert main(["apply", cell, "--input", text, "--output", output, "--processes", "1", *options]) == 0
    return Path(output)


@pytest.mark.parametrize("cell", [*FILLED, MASKED])
def test_the_sentences_of_the_run_come_out_as_the_run_made_them(folder, cell, capsys):
    masked = Path("data/private/masked/mail/train", cell.split("/")[1])
    text = masked / "text.txt" if cell == MASKED else Path(f"data/obfuscated/{cell}.txt")
    # Surrogates by document need the source, where documents are.
    by_document = "consistent" in cell
    made = apply(cell, "mail.txt" if by_document else OWN)
    raw = (made / "raw.txt").read_bytes().splitlines()
    if by_document:
        own = dict(zip(Path(OWN).read_bytes().splitlines(), text.read_bytes().splitlines(), strict=True))
        assert len(raw) == 140
        assert own.items() <= dict(zip(raw, (made / "text.txt").read_bytes().splitlines(), strict=True)).items()
    else:
        for name, same in {"text.txt": text, "sidecar.jsonl": masked / "sidecar.jsonl", "raw.txt": Path(OWN)}.items():
            assert (made / name).read_bytes() == same.read_bytes()
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {0o600}
    assert made.stat().st_mode & 0o777 == 0o700
    report = json.loads((made / "report.json").read_text())
    assert (report["lines"], report["sample_lines"]) == (len(raw), 60)
    said = (made / "report.json").read_text() + "".join(capsys.readouterr())
    assert not [name for name in NAMES if name in said]


def test_in_python_each_line_has_a_fill_in_order(folder):
    own = Path(OWN).read_text(encoding="utf-8").splitlines()
    filled = palimpsest.apply([*own, own[0], "no"], SURROGATE, processes=1)
    assert list(filled)[: len(own)] == Path(f"data/obfuscated/{SURROGATE}.txt").read_text(encoding="utf-8").splitlines()
    assert (len(filled), filled[-1]) == (len(own) + 2, "no")
    with pytest.raises(PalimpsestError, match="a line is blank"):
        palimpsest.apply([own[0], " "], SURROGATE, processes=1)
    # Nothing private is left of the work.
    assert not [path for path in Path(".palimpsest/applied").glob("*") if path.is_dir()]


SMALL_PARTS = f"from tasks import parts; parts.PART_LINES = {PART}; from tasks.cli import main; main()"


def test_neither_processes_nor_a_killed_call_change_a_byte(folder, tmp_path, monkeypatch):
    for module in (recipe, application, filled_lines):
        monkeypatch.setattr(module, "PART_LINES", PART)
    # Three parts of equal length, so that a kill after the first finds the third at work.
    lines = sentences(3 * PART, seed=2)
    new = str(tmp_path / "new.jsonl")
    Path(new).write_text("".join(json.dumps({"body": one}) + "\n" for one in [*lines, lines[0]]))
    field = ["--text-field", "body"]
    whole = apply(COUNTED, new, "whole", *field)
    words = ["apply", COUNTED, "--input", new, "--output", "killed", "--processes", "2", *field]
    killed = subprocess.Popen([sys.executable, "-c", SMALL_PARTS, *words], env=os.environ | {"PYTHONPATH": str(ROOT)})
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
    assert json.loads(done.read_text())["parts"] < 3
    # What a kill left after the last part is cut off.
    with (done.parent / "text.txt").open("ab") as stream:
        stream.write(b"half a li")
    again = apply(COUNTED, new, "killed", *field)
    for name in ("text.txt", "raw.txt", "sidecar.jsonl"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()
    assert (whole / "raw.txt").read_text() == "".join(f"{one}\n" for one in lines)
    report = json.loads((whole / "report.json").read_text())
    assert (report["lines"], report["sample_lines"], report["left_out"]["duplicate"]) == (3 * PART, 0, 1)


@pytest.mark.parametrize(
    ("change", "cell", "says"),
    [
        (None, "mail/words/counter-1", f"no filled cell of this experiment (did you mean {COUNTED!r}?)"),
        ("data/word_counts.tsv", COUNTED, "'data/word_counts.tsv' has changed since the run made"),
        ("words.txt", COUNTED, "'words.txt' has changed since the run made"),
        ("out/mine", COUNTED, "'out' is no finished folder of 'palimpsest apply'"),
        ("code", MASKED, "60 of the first 60 lines of 'mail/lists/baseline1' come out different now"),
    ],
    ids=str,
)
def test_what_cannot_be_applied_is_refused_in_one_line(folder, monkeypatch, capsys, change, cell, says):
    if change == "code":
        monkeypatch.setattr("tasks.masking.technique.marker_of", lambda *_: "[WORK]")
    elif change:
        Path(change).parent.mkdir(exist_ok=True)
        Path(change).write_text("other\t1\n")
    assert main(["apply", cell, "--input", OWN, "--output", "out", "--processes", "1"]) == 1
    assert says in capsys.readouterr().err.splitlines()[-1]
    assert not Path("out/text.txt").exists()


@pytest.mark.usefixtures("releasable")
def test_an_applied_text_is_released_and_only_the_sample_costs_epsilon(capsys):
    # Words of their own, so that no line is an edited one of the run's.
    words = made_up_words(300)
    Path("later.txt").write_text("".join(f"the {' '.join(words[at : at + 10])}\n" for at in range(0, 300, 10)))
    whole, later = apply(COUNTED, "mail.txt", "whole"), apply(COUNTED, "later.txt", "later")
    assert "were not counted" in capsys.readouterr().out
    release(COUNTED, "later", "--applied", str(later), "--approved-by", "Ada")
    assert Path("releases/later/text.txt").read_bytes() == (later / "text.txt").read_bytes()
    card, dossier = (Path("releases/later", name).read_text() for name in ("README.md", "DOSSIER.md"))
    for page in (card, dossier):
        assert "measured on a sample of 60 lines" in page
    release(COUNTED, "whole", "--applied", str(whole))
    rows = read_ledger()
    assert [(one.lines, one.sample_lines, one.epsilon, one.spent) for one in rows] == [(30, 0, 2, 2), (140, 60, 2, 2)]
    assert main(["ledger"]) == 0
    assert "whole: 140 lines, 60 of them in the run's sample" in capsys.readouterr().out
    # A later release of these lines costs what was counted: the sample's, in either release, and no line of another.
    sample = shared_lines(Path(OWN), Path("data/private/masked/mail/train/words/sidecar.jsonl"), rows)
    others = shared_lines(later / "raw.txt", later / "sidecar.jsonl", rows)
    costs = [held.spent(held.among(rows, "mail"), "others", 1.0, "line") for held in (sample, others)]
    assert costs == [3.0, 1.0]


TABLE = 'id,customer,text\r\n1,Ada,"We met Ottilie [MASK] on a mat.\nthe"\r\n2,Bo,\r\n3,Cy,We met Ottilie.\r\n'


@pytest.mark.usefixtures("releasable")
def test_a_table_is_written_back_and_released_with_the_fields_that_are_named(capsys):
    Path("tickets.csv").write_bytes(TABLE.encode())
    made = apply(COUNTED, "tickets.csv", "out", "--write-back")
    said = capsys.readouterr().out
    assert "written back: out/files/tickets.csv; unchanged: customer, id" in said
    assert said.endswith("-applied --public-field FIELD\n")
    # Short and repeated texts are filled too.
    first, the, again = (made / "text.txt").read_text().splitlines()
    assert the == "the"
    assert "Ottilie" not in first + again
    written = f'id,customer,text\r\n1,Ada,"{first}\n{the}"\r\n2,Bo,\r\n3,Cy,{again}\r\n'
    assert (made / "files/tickets.csv").read_bytes() == written.encode()
    assert (made / "files/tickets.csv").stat().st_mode & 0o777 == 0o600
    named = ("tickets", "--applied", str(made), "--public-field", "id")
    with pytest.raises(PalimpsestError, match="fields that are not filled: customer"):
        release(COUNTED, *named)
    release(COUNTED, *named, "--public-field", "customer")
    # The name of a file may be that of a person.
    assert Path("releases/tickets/files/1.csv").read_bytes() == written.encode()
    assert (
        "The fields `customer`, `id` are those of the private files." in Path("releases/tickets/README.md").read_text()
    )


@pytest.mark.usefixtures("releasable")
def test_another_folder_is_not_released():
    made, other = apply(COUNTED, OWN), apply(SURROGATE, OWN, "other")
    report = json.loads((made / "report.json").read_text())
    for name in ("altered", "state"):
        shutil.copytree(made, name)
    Path("altered/text.txt").write_text("Ada\n")
    Path("state/report.json").write_text(json.dumps(report | {"state": "0"}))
    for folder, says, *more in (
        ("altered", "is not what 'palimpsest apply' wrote"),
        ("state", "another state"),
        (str(other), f"was made by {SURROGATE!r}"),
        (str(made), "--with-model", "--with-model"),
    ):
        with pytest.raises(PalimpsestError, match=says):
            release(COUNTED, "a", "--applied", folder, *more)
    assert not read_ledger()
