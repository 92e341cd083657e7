"""Write cells.yaml, the cells of the experiment by step, as params.yaml asks for them; dvc.yaml runs over them.

'palimpsest plan' and 'palimpsest run' do so too, before they read the graph, so that this is for those who change
'compare' and use DVC alone. With --check nothing is written but a file whose content is always the same: that is the
first stage of the graph, so that nothing runs where params.yaml has a mistake or cells.yaml is older. Names in
params.yaml become parts of the commands of stages, which DVC hands to a shell.

Examples:
  palimpsest cells
  palimpsest cells --check
"""

import argparse

SUMMARY = "write cells.yaml as params.yaml asks for it, or check both"
WRITES = ("output",)
STAGE = "cells"
"""What the graph calls the stage of this command. Its output says nothing of its inputs."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest cells``."""
    parser.add_argument(
        "--params",
        metavar="FILE",
        default="params.yaml",
        help="parameters; cells.yaml lies beside them (default: %(default)s)",
    )
    parser.add_argument("--check", action="store_true", help="write no cells.yaml, and fail where it is older")
    parser.add_argument("--output", metavar="FILE", help="written where there is no mistake, for DVC")


def sections(arguments: argparse.Namespace) -> list[str]:
    """All sections that stages depend on."""
    from tasks.parameters.parameter_file import AMBIENT_SECTIONS, Parameters

    return [name for name in Parameters.model_fields if name not in AMBIENT_SECTIONS]


def run(arguments: argparse.Namespace) -> None:
    """Check the parameters, and only then write."""
    from pathlib import Path

    from tasks.corpora.text_lines import write_lines
    from tasks.parameters.cells_file import CELLS_FILE, check_cells, write_cells
    from tasks.parameters.parameter_file import read_parameters

    parameters, folder = read_parameters(arguments.params), Path(arguments.params).parent
    if arguments.check:
        check_cells(parameters, folder)
    else:
        print(f"{CELLS_FILE} is {'written anew' if write_cells(parameters, folder) else 'as it should be'}")
    if arguments.output:
        write_lines(arguments.output, ["ok"])
