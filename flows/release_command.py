"""Check one cell of the experiment, and put it into releases/NAME: the only thing that may leave.

An experiment is private: several maskings of one text give it back together. A release is one filled text of a corpus
(CELL as the table names it), with its model if you like, a card that says what stands in clear, and an entry in the
ledger of what has left. It is refused where files and reports are not of one state, where words that a tagger of
'masking' calls private stand in clear (release.clear_share), where lines have left before (--also), and where the sum
of epsilons would be above release.epsilon_budget.

The folder is tracked by DVC; nothing is sent anywhere. 'palimpsest ledger' lists what has left.

examples:
  palimpsest release chat/all_taggers/minilm-top_k-1 --name chat-2026
  palimpsest release chat/all_taggers/minilm-sample-1 --name chat-2026-sampled --also chat-2026 --with-model
"""

import sys
from typing import Annotated

from pydantic import Field

from flows.graph.graph import open_repository, project_folder
from tasks.errors import ResourceError
from tasks.options import Argument, Command, Options
from tasks.results.report_index import REPORTS

SUMMARY = "check one filled text, and put it with its card into releases/, to be given away"


class ReleaseOptions(Options):
    """What is released, and what its card says."""

    cell: Annotated[str, Argument(positional=True)]
    """the cell whose filled text is released, as tables name it"""
    name: str
    """name of the release: letters, digits, hyphens, underscores"""
    with_model: bool = False
    """release the adapted language model too"""
    also: Annotated[list[str], Argument(again=True, metavar="NAME")] = Field(default_factory=list)
    """put it beside this earlier release of the same lines, and show what both together show"""


def run(options: ReleaseOptions) -> int:
    """Release the cell, and say what is left to do."""
    from dvc.exceptions import DvcException

    from tasks.parameters.parameter_file import read_parameters
    from tasks.privacy.gate import percent
    from tasks.privacy.release import check_form, make_release
    from tasks.privacy.released_cell import find_cell

    check_form(options.name)
    with open_repository(project_folder()) as repository:
        parameters = read_parameters()
        cell = find_cell(options.cell, REPORTS, with_model=options.with_model)
        made = make_release(cell, options.name, options.also, parameters)
        try:
            repository.add(str(made.folder))
        except DvcException as error:
            raise ResourceError(
                f"{str(made.folder)!r} is written and in the ledger, and DVC does not track it yet "
                f"({type(error).__name__}); run 'dvc add {made.folder}'"
            ) from None
    for check in made.checks:
        print(f"{check.name} ({check.attacker}): {check.figure}", file=sys.stderr)
    if made.earlier.lines:
        shown = f"together with {', '.join(made.earlier.lines)} it shows {percent(made.earlier.share)}"
        print(f"{shown} of the words that any of them masks", file=sys.stderr)
    folder = made.folder
    print(f"released in {folder}: read {folder / 'README.md'} first")
    print(f"then: git add {folder}.dvc {folder.parent / '.gitignore'} && git commit && dvc push {folder}.dvc")
    return 0


COMMAND = Command(ReleaseOptions, run)
