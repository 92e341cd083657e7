"""``palimpsest forget``: no trace of one corpus is left in the clone, and the other corpus is as it was."""

import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import forked_commands
import pytest
import small_experiment as tiny
import yaml
from canary_search import CanarySearch
from planted_experiment import CANARIES

from flows.checkout.run_lock import run_lock
from flows.erasure.dvc_records import CorpusPaths, Record
from tasks.cli import main
from tasks.privacy.ledger import Release, append_to_ledger

pytestmark = pytest.mark.timeout(900)
SEARCH = CanarySearch(CANARIES)
FILL = "data/obfuscated/{}/allow_list/unigram-1.txt"
STAGES = ["corpus@{}", "mask@train-{}-allow_list", "fill_control@{}-allow_list-unigram-1"]
MAILS, OTHERS = ([stage.format(name) for stage in STAGES] for name in ("mail", "notes"))
SAID = CANARIES[0]
LEFT_BEHIND = {
    "data/private/masked/mail/train/an_earlier_technique/text.txt": SAID,
    "data/private/models/mail/oracle-7/weights": SAID,
    "models/adapted/mail/an_earlier_technique/baseline1-1/weights": SAID,
    "results/reports/mask_test/mail/an_earlier_technique.json": SAID,
    "results/reports/fill/mail/allow_list/.unigram-1.json.x.partial": SAID,
    "results/summary.json": json.dumps([{"dataset": "mail", "said": SAID}]),
    "dvc_plots/index.html": f"mail {SAID}",
    ".palimpsest/logs/mask@mail-allow_list.log": SAID,
    ".palimpsest/logs/mask@train-mail-allow_list.log": SAID,
    ".palimpsest/logs/mask@train-email.log": "nothing",
    ".palimpsest/durations.json": json.dumps({"mask@train-mail-allow_list": 1.5}),
    ".palimpsest/audits/.twin.killed.partial/text.txt": SAID,
    ".palimpsest/fills/averages/0123.json": SAID,
    ".palimpsest/applied/0123-4567/raw.txt": SAID,
    ".palimpsest/checkpoints/0123-4567/0.txt": SAID,
    "data/private/applied/mail_2026/text.txt": SAID,
    "data/private/releases/first/lines.json": SAID,
    "data/private/review/mail.jsonl": SAID,
    "releases/first/text.txt": SAID,
}
for name in ("mail", "notes"):
    stages = {f"corpus@{name}": {"outs": [{"path": f"data/private/corpora/{name}", "md5": "0"}]}}
    LEFT_BEHIND |= {
        f"data/private/applied/{name}_2026/report.json": f'{{\n  "cell": "{name}/list/surrogate-1"}}',
        f"data/private/lineage/{name}.patch": f"+  {name}: {{source: data/raw/{name}.txt}}",
        f"data/private/lineage/{name}.json": json.dumps({"stages": stages}),
    }


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def dvc(folder: Path, *arguments: str) -> str:
    done = forked_commands.dvc(folder, *arguments, environment=tiny.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def track(folder: Path, empty_store: Path) -> None:
    """An MLflow run, with a file, a dataset and a registered model, of each corpus; and one that MLflow has deleted."""
    from mlflow.entities import Dataset, DatasetInput, InputTag
    from mlflow.tracking import MlflowClient

    shutil.copy(empty_store, folder / "mlflow.db")
    with sqlite3.connect(folder / "mlflow.db") as store:
        store.execute("update experiments set artifact_location = ?", [(folder / "mlruns").as_uri()])
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("palimpsest").experiment_id
    for name, said in (("mail", CANARIES[0]), ("notes", "nothing"), ("mail", CANARIES[1])):
        tags = {"palimpsest.cell": f"{name}/oracle-1", "palimpsest.key": name, "dataset": name, "said": said}
        run = client.create_run(experiment, tags=tags)
        client.log_text(run.info.run_id, said, "samples/obfuscated.txt")
        client.log_param(run.info.run_id, "said", said)
        dataset = Dataset(f"data/private/corpora/{name}/{said}", said[:8], "dvc", "{}")
        tag = InputTag("mlflow.data.context", "training")
        client.log_inputs(run.info.run_id, datasets=[DatasetInput(dataset=dataset, tags=[tag])])
        if said == CANARIES[1]:
            client.delete_run(run.info.run_id)
            continue
        client.create_registered_model(f"palimpsest-{name}", description=said)
        client.create_model_version(f"palimpsest-{name}", source=run.info.artifact_uri, run_id=run.info.run_id)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """Two corpora after commands, a push, a changed source, an experiment, an unfinished fill and a release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "make_tiny_filler", lambda folder: None)
        folder = tiny.make_checkout(tmp_path_factory.mktemp("forgetting") / "an experiment")
    write(folder / "data/raw/notes.txt", "\n".join(tiny.sentences(300, tiny.NAMES, seed=3)) + "\n")
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["corpora"]["notes"] = parameters["corpora"]["mail"] | {"source": "data/raw/notes.txt"}
    parameters["compare"]["datasets"] = ["mail", "notes"]
    tiny.with_parameters(folder, parameters)
    mail = folder / "data/raw/mail.txt"
    raw = mail.read_text(encoding="utf-8")
    # An earlier version of the text, which DVC's cache has and nothing else.
    write(mail, f"{CANARIES[2]} was here once.\n{raw}")
    palimpsest(folder, "add", "data/raw/mail.txt")
    write(mail, raw)
    palimpsest(folder, "add", "data/raw/mail.txt", "data/raw/notes.txt")
    done = forked_commands.repro(folder, *MAILS, *OTHERS)
    assert done.returncode == 0, done.stdout + done.stderr
    # Where the commit of an experiment is made, its lock has both corpora.
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["add", "--all"], [*identity, "commit", "--quiet", "-m", "start"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    dvc(folder, "exp", "save", "--name", "run-tiny", *MAILS, *OTHERS)
    for path, text in LEFT_BEHIND.items():
        write(folder / path, text)
    cached = next((folder / ".dvc/cache/files/md5").glob("??"))
    write(cached / f"{'0' * 30}.tmp", SAID)
    with chdir(folder):
        append_to_ledger(Release("first", "", "mail/crf/u-1", "mail", "crf", "", "", 1, None, None, None, None))
    track(folder, empty_store)
    return folder


def holders(folder: Path) -> list[str]:
    """Files with a canary; the source and the project's own files, which nothing writes, are left out."""
    ours = ("tasks/", "docs/", "models/english_spanish/", "models/recogniser/")
    return SEARCH.holders(folder, ("data/raw/", ".git/", *ours))[0]


def state(folder: Path) -> dict[str, int]:
    """Every file of the checkout but those of git and of DVC's locks, with its size."""
    apart = (".git/", ".dvc/tmp/", ".palimpsest/run.lock", ".palimpsest/tracking.lock")
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.stat().st_size for name, path in sorted(names.items()) if not name.startswith(apart)}


