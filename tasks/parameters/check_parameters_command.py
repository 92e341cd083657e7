"""Check params.yaml as a whole, and write a file whose content is always the same.

Names in params.yaml become parts of the commands of stages, which DVC hands to a shell. So this is the first stage of
the graph: where params.yaml has a mistake, all stages behind it stay undone. Where it has none, nothing is made anew
because of it.

Example:
  palimpsest check-parameters --output results/parameters.ok
"""

import argparse

SUMMARY = "check params.yaml as a whole"
WRITES = ("output",)
STAGE = "parameters"
"""What the graph calls the stage of this command. Its output says nothing of its inputs."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest check-parameters``."""
    parser.add_argument("--params", metavar="FILE", default="params.yaml", help="what to check (default: %(default)s)")
    parser.add_argument("--output", metavar="FILE", required=True, help="written where there is no mistake")


def sections(arguments: argparse.Namespace) -> list[str]:
    """All sections that stages depend on."""
    from tasks.parameters.parameter_file import AMBIENT_SECTIONS, Parameters

    return [name for name in Parameters.model_fields if name not in AMBIENT_SECTIONS]


def run(arguments: argparse.Namespace) -> None:
    """Check the file, and only then write."""
    from tasks.corpora.text_lines import write_lines
    from tasks.parameters.parameter_file import read_parameters

    read_parameters(arguments.params)
    write_lines(arguments.output, ["ok"])
