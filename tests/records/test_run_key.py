from tasks.records.cell import Cell
from tasks.records.run_key import run_key

CELL = Cell("chat", "allow_list", "top_k", "minilm", 1)
LINEAGE = {"parameters": {"epochs": 2.0}, "inputs": {"text.txt": "ab" * 32, "model": "cd" * 32}, "seed": 1}


def test_the_key_is_the_same_in_every_process_and_version():
    """Computed once by hand: sha256 of the canonical JSON. A change would orphan every run that was ever tracked."""
    assert run_key(Cell("a", None, "oracle", None, 1), {"inputs": {}}) == "a/oracle-1#918d657a01df"
    turned = LINEAGE | {"inputs": dict(reversed(LINEAGE["inputs"].items()))}
    assert run_key(CELL, turned) == run_key(CELL, LINEAGE) != run_key(CELL, LINEAGE | {"seed": 2})
