"""Whether data changed, as against code and parameters: what the deployment 'new-data' waits for."""

import pytest
from scratch_project import Project

from flows.graph.graph import open_repository
from flows.graph.plan import make_plan
from flows.graph.private_sources import changed_sources


@pytest.fixture
def with_source(finished: Project) -> Project:
    """The finished project, whose in.txt is the source of a corpus."""
    finished.replace(
        "params.yaml", "    kind: chitchat\n    source: constraints.txt", "    kind: chitchat\n    source: in.txt"
    )
    return finished


def changed(project: Project) -> list[str]:
    with open_repository(project.folder) as repository:
        return changed_sources(make_plan(repository), project.folder)


def test_only_a_source_that_changed_or_was_never_read_is_new_data(with_source: Project) -> None:
    with_source.replace("params.yaml", "top_k, k: 10", "top_k, k: 5")
    with_source.replace("dvc.yaml", "cat raw.txt; echo", "cat raw.txt;  echo")
    assert changed(with_source) == []
    with_source.write("in.txt", "two\n")
    assert changed(with_source) == ["in.txt"]
    (with_source.folder / "dvc.lock").unlink()
    assert changed(with_source) == ["in.txt"]
    with_source.replace("params.yaml", "source: in.txt", "source: constraints.txt")
    assert changed(with_source) == []


def test_data_under_dvc_is_data(with_source: Project) -> None:
    with_source.dvc("add", "--quiet", "in.txt")
    with_source.dvc("repro", "--quiet")
    assert changed(with_source) == []
    with_source.write("in.txt", "two\n")
    assert "in.txt.dvc" in changed(with_source)
