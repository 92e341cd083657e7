"""Check one cell of the experiment, and write it to releases/NAME, the only output that may leave.

An experiment is private: several maskings of one text together restore it. A release is one filled
text of a corpus, with its model on request. It has a card for the recipient, a dossier for the
person who approves it, and an entry in the ledger. Without CELL, the command releases the cell that
the verdict recommends.

With --applied, it releases the text to which 'palimpsest apply' applied the cell. Review and attacks
are then those of the run's sample. Of files that 'apply --write-back' wrote, each field that is not
filled must be named: --public-field FIELD.

The command refuses a cell in these cases:

- Files and reports do not match.
- More direct identifiers are unmasked than release.unmasked_direct allows.
- Attacks found more than release.at_most allows.
- Lines were released before, in a release that --also does not name.
- The sum of epsilons would exceed release.epsilon_budget.

A refusal names the remedy. DVC tracks the folder, and nothing is sent anywhere. 'palimpsest ledger'
lists the releases.

examples:
  palimpsest release --name chat-2026
  palimpsest release chat/every_tagger/minilm-log_linear-1 --name chat-2026 --approved-by "Ada Lovelace"
  palimpsest release chat/every_tagger/minilm-sample-1 --name chat-2026-sampled --also chat-2026 --with-model
"""

import sys
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.graph.graph import open_repository, project_folder
from tasks.errors import ParameterError, ResourceError
from tasks.options import Argument, Command, Options
from tasks.results.report_index import REPORTS

SUMMARY = "check one filled text, and write it to releases/ for sharing, with card and dossier"


class ReleaseOptions(Options):
    """Options of the release: the cell, and entries of its card."""

    cell: Annotated[str | None, Argument(positional=True)] = None
    """cell whose filled text is released, as tables name it (default: the one that the verdict recommends)"""
    name: str
    """name of the release: letters, digits, hyphens, underscores"""
    applied: Annotated[str | None, Argument(metavar="FOLDER")] = None
    """folder of 'palimpsest apply CELL': release its text, not the run's"""
    public_field: Annotated[list[str], Argument(again=True, metavar="FIELD")] = Field(default_factory=list)
    """field of a file written back, besides its text, that may leave as it is"""
    with_model: bool = False
    """release the adapted language model too"""
    also: Annotated[list[str], Argument(again=True, metavar="NAME")] = Field(default_factory=list)
    """earlier release of the same lines; accept all that both releases together show"""
    approved_by: Annotated[list[str], Argument(again=True, metavar="PERSON")] = Field(default_factory=list)
    """name of a person who approves the release, for dossier and ledger"""


def run(options: ReleaseOptions) -> int:
    """Release the cell, and print the remaining steps."""
    from dvc.exceptions import DvcException

    from tasks.parameters.parameter_file import read_parameters
    from tasks.privacy.applied_text import with_applied
    from tasks.privacy.gate import CARD, DOSSIER, check_form
    from tasks.privacy.release import make_release
    from tasks.privacy.released_cell import find_cell
    from tasks.results.verdict import recommended_cell

    check_form(options.name)
    if options.applied and options.with_model:
        raise ParameterError("--with-model: the model has seen the run's text and not that of --applied. Leave it out.")
    if options.public_field and not options.applied:
        raise ParameterError("--public-field is about files of 'palimpsest apply --write-back'. Name their --applied.")
    applied = Path(options.applied).absolute() if options.applied else None
    with open_repository(project_folder()) as repository:
        parameters = read_parameters()
        cell = find_cell(options.cell or recommended_cell(), REPORTS, with_model=options.with_model)
        cell = with_applied(cell, applied, options.public_field) if applied else cell
        made = make_release(cell, options.name, options.also, parameters, options.approved_by)
        folder = made.folder
        if made.examined is None:
            print(f"already released in {folder}, with the same files; nothing was changed")
            return 0
        try:
            repository.add(str(folder))
        except DvcException as error:
            raise ResourceError(
                f"{str(folder)!r} is written and in the ledger, but DVC does not track it yet "
                f"({type(error).__name__}). Run: dvc add {folder}"
            ) from None
    for check in made.examined.checks:
        limit = f", {check.limit}" if check.limit else ""
        print(f"{check.name}: {check.figure}{limit}", file=sys.stderr)
    print(f"released in {folder}: read {folder / CARD} and {made.private_dossier or folder / DOSSIER} first")
    print(f"then: git add {folder}.dvc {folder.parent / '.gitignore'} && git commit && dvc push {folder}.dvc")
    return 0


COMMAND = Command(ReleaseOptions, run)
