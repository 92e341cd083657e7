"""The graph is DVC's: same stages, same edges, in an order that can be run."""

import re

import pytest
from scratch_project import ALL, FILLS, Project

from flows.graph.graph import Graph, Node, open_repository, project_folder, read_graph
from flows.graph.selection import Selection
from tasks.errors import StageError


def graph_of(project: Project) -> Graph:
    with open_repository(project.folder) as repository:
        return read_graph(repository)


def node(name: str, *upstream: str) -> Node:
    return Node(name, "true", (), (), (), upstream)


def test_edges_are_those_of_dvc_dag(project: Project) -> None:
    edges = {(above, node.name) for node in graph_of(project).nodes.values() for above in node.upstream}
    drawn = re.findall(r'"(.+?)" -> "(.+?)"', project.dvc("dag", "--dot"))
    assert edges == set(drawn)
    assert len(edges) == 2 + 4 + 4


def test_stages_are_resolved_and_in_order(project: Project) -> None:
    graph = graph_of(project)
    assert list(graph.nodes) == ALL
    mask = graph.nodes["mask@tagger"]
    assert mask.step == "mask"
    assert mask.dependencies == ("raw.txt",)
    assert mask.parameters == ("filling.top_1",)
    assert mask.outputs == ("masked/tagger.txt",)
    assert "echo tagger) > masked/tagger.txt" in mask.command
    assert graph.nodes["table"].upstream == tuple(FILLS)


def test_added_data_is_a_stage_where_something_depends_on_it(project: Project) -> None:
    project.dvc("add", "--quiet", "in.txt")
    project.write("other.txt", "nobody reads this\n")
    project.dvc("add", "--quiet", "other.txt")
    graph = graph_of(project)
    assert list(graph.nodes) == ["in.txt.dvc", *ALL]
    assert graph.nodes["raw"].upstream == ("in.txt.dvc",)


def test_a_frozen_stage_waits_for_nothing(project: Project) -> None:
    project.replace("dvc.yaml", "    outs: [table.txt]", "    outs: [table.txt]\n    frozen: true")
    assert graph_of(project).nodes["table"].upstream == ()


def test_selection_includes_what_a_stage_needs(project: Project) -> None:
    graph = graph_of(project)
    for patterns, expected in [
        ([], ALL),
        (["raw"], ["raw"]),
        (["mask"], ["raw", "mask@list", "mask@tagger"]),
        (["fill@list-top_k"], ["raw", "mask@list", "fill@list-top_k"]),
        (["*tagger*"], ["raw", "mask@tagger", "fill@tagger-top_1", "fill@tagger-top_k"]),
        (["mask@list", "table"], ALL),
    ]:
        assert list(graph.select(Selection(patterns)).nodes) == expected


def test_steps_left_count_the_stage_itself() -> None:
    # a -> b -> d and a -> c: what starts at a is three stages long.
    graph = Graph({"a": node("a"), "b": node("b", "a"), "c": node("c", "a"), "d": node("d", "b")})
    assert graph.steps_left() == {"a": 3, "b": 2, "c": 1, "d": 1}


def test_the_project_is_found_from_a_folder_inside_it_or_refused_in_one_line(tmp_path, project: Project) -> None:
    (project.folder / "tasks").mkdir()
    assert project_folder(project.folder / "tasks") == project.folder
    with pytest.raises(StageError, match="is not inside a DVC project"):
        project_folder(tmp_path)
    (project.folder / "dvc.yaml").unlink()
    with pytest.raises(StageError, match=r"there is no dvc\.yaml in"):
        project_folder(project.folder)


def test_a_graph_that_dvc_refuses_is_a_one_line_error(project: Project) -> None:
    whole = project.read("dvc.yaml")
    for before, after, said in [
        ("deps: [filled]", "deps: [filled", "dvc.yaml"),
        ("deps: [in.txt]", "deps: [in.txt]\n    colour: red", "dvc.yaml"),
        ("deps: [in.txt]", "deps: [table.txt]", "both a dependency and an output"),
        ("outs: [table.txt]", "outs: [raw.txt]", "raw.txt"),
        ("technique: [list, tagger]\n    cmd: mkdir -p masked", "technique: ${nothing}\n    cmd: x", "nothing"),
    ]:
        project.write("dvc.yaml", whole.replace(before, after))
        with pytest.raises(StageError) as caught:
            graph_of(project)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
