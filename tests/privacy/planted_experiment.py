"""An experiment whose private text holds planted words, run, failed and looked at through every server."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import small_experiment as tiny
import yaml
from dvc.repo import Repo

from dashboards.services.services import free_port

# Questions to Prefect are shared with the tests of the flows.
sys.path.insert(0, str(Path(__file__).parent.parent / "flows"))


MASKED = (*tiny.CANARIES[:2], "Größenquax", "Квиллморов")
"""Names that both techniques mask."""
KEPT_BY_ONE = (tiny.CANARIES[2], "blorptangle", "süßkwark")
"""The allow list masks these, the tagger keeps them: its fills hold them."""
KEPT_LINES = ("powder relief poster prevention map", "picture opinion furniture window planet")
"""Every technique keeps every word. In this order they stand in the private text alone, and in every fill of it."""
CANARIES = (*MASKED, *KEPT_BY_ONE, *KEPT_LINES)
TECHNIQUES = {"allow_list": {"kind": "allow_list"}, "tagger": {"kind": "entity_tagger", "tagger": {"kind": "crf"}}}
PRIVATE_LINES = [
    *(f"They said that {words} is the best. {number}" for words in KEPT_LINES for number in range(20)),
    *(
        f"Yesterday {name} called the manager about a small house. {number}"
        for name in MASKED[2:]
        for number in range(6)
    ),
    *(f"The manager found a {word} in the garden again. {number}" for word in KEPT_BY_ONE[1:] for number in range(6)),
]
"""They begin the corpus: samples are taken there."""
BAD_LINE = 300 + 6 * len(tiny.CANARIES) + len(PRIVATE_LINES) + 1
NAME = "Wrenchquibble"
"""Stands alone in lines that make a stage fail."""
BROKEN = f"Yesterday {NAME} ".encode() + b"\xff\xfe called the manager.\n"
"""What no stage reads."""

HOOK = """
import os, sys

log = {!r}
places = {{"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "sqlite3.connect": 0}}

def note(event, values):
    if event == "open":
        path = values[0] if values[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else None
    else:
        path = values[places[event]] if event in places else None
    if isinstance(path, (str, bytes, os.PathLike)) and path != log:
        # Opened each time: a process that starts another one may close all files but three.
        with open(log, "ab", buffering=0) as notes:
            notes.write(os.path.abspath(os.fsencode(path)) + b"\\n")

sys.addaudithook(note)
"""
"""Notes every path that a Python process writes to, makes or gives to SQLite."""


@dataclass
class Lived:
    """The experiment's folder beside the home and the temporary files of all that ran in it."""

    folder: Path
    home: Path
    temporary: Path
    environment: dict[str, str]
    ports: dict[str, int]
    said: list[str]
    """All that commands printed."""

    def run(self, *command: str, expect: int = 0, **variables: str) -> str:
        """Run a command to its end; what it printed is kept."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            errors="backslashreplace",
        )
        self.said.append(done.stdout + done.stderr)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def written(self) -> list[Path]:
        """Every path that a process wrote to."""
        lines = (self.home.parent / "written").read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        return sorted({Path(line) for line in lines if line})

    @property
    def remote(self) -> Path:
        """The folder that ``dvc push`` sent files to."""
        return self.home.parent / "remote"

    def address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"


def private_outputs(folder: Path) -> list[str]:
    """Text, models and scores that are not pushed, as the graph says, as beginnings of paths."""
    with Repo(str(folder)) as repo:
        kept = [f"{Path(out.fs_path).relative_to(folder).as_posix()}/" for out in repo.index.outs if not out.can_push]
    return [path for path in kept if path.startswith(("data/", "models/", "results/scores/"))]


def break_private_lines(folder: Path) -> None:
    """A corpus and two stages that fail on lines that hold a canary: one of ours, and a program that quotes what it
    read."""
    raw = folder / "data" / "raw"
    with (raw / "mail.txt").open("ab") as stream:
        stream.write(BROKEN)
    with (raw / "labelled_mail.jsonl").open("a", encoding="utf-8") as stream:
        span = {"start": 10, "end": 9000, "label": NAME.upper()}
        stream.write(json.dumps({"text": f"Yesterday {NAME} called.", "spans": [span]}) + "\n")
    (raw / "quoted.txt").write_text(f"{NAME} called\n", encoding="utf-8")
    (folder / "quoting.py").write_text(
        "raise ValueError('not understood: ' + open('data/raw/quoted.txt').read())\n", encoding="utf-8"
    )
    graph = yaml.safe_load((folder / "dvc.yaml").read_text(encoding="utf-8"))
    graph["stages"]["quoting"] = {
        "cmd": "python quoting.py",
        "deps": ["quoting.py", "data/raw/quoted.txt"],
        "outs": ["data/private/quoted.txt"],
    }
    (folder / "dvc.yaml").write_text(yaml.safe_dump(graph, sort_keys=False), encoding="utf-8")


def mend_corpus(folder: Path) -> None:
    """Take the broken line out again."""
    raw = folder / "data" / "raw" / "mail.txt"
    raw.write_bytes(raw.read_bytes().removesuffix(BROKEN))


def plant(place: Path) -> Lived:
    """The experiment before its first run, with servers of its own named in its environment."""
    folder = tiny.make_checkout(place / "an experiment")
    raw = folder / "data" / "raw"
    written = (raw / "mail.txt").read_text(encoding="utf-8")
    (raw / "mail.txt").write_text("\n".join(PRIVATE_LINES) + "\n" + written, encoding="utf-8")
    with (raw / "generic.txt").open("a", encoding="utf-8") as stream:
        # The language model knows each word, so a line of them has numbers.
        stream.writelines(f"Again {word} was the word.\n" for words in KEPT_LINES for word in words.split())
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["compare"]["techniques"] = list(TECHNIQUES)
    parameters["compare"]["baselines"] = ["baseline1"]
    parameters["compare"]["fills"][1]["audited"] = ["unigram"]
    parameters["compare"]["fills"].append({"filler": "tiny_tuned", "methods": ["top_k"]})
    parameters["tuned_fillers"] = {"tiny_tuned": tiny.TUNED}
    parameters["masking"] |= TECHNIQUES
    tiny.with_parameters(folder, parameters)
    home, temporary = place / "home", place / "temporary"
    home.mkdir()
    temporary.mkdir()
    ports = {name: free_port() for name in ("prefect", "mlflow")}
    environment = tiny.environment() | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TMPDIR": str(temporary),
        "PREFECT_API_URL": f"http://127.0.0.1:{ports['prefect']}/api",
        "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{ports['mlflow']}",
        **{f"PALIMPSEST_{name.upper()}_PORT": str(port) for name, port in ports.items()},
    }
    for name in ("PREFECT_HOME", "PREFECT_PROFILE", "DVC_SITE_CACHE_DIR"):
        environment.pop(name, None)
    # Python imports this module at the start of every process.
    (place / "hook").mkdir()
    (place / "hook" / "sitecustomize.py").write_text(HOOK.format(str(place / "written")), encoding="utf-8")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(place / "hook"), environment.get("PYTHONPATH"))))
    return Lived(folder, home, temporary, environment, ports, [])
