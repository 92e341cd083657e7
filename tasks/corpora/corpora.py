"""Read a text, clean it, remove duplicates, and divide it into training, validation and test text.

The setting source names the text. The output folder gets train.txt, valid.txt and test.txt, in
UTF-8 with one sentence a line. Case and punctuation stay. White space and control characters are
normalised.

No sentence of valid.txt or test.txt is in train.txt. No document is divided between the three. A
document is a conversation, an article, or the texts with the same value of document_field.

With --private, the folder gets two more files, with one entry for each line of train.txt:

  train.documents   number of its document
  train.labels      its label, if label_field names one

The report counts the texts that are left out, by reason.

Examples:
  palimpsest corpora --set source=mail.jsonl --set text_field=body --set document_field=thread --private --output mail
  palimpsest corpora --set kind=wikitext --set source=wikitext-103-v1.zip --output data/generic
  palimpsest corpora --params params.yaml --name corpora.chat --private --output data/private/corpora/chat
"""

import os
import sys
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.mixture import AnyCorpus
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder
from tasks.options import Role
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "clean a text, remove duplicates, divide it into train, valid and test"


class CorporaFiles(StageFiles):
    """Output folder of a corpus; its source is a setting."""

    output: Annotated[str, Role(writes=True, files=("train.txt", "valid.txt", "test.txt", "train.documents"))]
    """folder for train.txt, valid.txt and test.txt"""
    private: bool = False
    """only you can read the output (modes 0700 and 0600)"""


def corpora(settings: CorpusSettings, files: CorporaFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the corpus folder.

    Raises ``CorpusError`` if the source is missing, is not of its kind, or has too few sentences.
    """
    from tasks.corpora.division import divide

    source = settings.open()
    folder = make_folder(files.output, private=files.private)
    if files.private:
        os.chmod(folder, PRIVATE_FOLDER_MODE)
    name = cell.dataset or str(settings.source)
    tally = divide(source, settings.cleaning, folder, private=files.private, name=name)
    report = Report(seed=settings.cleaning.seed, warnings=tally.warnings).measure(
        texts=tally.texts,
        documents=tally.documents,
        sentences=tally.sentences,
        words=tally.words,
        left_out=dict(tally.left_out),
    )
    sentences = ", ".join(f"{count:,} {part}" for part, count in tally.sentences.items())
    print(
        f"{name}: {sentences} sentences; {sum(tally.left_out.values()):,} of {tally.texts:,} left out", file=sys.stderr
    )
    return report


COMMAND = StageCommand(
    name="corpora",
    stage=corpora,
    settings=AnyCorpus,
    files=CorporaFiles,
    section="{name}",
    cell_of=lambda files, section, cell: Cell(dataset=section.removeprefix("corpora.")) if section else cell,
    named_settings=lambda section: {"kind": "files"},
    files_of_settings=lambda settings: [settings.source],
)
