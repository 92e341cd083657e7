"""Write cells.yaml, which lists the cells of the experiment by step, from params.yaml.

dvc.yaml runs a stage for each cell. 'palimpsest plan' and 'palimpsest run' write cells.yaml too,
before they read the graph. So this command is only for those who change 'compare' and use DVC
alone.

--check writes no cells.yaml. It fails if params.yaml has a mistake or cells.yaml is out of date.
Otherwise it writes a file whose content is always the same. This is the first stage of the graph,
so that nothing runs in these two cases.

Names in params.yaml become parts of the commands of stages, which DVC passes to a shell.

Examples:
  palimpsest cells
  palimpsest cells --check results/cells.ok
"""

from typing import Annotated

from tasks.options import WRITE, Command, Options

SUMMARY = "write cells.yaml from params.yaml, or check both"
STAGE = "cells"
"""Name of this command's stage in the graph. Its output does not depend on its inputs."""


class CellsOptions(Options):
    """Options of the check."""

    check: Annotated[str | None, WRITE] = None
    """file to write, for DVC, if there is no mistake; cells.yaml is not written, and must be up to date"""


def run(options: CellsOptions) -> None:
    """Check the parameters, and write only without a mistake."""
    from pathlib import Path

    from tasks.corpora.text_lines import write_lines
    from tasks.parameters.cells_file import CELLS_FILE, check_cells, write_cells
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    parameters, folder = read_parameters(DEFAULT_PATH), Path()
    if options.check:
        check_cells(parameters, folder)
        write_lines(options.check, ["ok"])
    else:
        print(f"{CELLS_FILE} is {'updated' if write_cells(parameters, folder) else 'up to date'}")


def _sections() -> list[str]:
    """All sections that stages depend on and that must exist: DVC refuses a missing parameter."""
    from tasks.parameters.parameter_file import AMBIENT_SECTIONS, Parameters

    fields = Parameters.model_fields
    return [name for name in fields if fields[name].is_required() and name not in AMBIENT_SECTIONS]


COMMAND = Command(CellsOptions, run, _sections)
