"""The key of a cell's run: the cell and a hash of its model's lineage.

``chat/allow_list/minilm-top_k-1#3f0c5d9a1b2e``. Two states of a cell (K = 10 and K = 20) have two keys; the same state
has the same key wherever its clone computes the same bytes. Hashes of files are keyed, so two clones have two keys for
one state. Timings, versions and the code are not included. The key can be computed when training starts, so the live
run and the published run are one.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tasks.records.cell import Cell
from tasks.records.stage_report import StageReport

KEY_DIGITS = 12
"""Hexadecimal digits of the hash in a key: 48 bits, one chance in 10^8 of a clash among 2,000 states of one cell."""

_LINEAGE_FIELDS = ("parameters", "inputs", "seed")


def lineage_of(report: StageReport | Mapping[str, Any]) -> dict[str, Any]:
    """The lineage of the model of a training stage: its parameters, the hashes of its inputs, its seed.

    Takes the report under construction or the finished one as read from its file; both give the same lineage.
    """
    if isinstance(report, StageReport):
        return {name: getattr(report, name) for name in _LINEAGE_FIELDS}
    return {name: report[name] for name in _LINEAGE_FIELDS}


def run_key(cell: Cell, lineage: Mapping[str, Any]) -> str:
    """The key of a cell's run, given the lineage of its model (plain JSON values only)."""
    document = {"cell": cell.as_dict(), "lineage": dict(lineage)}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"{cell.path}#{hashlib.sha256(canonical.encode('ascii')).hexdigest()[:KEY_DIGITS]}"