def naming(folder: Path, name: str) -> set[str]:
    """Every file, but those in git, with a corpus in its path or in its bytes: in a stage, a path or a cell."""
    word = re.compile(rf"[@/\"]{name}[/\"-]|-{name}-|^data/raw/{name}".encode())
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    found = [path for path in files if word.search(bytes(path.relative_to(folder))) or word.search(path.read_bytes())]
    names = {path.relative_to(folder).as_posix() for path in found}
    ours = subprocess.run(["git", "ls-files", "-z"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return {name for name in names - set(ours.split("\0")) if not name.startswith(".git/")}


def palimpsest(folder: Path, *arguments: str, expect: int = 0) -> str:
    """All that a command printed, run here: starting it takes longer than its work."""
    said = io.StringIO()
    with chdir(folder), redirect_stdout(said), redirect_stderr(said), pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        assert main(list(arguments)) == expect, said.getvalue()
    return said.getvalue()


def tracked(folder: Path) -> tuple[set[str], set[str]]:
    """Corpora of MLflow's runs, and names of its registered models."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("palimpsest")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return {run.data.tags["dataset"] for run in runs}, {model.name for model in client.search_registered_models()}


def experiments(folder: Path) -> str:
    return subprocess.run(
        ["git", "for-each-ref", "refs/exps"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def test_a_corpus_is_forgotten_and_the_other_is_not(lived: Path) -> None:
    from mlflow.cli import cli as mlflow_commands

    before, held = state(lived), holders(lived)
    places = ("data/private", ".dvc/cache", "mlflow.db", ".palimpsest/logs", ".palimpsest/checkpoints",
              "results/summary.json", "releases/first", "mlruns/")  # fmt: skip
    assert not [place for place in places if not any(name.startswith(place) for name in held)]
    assert experiments(lived)

    # A dry run says what there is, and changes nothing.
    said = palimpsest(lived, "forget", "mail")
    shown = ("data/private/masked/mail", "DVC experiments: run-", "MLflow: 1 runs, registered model palimpsest-mail")
    for found in (*shown, "Nothing was removed"):
        assert found in said
    # Not while a run is going on.
    with run_lock(lived):
        assert "another 'palimpsest run'" in palimpsest(lived, "forget", "mail", "--yes", expect=1)
    assert state(lived) == before

    said = palimpsest(lived, "forget", "mail", "--yes")
    assert "what was released, by the ledger, which stays: first" in said
    assert "data/raw/mail.txt (--source removes it)" in said
    assert tracked(lived) == ({"notes"}, {"palimpsest-notes"})
    command = re.search(r"^    (mlflow gc .*)$", said, re.MULTILINE)
    assert command is not None
    with chdir(lived):
        mlflow_commands.main(shlex.split(command[1])[1:], standalone_mode=False)
    # The pages of a SQLite file are MLflow's own.
    assert holders(lived) in ([], ["mlflow.db"])
    left = state(lived)
    ours = [name for name in left if "mail" in name and name.startswith(("data/", "results/", "models/", "mlruns/"))]
    assert ours == ["data/raw/labelled_mail.jsonl", "data/raw/mail.txt"]
    assert "data/private/ledger.jsonl" in left
    # Only what docs/privacy.md says is left still names the corpus, and the settings that a check of params.yaml saw.
    named = naming(lived, "mail")
    settings = {name for name in named if "/runs/" in name and b"cmd: palimpsest cells " in (lived / name).read_bytes()}
    assert named - settings - {"mlflow.db"} == {"data/private/ledger.jsonl", "data/raw/mail.txt"}
    assert experiments(lived) == ""

    # What is of the other corpus has not changed, and DVC can bring it back.
    untouched = [name for name in before if "notes" in name]
    assert len(untouched) > 10
    assert {name: left[name] for name in untouched} == {name: before[name] for name in untouched}
    notes = (*OTHERS, "data/raw/notes.txt.dvc")
    assert json.loads(dvc(lived, "status", "--json", *notes)) == {}
    for path in (FILL.format("notes"), "data/private/corpora/notes/train.txt", "data/raw/notes.txt"):
        os.unlink(lived / path)
    dvc(lived, "checkout", *notes)
    assert json.loads(dvc(lived, "status", "--json", *notes)) == {}

    # Once more, with its source; and there is no corpus of that name any more.
    palimpsest(lived, "forget", "mail", "--yes", "--source")
    assert not (lived / "data/raw/mail.txt").exists()
    refused = palimpsest(lived, "forget", "mial", expect=1)
    assert "nothing of a corpus 'mial' (did you mean 'mail'?)" in refused


def test_the_paths_of_a_corpus_are_those_named_after_it_and_those_made_of_them() -> None:
    paths = CorpusPaths("mail")
    assert paths.holds("data/obfuscated/mail")
    assert paths.holds("results/reports/fill/.mail.json.x.partial")
    for other in (
        "data/raw/mail.txt",
        "data/private/releases/mail/lines.json",
        "data/private/applied/mail/text.txt",
        "data/private/corpora/notes/mail.txt",
        "data/obfuscated/mail_2026",
        "models/adapted/email",
    ):
        assert not paths.holds(other), other
    assert not paths.touches(Record(("data/generic",), {"results/reports/labelled_text.json": None}))
    page, tables = Record(("tables",), {"page.html": None}), Record(("results/reports",), {"tables": None})
    assert (paths.touches(tables), paths.touches(page)) == (True, False)
    paths.add_what_is_made([page, tables])
    assert paths.holds("page.html")
