"""Imports between modules: no circle, and no arrow from a lower room to a higher one."""

import grimp
import networkx
import pytest

ROOMS = (
    ("tasks.corpora", "tasks.made_up", "tasks.masking", "tasks.filling", "tasks.audit"),
    ("tasks.corpora", "tasks.made_up", "tasks.labelled_text", "tasks.tagger_training"),
    ("tasks.training", "tasks.language_model", "tasks.unlearning"),
    ("tasks.training", "tasks.language_model", "tasks.speech"),
    ("tasks.errors", "tasks.files", "tasks.settings", "tasks.records", "flows"),
)
"""From low to high: a room imports none of those after it."""


@pytest.fixture(scope="module")
def imports() -> networkx.DiGraph:
    """An edge from each module to each that it imports, also within functions; not for type checking alone."""
    graph = grimp.build_graph("tasks", "flows", "dashboards", exclude_type_checking_imports=True, cache_dir=None)
    return networkx.DiGraph((a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a))


def test_there_is_no_circle(imports):
    circles = [sorted(circle) for circle in networkx.strongly_connected_components(imports) if len(circle) > 1]
    assert circles == []


@pytest.mark.parametrize("rooms", ROOMS)
def test_no_arrow_climbs(imports, rooms):
    def is_in(module: str, room: str) -> bool:
        return module == room or module.startswith(f"{room}.")

    climbing = [
        (low, high)
        for number, room in enumerate(rooms)
        for low, high in imports.edges
        if is_in(low, room) and any(is_in(high, other) for other in rooms[number + 1 :])
    ]
    assert climbing == []
