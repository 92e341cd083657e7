"""The command line as a whole: what a user sees before any step runs."""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tasks import cli
from tasks.errors import PalimpsestError
from tasks.options import Command, Options


def test_help_lists_and_explains_every_command_and_its_overview_fits_a_screen(capsys):
    names = [*cli.COMMANDS, *cli.plugin_commands()]
    assert sorted(" ".join(cli.GROUPS.values()).split()) == sorted(names)
    assert cli.main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert overview.count("\n") <= 40
    assert set(names) <= set(re.findall(r"[a-z-]+", overview))
    assert cli.main(["--help", "--all"]) == 0
    listed = capsys.readouterr().out
    for name in names:
        assert f"\n  {name} " in listed
        with pytest.raises(SystemExit) as exit_status:
            cli.main([name, "--help"])
        assert exit_status.value.code == 0
        assert f"usage: palimpsest {name}" in capsys.readouterr().out


def test_the_help_of_a_method_has_its_settings_alone_and_without_one_two_screens(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")

    def help_of(*words):
        with pytest.raises(SystemExit):
            cli.main([*words, "--help"])
        return capsys.readouterr().out

    for name in ("fill", "mask", "adapt"):
        assert help_of(name).count("\n") <= 80, name
    of_top_k = help_of("fill", "--method", "top_k")
    assert "k  K: number of candidates per marker." in of_top_k
    assert "temperature  Sampling" not in of_top_k
    assert "order  " in help_of("pretrain", "--set", "kind=ngram")


def test_masking_with_a_list_imports_little_and_leaves_no_core_dump(tmp_path):
    """Every stage is a process, so what one command imports is paid a hundred times: here about 310 modules."""
    text, masked = tmp_path / "in.txt", tmp_path / "out.txt"
    text.write_text("the cat of Zebulon Quux\n", encoding="utf-8")
    command = ["mask", "--technique", "allow_list", "--input", str(text), "--output", str(masked)]
    program = (
        f"import resource, sys; from tasks.cli import main; status = main({command!r}); "
        "heavy = {'torch', 'spacy', 'transformers', 'numpy', 'mlflow', 'lightning', 'pyarrow'}; "
        "print(status, sorted(heavy & set(sys.modules)), *resource.getrlimit(resource.RLIMIT_CORE), len(sys.modules))"
    )
    allowed = ["sh", "-c", 'ulimit -c "$(ulimit -Hc)"; exec "$@"', "sh"]
    result = subprocess.run([*allowed, sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *found, modules = result.stdout.splitlines()[-1].split(" ")
    assert found == ["0", "[]", "0", "0"]
    assert int(modules) < 400


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ("preview --technique allow_list --lines 9999 --input in.txt | head -1", 141),
        ("mask --technique allow_list --input in.txt --output - >&-", 1),
        ("mask --technique allow_list --input in.txt --output - >/dev/full", 1),
    ],
)
def test_standard_output_that_takes_no_more_ends_without_a_traceback(tmp_path, call, status):
    (tmp_path / "in.txt").write_text("the cat of Zebulon Quux\n" * 9999, encoding="utf-8")
    command = f"set -o pipefail; {sys.executable} -m tasks.cli {call}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert status == 141 or done.stderr.count("\n") == 1


def module_that_fails(error):
    """A command's module that fails in a given way."""

    def fail(options):
        raise error

    return SimpleNamespace(__doc__="A command made for a test.", COMMAND=Command(Options, fail))


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (PalimpsestError("the thing 'x' is wrong; mend it"), 1, "palimpsest: error: the thing 'x' is wrong; mend it"),
        (OSError(28, "No space left on device", "out.txt"), 1, "the disk is full while writing 'out.txt'"),
        (FileNotFoundError(2, "No such file", "gone.txt"), 1, "no such file: 'gone.txt'"),
        (PermissionError(13, "Permission denied", "locked.txt"), 1, "no permission for 'locked.txt'"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_one_line(error, status, says, monkeypatch, capsys):
    monkeypatch.setattr(cli, "load_command", lambda name: module_that_fails(error))
    assert cli.main(["anything"]) == status
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err
    assert captured.err.count("\n") <= 1


def test_a_defect_never_shows_its_message(monkeypatch, capsys):
    """The message of an unexpected exception can quote private text; the place of the defect cannot."""
    monkeypatch.delenv("PALIMPSEST_DEBUG", raising=False)
    monkeypatch.setattr(cli, "load_command", lambda name: module_that_fails(KeyError("Ms Secret of 1 Hidden Lane")))
    assert cli.main(["anything"]) == 70
    error = capsys.readouterr().err
    assert "Secret" not in error
    assert "KeyError at test_cli.py:" in error


def test_bash_completes_commands_and_options(tmp_path, capsys):
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out, encoding="utf-8")
    asked = "COMP_WORDS=(palimpsest {}); COMP_CWORD={}; _shtab_palimpsest; echo ${{COMPREPLY[@]}}"
    script = "\n".join(["source ./script", asked.format("rel", 1), asked.format("release --pub", 2)])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["release", "--public-field"]
