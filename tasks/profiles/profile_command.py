"""Write params.yaml for a profile: other sizes, models and corpora, with the same code and the same graph.

Profiles are files in profiles/. A section that a profile names replaces the one in params.yaml; the others stay.
The best place for a large experiment is a clone of its own, so that its results lie beside those of the default:

  git clone . ../palimpsest-paper && cd ../palimpsest-paper
  palimpsest doctor --profile paper      what is missing, and how to get it
  palimpsest profile paper               write params.yaml, and cells.yaml as it asks
  palimpsest plan                        what will run

'git checkout params.yaml' brings the default back; DVC's cache still has its results then.
"""

import sys
from pathlib import Path
from typing import Annotated

from tasks.errors import ParameterError
from tasks.options import WRITE, Argument, Command, Options

SUMMARY = "write params.yaml for a profile, such as the paper's sizes and corpora"


class ProfileOptions(Options):
    """Which profile, and where it goes."""

    name: Annotated[str | None, Argument(positional=True)] = None
    """the profile; without it, the profiles are listed"""
    output: Annotated[str, WRITE] = "params.yaml"
    """file to write"""
    force: bool = False
    """replace a params.yaml with changes that git has not got"""


def run(options: ProfileOptions) -> None:
    """Write the parameters, after they were checked."""
    from tasks.corpora.text_lines import line_writer
    from tasks.parameters.cells_file import write_cells
    from tasks.parameters.parameter_file import DEFAULT_PATH
    from tasks.profiles.profile import DEFAULT_PROFILE, profile_names, profile_text, read_profile, refuse_lost_changes

    if options.name is None:
        for name in profile_names():
            print(name)
        return
    if options.name == DEFAULT_PROFILE:
        raise ParameterError("the default profile is params.yaml as it was shipped: 'git checkout params.yaml'")
    parameters = read_profile(options.name)
    text = profile_text(options.name)
    if not options.force:
        refuse_lost_changes(Path(options.output), "commit them, give another --output, or --force")
    with line_writer(options.output) as stream:
        stream.write(text)
    if Path(options.output).name == DEFAULT_PATH:
        write_cells(parameters, Path(options.output).parent)
    print(f"{options.output}: profile {options.name}; 'palimpsest plan' says what would run", file=sys.stderr)


COMMAND = Command(ProfileOptions, run)
