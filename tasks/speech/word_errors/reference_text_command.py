"""Write the references of a test set as a text, one a line, so that they can be masked.

The lines stand in the order of the manifest or of the n-best lists, as 'palimpsest word-error-rate --masked' expects
the sidecar of a technique. The text is private.

example:
  palimpsest reference-text --references test/manifest.jsonl --output test.txt
"""

import argparse
import sys

SUMMARY = "write the references of a test set as a text"
READS = ("references",)
WRITES = ("output",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--references", metavar="FILE", required=True, help="manifest or n-best lists: what was said")
    parser.add_argument("--output", metavar="FILE", required=True, help="text to write")


def sections(arguments: argparse.Namespace) -> list[str]:
    """It has no settings."""
    return []


def run(arguments: argparse.Namespace) -> None:
    """Write the lines."""
    from tasks.corpora.text_lines import write_lines
    from tasks.speech.word_errors.masked_words import reference_lines
    from tasks.speech.word_errors.references import read_references

    written = write_lines(arguments.output, reference_lines(read_references(arguments.references)), private=True)
    print(f"{written:,} references written", file=sys.stderr)
