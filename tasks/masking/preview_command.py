"""Show what a technique would mask, and why, word by word.

Every line is shown with its masked words in colour (plain where the output is no terminal), then as it would be
written, then one row for each masked word: the word, its class, its marker, and the reason: the list it is not on, its
rank in a vocabulary, the entity type and the model or recogniser that tagged it, with a score where there is one.

The output is the private text itself, and so is the page of --html: it is one file that needs no network, readable by
its owner alone (mode 0600). Nothing else is written. 'palimpsest mask --help' explains the techniques.

Examples:
  palimpsest preview --technique allow_list mail.txt
  palimpsest preview --technique spacy --lines 200 --html preview.html mail.txt
  palimpsest preview --technique combination --rule union --part allow_list --part spacy --all-words mail.txt
  palimpsest preview --params params.yaml --technique entity_tagger mail.txt
"""

import argparse
import sys
from itertools import islice

from tasks.errors import CorpusError, ParameterError
from tasks.masking.technique_options import (
    TECHNIQUE_PATHS,
    TECHNIQUE_TEXTS,
    add_marker_options,
    add_technique_options,
    chosen_technique,
)

SUMMARY = "show what a technique would mask, and why"
READS = ("file", *TECHNIQUE_PATHS)
WRITES = ("html",)
STREAMS = ("file", *TECHNIQUE_TEXTS)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest preview``."""
    parser.add_argument("file", metavar="FILE", help="text, one sentence a line; '-': standard input")
    add_technique_options(parser)
    add_marker_options(parser)
    parser.add_argument("--lines", type=int, default=20, metavar="N", help="how many lines are shown (default: 20)")
    parser.add_argument("--all-words", action="store_true", help="say of kept words, too, why they are kept")
    parser.add_argument("--html", metavar="FILE", help="write the preview as a page as well; as private as the text")


def run(arguments: argparse.Namespace) -> None:
    """Show the first lines of a text as a technique sees them."""
    if arguments.lines < 1:
        raise ParameterError(f"--lines {arguments.lines!r} is not allowed; give 1 or more")
    chosen = chosen_technique(arguments)
    from tasks.corpora.text_lines import read_lines
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.masking.preview import PreviewCounts, preview_lines
    from tasks.masking.preview_terminal import TerminalPreview

    if arguments.html:
        refuse_shared_paths([("list", file) for file in chosen.files], [("--html", arguments.html)])
    technique = chosen.load()
    notes = technique.announcements()
    for note in notes:
        print(note, file=sys.stderr)
    # A corpus may hold what the terminal's encoding does not.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    terminal = TerminalPreview(sys.stdout, all_words=arguments.all_words)
    counts = PreviewCounts()
    shown = []
    lines = islice(read_lines(arguments.file), arguments.lines)
    for line in preview_lines(technique, lines, chosen.settings.markers, counts):
        terminal.write_line(line)
        if arguments.html:
            shown.append(line)
    if counts.lines == counts.empty_lines:
        raise CorpusError(f"corpus file {arguments.file!r} is empty; it needs at least one sentence")
    terminal.write_counts(counts)
    if arguments.html:
        from tasks.files.atomic_file import atomic_writer
        from tasks.masking.preview_page import preview_page

        with atomic_writer(arguments.html, private=True) as stream:
            stream.write(preview_page(arguments.technique, shown, counts, notes, all_words=arguments.all_words))
        print(f"{arguments.html}: holds the private text; mode 0600, for your eyes alone", file=sys.stderr)
