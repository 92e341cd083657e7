"""Parts of the graph by dimension: ``--only technique=entity_tagger``."""

import pytest
from scratch_project import Project

from flows.graph.graph import Graph, open_repository, read_graph
from flows.graph.selection import Selection, parse_only
from tasks.errors import ParameterError, StageError


def graph_of(project: Project) -> Graph:
    with open_repository(project.folder) as repository:
        return read_graph(repository)


def names(graph: Graph, *patterns: str, **only: str) -> list[str]:
    return list(graph.select(Selection(patterns, {key: values.split(",") for key, values in only.items()})).nodes)


def test_dimensions_are_those_of_the_matrix_or_foreach(project: Project) -> None:
    more = """
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
    project.write("dvc.yaml", project.read("dvc.yaml") + more)
    graph = graph_of(project)
    dimensions = {name: node.dimensions for name, node in graph.nodes.items()}
    assert dimensions["fill@tagger-top_k"] == {"technique": "tagger", "method": "top_k"}
    assert dimensions["tune@list-tuned"] == {"technique": "list", "filler": "tuned", "seed": "1"}
    assert dimensions["corpus@chat"] == {"corpus": "chat"}
    assert dimensions["table"] == {}
    assert names(graph, filler="tuned") == ["tune@list-tuned"]
    assert names(graph, corpus="chat") == ["corpus@chat"]


def test_values_of_one_key_are_alternatives_and_keys_must_all_fit(project: Project) -> None:
    graph = graph_of(project)
    tagger = ["raw", "mask@tagger", "fill@tagger-top_1", "fill@tagger-top_k"]
    assert names(graph, technique="tagger") == tagger
    assert names(graph, technique="tag*") == tagger
    assert names(graph, technique="tagger", method="top_1") == tagger[:3]
    assert len(names(graph, method="top_1,top_k")) == 7
    assert names(graph, step="mask", technique="list") == ["raw", "mask@list"]
    assert names(graph, stage="fill@list-top_1") == ["raw", "mask@list", "fill@list-top_1"]
    assert names(graph, "mask", technique="tagger") == ["raw", "mask@tagger"]


def test_what_fits_nothing_is_an_error(project: Project) -> None:
    graph = graph_of(project)
    for only, message in [
        (
            {"tecnique": "list"},
            r"'tecnique' is no dimension .* \(did you mean 'technique'\?\); there are: method, stage, step, technique",
        ),
        ({"technique": "tager"}, r"technique='tager' \(did you mean 'tagger'\?\); there are: list, tagger"),
        ({"step": "mask", "method": "top_1"}, "no stage fits 'step=mask' and 'method=top_1' together"),
    ]:
        with pytest.raises(StageError, match=message):
            names(graph, **only)


def test_the_option_is_parsed() -> None:
    assert parse_only(["technique=a,b", "seed=1", "technique=c"]) == {"technique": ["a", "b", "c"], "seed": ["1"]}
    for text in ["technique", "=a", "technique=", "technique=a,", "technique=a,method=b"]:
        with pytest.raises(ParameterError, match="is not of the form KEY=VALUE"):
            parse_only([text])
