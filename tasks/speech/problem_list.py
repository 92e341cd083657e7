"""All that is wrong with a file or with recordings, said in one message."""

from collections.abc import Sequence

PROBLEMS_SHOWN = 100
"""A manifest of a folder that was moved has as many problems as lines; nobody reads more than this."""


def problem_list(problems: Sequence[str], what: str = "problems") -> str:
    """The problems one behind the other, and how many there are (of ``what``) where it is more than one."""
    shown = "; ".join(problems[:PROBLEMS_SHOWN])
    if len(problems) == 1:
        return shown
    more = f"; and {len(problems) - PROBLEMS_SHOWN} more" if len(problems) > PROBLEMS_SHOWN else ""
    return f"{len(problems)} {what}: {shown}{more}"
