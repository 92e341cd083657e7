"""Files that a fill reads and writes."""

import os
from typing import TYPE_CHECKING, Annotated

from tasks.command import StageFiles
from tasks.filling.settings import SHIPPED_FILLER, FillingMethod
from tasks.options import READ, READ_MODEL, READ_STREAM, WRITE_STREAM

if TYPE_CHECKING:
    from tasks.filling.opened_filler import OpenedFiller


class GenericFiles(StageFiles):
    """Generic text, which is public, for fills to learn from."""

    generic: Annotated[str | None, READ] = None
    """generic text new to the filler: folder of 'palimpsest corpora' (train.txt for prior=domain or counted, valid.txt
    for log_linear), or only its train.txt"""

    @property
    def generic_text(self) -> str | None:
        """The file for word frequencies."""
        return self._part("train.txt") if self.generic and os.path.isdir(self.generic) else self.generic

    @property
    def tuning_text(self) -> str | None:
        """The file for the filler's mean probabilities."""
        return self._part("valid.txt")

    def _part(self, name: str) -> str | None:
        path = os.path.join(self.generic or "", name)
        return path if self.generic and os.path.isfile(path) else None


class CorpusFiles(GenericFiles):
    """Filler and word counts of the fills of a corpus."""

    filler: Annotated[str | None, READ_MODEL] = None
    """filler, as for 'palimpsest fill'"""
    word_counts: Annotated[str | None, READ] = None
    """as for 'palimpsest fill'"""

    def opened(self, threads: int) -> "OpenedFiller":
        """The filler and the word counts, for several fills."""
        from tasks.filling.opened_filler import OpenedFiller

        return OpenedFiller(self.filler or SHIPPED_FILLER, threads, self.word_counts)


class FillFiles(GenericFiles):
    """Inputs and outputs of filling."""

    input: Annotated[str, READ_STREAM]
    """masked text, one sentence a line"""
    output: Annotated[str, WRITE_STREAM]
    """filled text"""
    filler: Annotated[str | None, READ_MODEL] = None
    """masked or causal language model, for methods that use one: hub name, folder, or package:NAME/FOLDER (default:
    MiniLM with the head that ships)"""
    allowed_words: Annotated[str | None, READ] = None
    """words that the technique never masks, one a line, as 'palimpsest mask' writes them; empty: no list"""
    word_counts: Annotated[str | None, READ] = None
    """word<TAB>count of generic text: frequencies and usual case of words (default, for frequency methods and the
    default filler: list of the package wordfreq)"""
    sidecar: Annotated[str | None, READ] = None
    """record of the masked words by 'palimpsest mask', private; the report then counts fills that are the masked
    word"""
    documents: Annotated[str | None, READ] = None
    """document names, one for each line, such as train.documents, or Parquet with a column document; read with
    consistent_within=document or counts.unit=document only"""

    def read_by(self, method: FillingMethod) -> "FillFiles":
        """The files that the method reads, since a graph gives all methods the same files. If the method uses a filler
        and none is given, the shipped filler is added."""
        read = {"documents": method.reads_documents, "generic": method.reads_tuning_text or method.has_domain_prior}
        given = self.model_copy(update={name: None for name, is_read in read.items() if not is_read})
        return given.model_copy(update={"filler": SHIPPED_FILLER}) if method.uses_filler and not self.filler else given
