"""Read a sample of a private text, to estimate how many identifiers a technique leaves unmasked.

You mark the identifiers of each line on a page. The estimates have intervals. The page is on this
machine's loopback interface, under an address with a random token. If PALIMPSEST_REVIEW_PASSWORD is
set, the page asks for this password too.

Each line is saved as soon as it is read. Ctrl-C ends the review, and you can continue it later. One
review gives the recall of every technique, from whichever cell you start it.

The record is data/private/review/CORPUS.jsonl. It has offsets, classes, the reviewer's name and
times, and no text.

Examples:
  palimpsest review chat/every_tagger                        the page
  palimpsest review chat/every_tagger --more 20              20 lines more
  palimpsest review chat/every_tagger --status
  palimpsest review chat/every_tagger --export label-studio --lines 100 --output tasks.json
  palimpsest review chat/every_tagger --import label-studio annotated.json
  palimpsest review chat/every_tagger --export gold --output gold.jsonl
"""

import os
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tasks.errors import ParameterError
from tasks.options import WRITE, Argument, Command, Options

if TYPE_CHECKING:
    from tasks.review.reading import Reading

SUMMARY = "read a sample of a corpus, to estimate how many identifiers a technique leaves unmasked"
PASSWORD = "PALIMPSEST_REVIEW_PASSWORD"
"""Environment variable with the password of the page."""
PORT = "PALIMPSEST_REVIEW_PORT"
"""Environment variable with the port of the page; without it a free one is used."""


class ReviewOptions(Options):
    """Options of the review: the corpus, the reviewer, and the action on the record."""

    cell: Annotated[str, Argument(positional=True, metavar="CELL")]
    """a cell as tables name it, or CORPUS/TECHNIQUE"""
    reviewer: str | None = None
    """name of the reviewer, recorded with each line (default: your user name)"""
    lines: int | None = Field(default=None, ge=1)
    """stop when you have read so many lines in all; with --export: number of lines to write"""
    more: int | None = Field(default=None, ge=1)
    """stop when you have read so many more lines"""
    second: bool = False
    """read lines that another reviewer has read, to measure the agreement of two"""
    no_suggestions: bool = False
    """do not mark the findings of the reference reader"""
    seed: int = 1
    """seed of the order of lines, for a new review"""
    status: bool = False
    """print the number of lines read, the estimates and the agreement"""
    differences: bool = False
    """print where two reviewers differ: line numbers and offsets"""
    export: str | None = None
    """write lines for an annotation tool (label-studio, doccano, prodigy), or the reviewed lines as gold"""
    output: Annotated[str | None, WRITE] = None
    """file for --export; it contains private text and has mode 0600"""
    reviewed: bool = False
    """with --export: write the reviewed lines, not the next ones"""
    import_: Annotated[list[str], Argument(metavar="FORMAT FILE")] = Field(default_factory=list)
    """take reviewed lines from a file: its format (label-studio, doccano, prodigy or gold) and its path"""
    labels: Annotated[list[str], Argument(metavar="FROM=TO")] = Field(default_factory=list)
    """with --import: classes for labels of the file"""


def run(options: ReviewOptions) -> None:
    """Do the requested action; without an option serve the page."""
    reading = _reading(options)
    if options.export is not None:
        from tasks.review.exchange import write_export

        if options.output is None:
            raise ParameterError("--export needs --output FILE: the lines are private text.")
        print(write_export(reading, options.export, Path(options.output), options.lines, options.reviewed))
    elif options.import_:
        from tasks.review.exchange import take_import

        if len(options.import_) != 2:
            raise ParameterError("--import takes a format and a file: --import label-studio annotated.json")
        print(take_import(reading, options.import_[0], Path(options.import_[1]), _labels(options.labels)))
    elif options.status or options.differences:
        from dashboards.review.status import differences, status

        print(differences(reading) if options.differences else status(reading))
    else:
        _page(reading)


def _reading(options: ReviewOptions) -> "Reading":
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters
    from tasks.review.reading import Reading

    corpus, _, rest = options.cell.partition("/")
    technique = rest.partition("/")[0]
    reviewer = options.reviewer if options.reviewer is not None else getuser()
    limit = read_parameters(DEFAULT_PATH).release.unmasked_direct
    reading = Reading(
        corpus, technique, reviewer, limit, None, not options.no_suggestions, options.second, options.seed
    )
    if options.more is not None:
        reading.stop = len(reading.own) + options.more
    elif options.lines is not None:
        reading.stop = options.lines
    return reading


def _labels(given: Sequence[str]) -> dict[str, str | None]:
    pairs = [each.partition("=") for each in given]
    if wrong := next((label + equals + to for label, equals, to in pairs if not (label and equals)), None):
        raise ParameterError(f"--labels {wrong!r} is not of the form FROM=TO.")
    return {label: to or None for label, _, to in pairs}


def _page(reading: "Reading") -> None:
    import secrets

    from dashboards.review.server import HOST, listen, make_app, serve

    text = os.environ.get(PORT)
    if text and not (text.isascii() and text.isdigit() and 1024 <= int(text) <= 65535):
        raise ParameterError(f"{PORT}={text!r} is no port. Give a number from 1024 to 65535.")
    listener = listen(int(text or 0))
    port = listener.getsockname()[1]
    token, password = secrets.token_urlsafe(24), os.environ.get(PASSWORD) or None
    # Here, where an error is one line, and not at the first request.
    reading.bound()
    address = f"http://{HOST}:{port}/{token}/"
    app = make_app(reading, port, token, password)
    print(f"{reading.corpus}, {reading.technique}: {len(reading.read_by)} lines read so far.")
    print(f"You are recorded as {reading.reviewer!r} (--reviewer NAME changes that).")
    print(f"Open {address}")
    print("It shows private text; give the address to nobody. Ctrl-C ends it.", flush=True)
    try:
        serve(app, listener)
    finally:
        print(f"\n{len(reading.read_by)} lines are read. 'palimpsest review' continues with the next one.")


COMMAND = Command(ReviewOptions, run)
