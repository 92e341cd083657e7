"""The whole graph, small, by ``palimpsest run``, with private canaries planted; then a part of it by ``dvc repro``."""

import json
import re
import shutil
import sqlite3
import stat
from pathlib import Path

import forked_commands
import pytest
import yaml
from small_experiment import CANARIES, copied, run

pytestmark = pytest.mark.timeout(2700)  # a whole experiment is made first
CELL = "mail-allow_list-tiny-top_k-1"
OF_CELL = {f"{step}@{CELL}" for step in ("fill", "adapt", "evaluate", "recognise")}
CHANGED = OF_CELL | {"cells", "examples@mail-tiny", "fluency@mail", "summarise", "report", "publish"}
"""Stages that follow from the K of Top-K."""


def with_another_k(folder: Path) -> None:
    """Let ``dvc.lock`` say that the branch of Top-K was made with another K: other outputs; and DVC recalls no run."""
    shutil.rmtree(folder / ".dvc" / "cache" / "runs")
    lock = yaml.safe_load((folder / "dvc.lock").read_text(encoding="utf-8"))
    branch = [lock["stages"][name] for name in CHANGED - {"cells"}]  # its output says only that it has checked
    changed = [Path(out["path"]) for stage in branch for out in stage.get("outs", [])]
    for stage in lock["stages"].values():
        filling = stage.get("params", {}).get("params.yaml", {})
        if "filling.top_k" in filling:
            filling["filling.top_k"]["k"] = 3
        if "filling" in filling:
            filling["filling"]["top_k"]["k"] = 3
        for entry in (*stage.get("deps", []), *stage.get("outs", [])):
            if any(path.is_relative_to(entry["path"]) for path in changed):
                entry["md5"] = "0" * 32 + (".dir" if entry["md5"].endswith(".dir") else "")
    (folder / "dvc.lock").write_text(yaml.safe_dump(lock, sort_keys=False), encoding="utf-8")


@pytest.fixture(scope="module")
def by_dvc(finished_experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy where ``dvc repro`` has found nothing to do, and then makes the branch of a changed K."""
    folder = copied(finished_experiment, tmp_path_factory.mktemp("by dvc") / "copy")
    output = run(folder, "dvc", "repro").stdout
    assert "Running stage" not in output
    assert "Data and pipelines are up to date." in output
    with_another_k(folder)
    plan = json.loads(run(folder, "palimpsest", "plan", "--json").stdout)
    reasons = {stage["name"]: stage["reasons"] for stage in plan["stages"] if stage["action"] != "unchanged"}
    (folder / ".palimpsest" / "reasons.json").write_text(json.dumps(reasons), encoding="utf-8")
    (folder / ".palimpsest" / "said").write_text(forked_commands.repro(folder).stdout, encoding="utf-8")
    return folder


def summary(folder: Path) -> list[dict]:
    return json.loads((folder / "results" / "summary.json").read_text(encoding="utf-8"))


def test_both_drivers_give_the_same_summary(finished_experiment, by_dvc):
    rows = summary(by_dvc)
    assert [row["method"] for row in rows] == ["no_language_model", "pretrained", "oracle", "top_k", "unigram"]
    assert all(row["perplexity"] > 1 for row in rows[1:])
    assert all(row["wer"] > 0 and row["synthetic_speech"] for row in rows)
    assert rows == summary(finished_experiment)


def test_palimpsest_run_finds_nothing_left_to_do_after_dvc(by_dvc):
    result = json.loads(run(by_dvc, "palimpsest", "run", "--json").stdout)
    assert {stage["state"] for stage in result["stages"]} == {"unchanged"}


def test_a_changed_parameter_reruns_its_branch_alone(by_dvc):
    planned = json.loads((by_dvc / ".palimpsest" / "reasons.json").read_text(encoding="utf-8"))
    assert set(planned) == CHANGED
    assert "filling.top_k.k" in " ".join(planned[f"fill@{CELL}"])
    output = (by_dvc / ".palimpsest" / "said").read_text(encoding="utf-8")
    assert set(re.findall(r"Running stage '(.+)'", output)) == CHANGED


def test_one_run_per_cell_and_publishing_again_changes_nothing(by_dvc):
    def tracked() -> list:
        with sqlite3.connect(by_dvc / "mlflow.db") as store:
            asked = ("select count(*) from metrics", "select count(*) from tags")
            runs = store.execute(
                "select run_uuid, end_time, status from runs where lifecycle_stage = 'active' order by 1"
            ).fetchall()
            return [runs, *(store.execute(question).fetchone() for question in asked)]

    before = tracked()
    assert len(before[0]) == len(summary(by_dvc))
    run(by_dvc, "palimpsest", "publish")
    assert tracked() == before


def test_a_number_is_followed_to_where_it_comes_from(by_dvc, finished_experiment):
    origin = run(by_dvc, "palimpsest", "where-from", "mail/allow_list/tiny-top_k-1").stdout
    assert "palimpsest restore evaluate@mail-allow_list-tiny-top_k-1" in origin
    assert "data/private/corpora/mail" in origin
    # A report names the flow run that made it.
    name = "results/reports/perplexity/mail/allow_list/tiny-top_k-1.json"
    assert json.loads((by_dvc / name).read_text(encoding="utf-8"))["flow_run"] is None
    assert len(json.loads((finished_experiment / name).read_text(encoding="utf-8"))["flow_run"]) == 36


def test_private_text_stays_in_private_places_that_are_closed_to_others(finished_experiment):
    """Canaries may be found in the raw data, in data/private and in DVC's cache, nowhere else."""
    allowed = ("data/raw/", "data/private/", ".dvc/cache/", ".git/")
    searched, holders = 0, []
    for path in finished_experiment.rglob("*"):
        name = path.relative_to(finished_experiment).as_posix()
        if not path.is_file() or name.startswith(allowed):
            continue
        searched += 1
        content = path.read_bytes().lower()
        holders += [name for canary in CANARIES if canary.lower().encode() in content]
    assert searched > 40
    assert holders == []
    raw = (finished_experiment / "data" / "private" / "corpora" / "mail" / "train.txt").read_text(encoding="utf-8")
    assert any(canary in raw for canary in CANARIES)
    private = [path for path in (finished_experiment / "data" / "private").rglob("*") if path.name != ".gitignore"]
    assert len(private) > 5
    private.append(finished_experiment / ".dvc" / "cache")
    assert [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
