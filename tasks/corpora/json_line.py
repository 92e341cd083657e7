"""One line of a file of JSON lines that a user hands in."""

import json
from typing import Any


class NoJson(ValueError):
    """Says why a line is none, without quoting it."""


def read_json_line(line: str) -> Any:
    """Its value; ``NoJson`` for what is no JSON, is nested too deeply, or has a key twice: one value would be lost."""
    try:
        return json.loads(line, object_pairs_hook=_without_repetition)
    except NoJson:
        raise
    except json.JSONDecodeError as error:
        raise NoJson(f"is not JSON (column {error.colno})") from None
    except (ValueError, RecursionError):
        # A number of thousands of digits, or brackets by the thousand.
        raise NoJson("is not JSON") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise NoJson(f"has the key {twice!r} twice")
    return found
