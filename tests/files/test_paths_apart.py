"""No output is an input or another output: refused before anything is read or written, and nothing is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasks import cli
from tasks.errors import ParameterError
from tasks.records.stage_report import recorded_stage

TEXT = "the cat of Zebulon Quux sat\n" * 12
COMMAND = [sys.executable, "-c", "import sys; from tasks.cli import main; sys.exit(main(sys.argv[1:]))"]
ROOT = Path(__file__).parents[2]
MASK = "mask --technique allow_list"
_NO_PATHS = {
    "--gguf-file": "inside the folder of --model",
    "--lists": "below --source",
    "--work-folder": "work that goes on",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("text", "sidecar.jsonl", "counts.tsv"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    for name in ("model", "source", "labelled"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "labelled" / "train.jsonl").write_text(TEXT, encoding="utf-8")
    (tmp_path / "link").symlink_to("text")
    os.link(tmp_path / "text", tmp_path / "hard")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (f"{MASK} --input text --output new --sidecar new", "--output 'new' and --sidecar 'new' are the same"),
        (f"{MASK} --input text --output new --sidecar ./model/../new", "--sidecar './model/../new' are the same"),
        (f"{MASK} --input text --output new --kept-words new", "--output 'new' and --kept-words 'new'"),
        (f"{MASK} --input text --output - --sidecar -", "--output '-' and --sidecar '-' are the same"),
        (f"{MASK} --input text --output new --sidecar text", "--sidecar 'text' is --input 'text', which is read"),
        (f"{MASK} --input text --output text", "--output 'text' is --input 'text'"),
        (f"{MASK} --input text --output link", "--output 'link' is --input 'text'"),
        (f"{MASK} --input text --output hard", "--output 'hard' is --input 'text'"),
        (f"{MASK} --input text --output new --report text", "--report 'text' is --input 'text'"),
        (f"{MASK} --input text --output new --params counts.tsv --report counts.tsv", "is --params 'counts.tsv'"),
        (
            "mask --technique combination --rule union --part allow_list:counts.tsv --part spacy --input text "
            "--output counts.tsv",
            "--output 'counts.tsv' is --part 'counts.tsv'",
        ),
        ("preview --technique allow_list --html text text", "--html 'text' is FILE 'text'"),
        ("fill --method surrogate --input text --sidecar sidecar.jsonl --output sidecar.jsonl", "is --sidecar"),
        ("fill --method unigram --input text --output new --report new", "--output 'new' and --report 'new'"),
        ("fill --method unigram --input text --word-counts counts.tsv --output counts.tsv", "is --word-counts"),
        ("perplexity --model model --text text --scores text", "--scores 'text' is --text 'text'"),
        ("perplexity --model model --text text --report model/r.json", "--report 'model/r.json' lies in --model"),
        ("count-words --input text --output text", "--output 'text' is --input 'text'"),
        ("vocabulary --text text --output text", "--output 'text' is --text 'text'"),
        ("findings --summary text --output text", "--output 'text' is --summary 'text'"),
        ("report --summary text --output text", "--output 'text' is --summary 'text'"),
        ("publish --summary text --output text", "--output 'text' is --summary 'text'"),
        ("summarise --output new --markdown new", "--output 'new' and --markdown 'new'"),
        ("compare-detectors --output new --plot new", "--output 'new' and --plot 'new'"),
        ("adapt --model model --text text --output model", "--output 'model' is --model 'model'"),
        ("adapt --model model --text text --output model/new", "--output 'model/new' lies in --model 'model'"),
        ("adapt --model source --text model/text.txt --output model", "--text 'model/text.txt' lies in --output"),
        ("pretrain --vocabulary counts.tsv --text text --output counts.tsv", "is --vocabulary 'counts.tsv'"),
        ("train-filler --model model --output model", "--output 'model' is --model 'model'"),
        ("tune-filler --base model --input text --output ./model", "--output './model' is --base 'model'"),
        ("train-tagger --labelled labelled --output labelled", "--output 'labelled' is --labelled 'labelled'"),
        ("train-tagger --labelled labelled --output new --report labelled/train.jsonl", "lies in --labelled"),
        ("corpora --source source --output source", "--output 'source' is --source 'source'"),
        ("corpora --source source --output source/new", "--output 'source/new' lies in"),
        ("corpora --source new/train.txt --output new", "--source 'new/train.txt' is 'train.txt' of --output 'new'"),
        ("corpora --source source --output new --report new/valid.txt", "is 'valid.txt' of --output 'new'"),
        ("corpora --source source --output new --report source/text.txt", "lies in --source 'source'"),
        ("generate-labelled --output labelled --learn-from labelled/train.jsonl", "is 'train.jsonl' of --output"),
        ("generate-labelled --output labelled --learn-from text --write-templates text", "is --learn-from 'text'"),
        ("check-gold --gold text --output text", "--output 'text' is --gold 'text'"),
        ("evaluate-masking --technique allow_list --gold text --errors text", "--errors 'text' is --gold 'text'"),
        ("speech-corpus --source source/text.txt --output source --report source/text.txt", "is --source"),
        ("synthesise-speech --text source/text.txt --output source", "--text 'source/text.txt' lies in --output"),
        ("train-recogniser --manifest text --output text", "--output 'text' is --manifest 'text'"),
        ("encode-speech --recogniser model --manifest text --output text", "--output 'text' is --manifest 'text'"),
        ("reference-text --references text --output text", "--output 'text' is --references 'text'"),
        ("word-error-rate --references text --hypotheses counts.tsv --errors new --counts new", "--counts 'new'"),
        (
            "word-error-rate --references text --hypotheses counts.tsv --masked a=sidecar.jsonl --errors sidecar.jsonl",
            "--errors 'sidecar.jsonl' is --masked 'sidecar.jsonl'",
        ),
        ("unit-language-model --recogniser model --text text --output model", "is --recogniser 'model'"),
        ("fuse --recogniser model --test text --test-manifest counts.tsv --output text", "is --test 'text'"),
        ("whisper-nbest --manifest text --model model --output text", "--output 'text' is --manifest 'text'"),
        ("check-nbest --nbest text --output text", "--output 'text' is --nbest 'text'"),
        ("rescore --nbest text --dev counts.tsv --output text", "--output 'text' is --nbest 'text'"),
    ],
)
def test_what_would_be_lost_is_refused(folder, capsys, line, named):
    if "new/train.txt" in line:
        (folder / "new").mkdir()
        (folder / "new" / "train.txt").write_text(TEXT, encoding="utf-8")
    before = contents(folder)
    assert cli.main(line.split()) == 1
    error = capsys.readouterr().err
    assert named in error
    assert error.count("\n") == 1
    assert contents(folder) == before


def test_a_source_that_the_parameters_name_is_no_output(folder, capsys):
    shipped = (ROOT / "params.yaml").read_text(encoding="utf-8")
    own = yaml.safe_load(shipped) | {"corpora": {"chat": {"kind": "files", "source": "source"}}}
    (folder / "params.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    before = contents(folder)
    for output in ("source", "source/new"):
        given = ["--params", "params.yaml", "--section", "corpora.chat", "--private", "--output", output]
        assert cli.main(["corpora", *given]) == 1
        assert f"--output '{output}' " in capsys.readouterr().err
        assert contents(folder) == before


def test_standard_streams_that_are_files_count_by_what_they_are(folder):
    command = [*COMMAND, *MASK.split(), "--input", "-"]
    with open("text", "rb") as stdin:
        result = subprocess.run([*command, "--output", "text"], stdin=stdin, capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert "--output 'text' is --input '-', which is read" in result.stderr
    with open("out", "wb") as stdout:
        given = ["--input", "text", "--output", "-", "--sidecar", "out"]
        result = subprocess.run([*COMMAND, *MASK.split(), *given], stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert "--output '-' and --sidecar 'out' are the same" in result.stderr
    assert (folder / "text").read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("vocabulary --text text --output -", "--output '-': standard output cannot be given here; give a path"),
        ("summarise --output new --markdown -", "--markdown '-': standard output"),
        ("encode-speech --recogniser model --manifest text --output -", "--output '-': standard output"),
        ("train-filler --model model --output -", "--output '-': standard output"),
        (f"{MASK} --input text --output new --report -", "--report '-': standard output"),
        ("findings --summary -", "--summary '-': standard input cannot be given here; give a path"),
        ("corpora --source - --output new", "--source '-': standard input"),
        ("check-nbest --nbest -", "--nbest '-': standard input"),
        ("count-words --input text --output new --params -", "--params '-': standard input"),
    ],
)
def test_a_standard_stream_that_an_option_does_not_take_is_refused(folder, capsys, line, named):
    before = contents(folder)
    assert cli.main(line.split()) == 1
    error = capsys.readouterr().err
    assert named in error
    assert error.count("\n") == 1
    assert contents(folder) == before


def test_a_redirected_standard_output_is_written_into(folder):
    (folder / "out").write_text("first\n", encoding="utf-8")
    for _ in range(2):
        with open("out", "ab") as stdout:
            given = [*MASK.split(), "--input", "text", "--output", "/dev/stdout"]
            result = subprocess.run([*COMMAND, *given], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)
        assert result.returncode == 0, result.stderr
    masked = (folder / "out").read_text(encoding="utf-8")
    assert masked == "first\n" + "the cat of [MASK] [MASK] sat\n" * 24


def test_what_is_replaced_is_never_a_redirected_stream(folder):
    given = [*MASK.split(), "--input", "text", "--output", "new", "--report", "/dev/stdout"]
    with open("out", "wb") as stdout:
        result = subprocess.run([*COMMAND, *given], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 1
    assert "--report '/dev/stdout' is redirected to a file, which would be replaced" in result.stderr
    assert not (folder / "new").exists()
    result = subprocess.run([*COMMAND, *given], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["stage"] == "mask"


def test_what_loses_nothing_is_allowed(folder):
    """Devices are shared, and a folder of text may hold its corpus, as long as nothing is read that is written."""
    assert cli.main([*MASK.split(), "--input", "text", "--output", "/dev/null", "--sidecar", "/dev/null"]) == 0
    small = ["--set", "cleaning={minimum_words: 1, valid_sentences: 1, test_sentences: 1}"]
    (folder / "source" / "text.txt").write_text("".join(f"line {n} of text\n" for n in range(20)), encoding="utf-8")
    for _ in range(2):
        assert cli.main(["corpora", "--source", "source/text.txt", "--output", "source", *small]) == 0
        assert cli.main([*MASK.split(), "--input", "text", "--output", "new", "--report", "new.json"]) == 0


def test_a_stage_holds_its_own_paths_against_each_other(folder):
    for inputs, outputs, report in ((["text"], ["link"], None), ([], ["new", "./new"], None), (["text"], [], "text")):
        with (
            pytest.raises(ParameterError, match=r"'text'|'new'"),
            recorded_stage("x", report, inputs=inputs, outputs=outputs),
        ):
            pytest.fail("the work has begun")


def test_every_path_of_every_command_is_said_to_be_read_or_written():
    for name in [*cli.COMMANDS, *cli.plugin_commands()]:
        module = cli.load_command(name)
        known = {"params", "report", *getattr(module, "READS", ()), *getattr(module, "WRITES", ())}
        options = {action.dest: action for action in cli.command_parser(name, module)._actions}
        assert set(getattr(module, "STREAMS", ())) <= known <= {"params", "report", *options}, name
        writes = "report" in options or hasattr(module, "WRITES")
        for dest, action in options.items() if writes else ():
            path = action.metavar in ("FILE", "FOLDER", "PATH", "TECHNIQUE=SIDECAR") or dest in (
                "output",
                "text",
                "model",
            )
            exempt = set(action.option_strings) & set(_NO_PATHS) or (name, dest) == ("tune-filler", "text")
            assert dest in known or not path or exempt, f"{name}: {dest}"
