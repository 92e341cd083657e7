"""The graph is DVC's: same stages, same edges, in an order that can be run; and its parts by name and dimension."""

import re
from pathlib import Path

import pytest
from scratch_project import ALL, Project

from flows.graph.graph import project_folder
from flows.graph.selection import parse_only, select
from tasks.errors import ParameterError, StageError

MORE = """
  tune:
    foreach: {list-tuned: {technique: list, filler: tuned, seed: 1, path: list/tuned}}
    do:
      cmd: echo ${item.path} > tuned.txt
      outs: [tuned.txt]
  corpus:
    foreach: {chat: {source: in.txt}}
    do:
      cmd: cat ${item.source} > ${key}.txt
      deps: ["${item.source}"]
      outs: ["${key}.txt"]
"""
TAGGER = ["raw", "mask@tagger", "fill@tagger-top_1", "fill@tagger-top_k"]


def test_stages_and_edges_are_those_of_dvc_in_order(project: Project) -> None:
    graph = project.graph()
    assert list(graph) == ALL
    mask = graph["mask@tagger"]
    read_and_written = (mask.step, mask.dependencies, mask.parameters, mask.outputs)
    assert read_and_written == ("mask", ("raw.txt",), ("filling.top_1",), ("masked/tagger.txt",))
    edges = {(above, node.name) for node in graph.values() for above in node.upstream}
    assert edges == set(re.findall(r'"(.+?)" -> "(.+?)"', project.dvc("dag", "--dot")))
    assert len(edges) == 2 + 4 + 4
    # Data under DVC is a stage where something depends on it, and a frozen stage waits for nothing.
    project.write("other.txt", "nobody reads this\n")
    project.dvc("add", "--quiet", "in.txt", "other.txt")
    project.replace("dvc.yaml", "    outs: [table.txt]", "    outs: [table.txt]\n    frozen: true")
    graph = project.graph()
    assert set(graph) == {"in.txt.dvc", *ALL}
    assert (graph["raw"].upstream, graph["table"].upstream) == (("in.txt.dvc",), ())


def test_a_selection_includes_what_a_stage_needs(project: Project) -> None:
    project.write("dvc.yaml", project.read("dvc.yaml") + MORE)
    graph = project.graph()
    cases: list[tuple[list[str], list[str], list[str]]] = [
        ([], [], list(graph)),
        (["mask"], [], ["raw", "mask@list", "mask@tagger"]),
        (["fill@list-top_k"], [], ["raw", "mask@list", "fill@list-top_k"]),
        (["*tagger*"], [], TAGGER),
        (["mask@list", "table"], [], ALL),
        # Values of one key are alternatives, and keys must all fit.
        ([], ["technique=tag*"], TAGGER),
        ([], ["technique=tagger", "method=top_1"], TAGGER[:3]),
        ([], ["method=top_1,top_k"], ALL[:-1]),
        ([], ["step=mask", "technique=list"], ["raw", "mask@list"]),
        (["mask"], ["technique=tagger"], TAGGER[:2]),
        ([], ["filler=tuned"], ["tune@list-tuned"]),
        ([], ["corpus=chat"], ["corpus@chat"]),
    ]
    for patterns, only, expected in cases:
        assert list(select(graph, patterns, only)) == expected
    for only, message in [
        (["tecnique=list"], r"'tecnique' is no dimension .* \(did you mean 'technique'\?\); there are: corpus, filler"),
        (["technique=tager"], r"technique='tager' \(did you mean 'tagger'\?\); there are: list, tagger"),
        (["step=mask", "method=top_1"], "no stage fits 'step=mask' and 'method=top_1' together"),
    ]:
        with pytest.raises(StageError, match=message):
            select(graph, [], only)
    with pytest.raises(ParameterError, match="'technique' is not of the form KEY=VALUE"):
        parse_only(["technique"])


def test_the_project_is_found_from_a_folder_inside_it_or_refused_in_one_line(tmp_path: Path, project: Project) -> None:
    (project.folder / "tasks").mkdir()
    assert project_folder(project.folder / "tasks") == project.folder
    with pytest.raises(StageError, match="is not inside a DVC project"):
        project_folder(tmp_path)
    (project.folder / "dvc.yaml").unlink()
    with pytest.raises(StageError, match=r"there is no dvc\.yaml in"):
        project_folder(project.folder)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("deps: [filled]", "deps: [filled", "dvc.yaml"),
        ("deps: [in.txt]", "deps: [table.txt]", "both a dependency and an output"),
    ],
    ids=["no YAML", "circle"],
)
def test_a_graph_that_dvc_refuses_is_a_one_line_error(project: Project, before: str, after: str, said: str) -> None:
    project.replace("dvc.yaml", before, after)
    with pytest.raises(StageError, match=said) as caught:
        project.graph()
    assert "\n" not in str(caught.value)
