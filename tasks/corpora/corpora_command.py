"""Bring text in: clean it, leave duplicates out, and divide it into training, validation and test text.

The result is a folder with train.txt, valid.txt and test.txt: UTF-8, one sentence a line. Case and punctuation
stay; white space and control characters are normalised. No sentence of valid or test is in train, and no document
(conversation, article, or whatever --document-field names) is divided; with --private, train.documents has a number
for the document of each line of train.txt. Every text that is left out is counted by its reason in the report.

Examples:
  palimpsest corpora --source mail.jsonl --text-field body --document-field thread --private --output data/mail
  palimpsest corpora --kind wikitext --source wikitext-103-v1.zip --output data/generic
  palimpsest corpora --params params.yaml --section corpora.chat --private --output data/private/corpora/chat
"""

import argparse
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from tasks.errors import ParameterError
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder
from tasks.parameters.source_values import source_values

SUMMARY = "bring text in: clean, deduplicate, divide into train, valid and test"
READS = ("source",)
WRITES = ("output",)
FILES = ("train.txt", "valid.txt", "test.txt", "train.documents")
SEARCHED = {"source": "*.txt *.text *.jsonl *.ndjson *.parquet *.gz *.zst *.zip"}

_CLEANING_OPTIONS = (
    ("minimum_words", "leave out sentences with fewer words"),
    ("maximum_words", "leave out sentences with more words"),
    ("train_sentences", "at most so many sentences for training (default: all)"),
    ("valid_sentences", "sentences of the validation part"),
    ("test_sentences", "sentences of the test part"),
    ("seed", "seed of the division"),
)
_SOURCE_OPTIONS = ("source", "format", "text_field", "document_field", "parts")
_KINDS = ("files", "wikitext", "fisher", "pushshift", "wsj")
_PACKAGED_KINDS = ("chitchat", "encyclopedia")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest corpora``."""
    parser.add_argument("--params", metavar="FILE", help="read the settings from a params.yaml")
    parser.add_argument("--section", metavar="KEY", help="with --params: 'generic', 'corpora.NAME' or 'speech.text'")
    parser.add_argument(
        "--output", metavar="FOLDER", required=True, help="folder for train.txt, valid.txt and test.txt"
    )
    parser.add_argument("--private", action="store_true", help="only you may read the output (modes 0700 and 0600)")
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")
    source = parser.add_argument_group("source", "your own text; overrides the settings")
    source.add_argument("--source", metavar="PATH", help="a .txt, .jsonl or .parquet file, or a folder of such")
    source.add_argument("--kind", choices=_KINDS, help="form of the source: files (default) or a published corpus")
    source.add_argument("--format", choices=("auto", "text", "jsonl", "parquet"), help="default: by the file's ending")
    source.add_argument("--text-field", metavar="NAME", help="field or column that holds the text (default: text)")
    source.add_argument("--document-field", metavar="NAME", help="field or column that names the document")
    source.add_argument(
        "--parts",
        choices=("auto", "given"),
        help="given: a folder with train.*, valid.* and test.* keeps these parts (default: auto, by file names)",
    )
    cleaning = parser.add_argument_group("cleaning and division", "override the settings")
    for name, text in _CLEANING_OPTIONS:
        cleaning.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)


def sections(arguments: argparse.Namespace) -> list[str]:
    """The one section that the corpus is described by."""
    return [arguments.section] if arguments.params else []


def _settings(arguments: argparse.Namespace) -> Any:
    from tasks.corpora.settings import CorpusSettings
    from tasks.settings.checks import check_settings

    if arguments.params and arguments.section and not _is_corpus(arguments.section):
        raise ParameterError(
            f"--section {arguments.section!r} is no corpus; allowed: 'generic', 'corpora.NAME', 'speech.text'"
        )
    values = source_values(arguments, "files")
    for name in _SOURCE_OPTIONS:
        if getattr(arguments, name) is not None:
            values[name] = getattr(arguments, name)
    cleaning = dict(values.get("cleaning", {}))
    cleaning |= {
        name: getattr(arguments, name) for name, _ in _CLEANING_OPTIONS if getattr(arguments, name) is not None
    }
    return check_settings(CorpusSettings, {**values, "cleaning": cleaning}, arguments.section or "options")


def _is_corpus(section: str) -> bool:
    return section in ("generic", "speech.text") or section.startswith("corpora.")


def run(arguments: argparse.Namespace) -> None:
    """Write the corpus folder and its report."""
    settings = _settings(arguments)
    from tasks.corpora.division import divide
    from tasks.corpora.sources.open_source import open_source
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    # A folder of files is searched through; of a published corpus the files of known names are read.
    of_files = settings.kind == "files"
    refuse_shared_paths([("source", settings.source)], [("--output", arguments.output)], files=FILES, inside=of_files)
    name = arguments.section or str(settings.source)
    source = open_source(settings)
    folder = make_folder(arguments.output, private=arguments.private)
    if arguments.private:
        os.chmod(folder, PRIVATE_FOLDER_MODE)
    with recorded_stage(
        "corpora",
        arguments.report,
        cell={"dataset": arguments.section.removeprefix("corpora.")} if arguments.section else None,
        parameters=as_plain(settings),
        seed=settings.cleaning.seed,
        inputs=[settings.source],
        outputs=[arguments.output],
    ) as report:
        tally = divide(source, settings.cleaning, folder, private=arguments.private, name=name)
        report.measure(
            texts=tally.texts,
            documents=tally.documents,
            sentences=tally.sentences,
            words=tally.words,
            part_documents=tally.part_documents,
            left_out=dict(tally.left_out),
        )
        if all(part.kind in _PACKAGED_KINDS for part in getattr(settings, "of", [settings])):
            report.measure(package_files={Path(path).name: _file_hash(path) for path in source.files})
    sentences = ", ".join(f"{count:,} {part}" for part, count in tally.sentences.items())
    print(
        f"{name}: {sentences} sentences; {sum(tally.left_out.values()):,} of {tally.texts:,} left out", file=sys.stderr
    )


def _file_hash(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
