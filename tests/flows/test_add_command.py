"""``palimpsest add``: private text under DVC that no push sends, seen with a real remote; and what ``dvc add`` does."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
import yaml
from scratch_project import CHECKOUT, Project, make_project

from tasks.cli import main
from tasks.privacy.tracked_sources import sent_by_push

GRAPH = """
stages:
  corpus:
    foreach: ${corpora}
    do:
      cmd: cat ${item.source} > private-${key}.txt
      deps: ["${item.source}"]
      params: ["corpora.${key}"]
      outs:
        - private-${key}.txt:
            push: false
  generic:
    cmd: cat ${generic.source} > generic.txt
    deps: ["${generic.source}"]
    params: [generic]
    outs: [generic.txt]
"""
MAIL = "data/raw/mail.txt"
CANARY = "Yesterday Zyxwquill called."


@pytest.fixture
def with_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with this project's own .gitignore, a raw text, generic text that DVC tracks, and a remote."""
    project = make_project(tmp_path / "a project", GRAPH)
    shutil.copy(CHECKOUT / ".gitignore", project.folder)
    parameters = yaml.safe_load(project.read("params.yaml"))
    parameters["generic"] = {"kind": "files", "source": "in.txt"}
    parameters["corpora"] = {"mail": {"kind": "files", "source": MAIL}}
    parameters["compare"] |= {"datasets": ["mail"], "speech_datasets": []}
    parameters["speech"]["corpora"] = {}
    project.write("params.yaml", yaml.safe_dump(parameters))
    project.write(MAIL, CANARY)
    (project.folder / MAIL).chmod(0o644)
    (project.folder / "data" / "raw").chmod(0o755)
    project.dvc("remote", "add", "--quiet", "--default", "shared", str(tmp_path / "remote"))
    project.dvc("add", "--quiet", "in.txt")
    monkeypatch.chdir(project.folder)
    # A line is text enough here.
    monkeypatch.setattr("tasks.doctor.data_findings._SURVEYED_BYTES", -1)
    return project


def pushed(project: Project, *targets: str) -> list[str]:
    project.dvc("push", "--quiet", *targets)
    return [
        path.read_text(encoding="utf-8") for path in (project.folder.parent / "remote").rglob("*") if path.is_file()
    ]


def test_what_is_added_is_seen_by_dvc_and_stays(with_mail: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", MAIL]) == 0
    said = capsys.readouterr().out
    assert f"{MAIL}.dvc goes into git" in said
    assert "Next" not in said  # params.yaml names it already
    with_mail.write(MAIL, f"{CANARY}\nAgain.")
    assert main(["add", MAIL]) == 0
    assert yaml.safe_load(with_mail.read(f"{MAIL}.dvc"))["outs"][0]["push"] is False
    modes = [stat.S_IMODE((with_mail.folder / path).stat().st_mode) for path in (MAIL, "data/raw", ".dvc/cache")]
    assert modes == [0o600, 0o700, 0o700]
    assert main(["plan"]) == 0
    # Not even where it is named; the generic text may be pushed.
    assert pushed(with_mail) == pushed(with_mail, f"{MAIL}.dvc") == ["one\n"]


def test_what_dvc_adds_alone_would_leave_so_it_is_refused(
    with_mail: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan"]) == 0  # not tracked: it is in no cache, and no push sends it
    with_mail.dvc("add", "--quiet", MAIL)
    for command in ("plan", "run"):
        capsys.readouterr()
        assert main([command]) == 1
        said = capsys.readouterr()
        assert len(said.err.splitlines()) == 1
        assert f"'palimpsest add {MAIL}'" in said.err
    main(["doctor", "--json"])
    findings = {one["name"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["corpora.mail"]["remedy"] == f"'palimpsest add {MAIL}'"
    assert findings["generic"]["state"] == "there"
    assert sorted(pushed(with_mail)) == [CANARY, "one\n"]


@pytest.mark.parametrize(
    ("push", "source", "is_sent"),
    [(True, "", True), (True, "/a.txt", True), (True, "/..", True), (True, "_2", False), (False, "/a.txt", False)],
)
def test_folders_above_and_files_within_count_too(tmp_path: Path, push: bool, source: str, is_sent: bool) -> None:
    tracked = "data/raw/mail"
    (tmp_path / tracked).mkdir(parents=True)
    output = {"md5": "0", "path": "mail"} | ({} if push else {"push": False})
    (tmp_path / f"{tracked}.dvc").write_text(yaml.safe_dump({"outs": [output]}), encoding="utf-8")
    assert sent_by_push(os.path.normpath(tracked + source), tmp_path) == (tracked if is_sent else None)


def test_what_is_elsewhere_is_not_added(with_mail: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with_mail.write("data/raw/all/a.txt", CANARY)
    for given, expected in [
        ("in.txt", "mv in.txt"),
        ("data/raw/mial.txt", "not there"),
        ("data/raw/all/a.txt", "'palimpsest add data/raw/all'"),
    ]:
        assert main(["add", given]) == 1
        assert expected in capsys.readouterr().err
    assert not list((with_mail.folder / "data").rglob("*.dvc"))
