"""How often each fault was tried and what came of it, written as the tests go along."""

import json
import os
from pathlib import Path
from typing import Any

RESULTS = "PALIMPSEST_FAULT_RESULTS"
"""Environment variable: the file that the counts are added to, one JSON document a line."""
MOMENTS = int(os.environ.get("PALIMPSEST_FAULT_MOMENTS", "10"))
"""How many moments each process is killed at."""


class Trial:
    """One fault: what is known of it while the test works, and whether it ended as it must."""

    def __init__(self, number: int) -> None:
        self.facts: dict[str, Any] = {"number": number}

    def note(self, **facts: Any) -> None:
        self.facts |= facts

    def write(self, *, held: bool) -> None:
        path = os.environ.get(RESULTS)
        if path:
            with Path(path).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({**self.facts, "held": held}) + "\n")
