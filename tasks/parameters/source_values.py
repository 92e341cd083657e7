"""What a command that brings data in is told: a section of the parameter file, or a source in its options."""

import argparse
from typing import Any

from tasks.errors import ParameterError


def source_values(arguments: argparse.Namespace, default_kind: str) -> dict[str, Any]:
    """The settings to begin with: those of ``--params`` and ``--section``, or ``--kind`` alone beside ``--source``.

    Raises ``ParameterError`` where neither is given, or both are.
    """
    if bool(arguments.params) != bool(arguments.section):
        raise ParameterError("--params and --section go together: give both, or neither and --source")
    if arguments.params:
        if arguments.kind:
            raise ParameterError(
                f"--kind {arguments.kind!r} goes with --source; with --params the section says the kind"
            )
        from tasks.parameters.parameter_file import read_sections
        from tasks.settings.checks import as_plain

        return as_plain(read_sections(arguments.params, [arguments.section])[arguments.section])
    if arguments.source:
        return {"kind": arguments.kind or default_kind}
    raise ParameterError("nothing to read: give --source PATH, or --params FILE and --section KEY")
