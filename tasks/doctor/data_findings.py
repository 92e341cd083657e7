"""Which corpora of an experiment are there, and how to get the others."""

from pathlib import Path
from typing import Any

from tasks.doctor.finding import Finding
from tasks.doctor.size_units import bytes_text
from tasks.errors import CorpusError
from tasks.parameters.parameter_file import Parameters
from tasks.privacy.tracked_sources import sent_by_push

_HOW_TO_GET = {
    "wikitext": "get wikitext-103-v1.zip (or wikitext-103-raw-v1.zip) of Merity et al. 2016, CC BY-SA",
    "fisher": "order LDC2004T19 and LDC2005T19 at catalog.ldc.upenn.edu (needs a licence)",
    "pushshift": "get one dump of Pushshift's Reddit comments, such as RC_2019-01.zst, from Academic Torrents",
    "wsj": "order CSR-I (WSJ0) LDC93S6A and CSR-II (WSJ1) LDC94S13A at catalog.ldc.upenn.edu (needs a licence)",
    "chitchat": "run 'make install'",
    "encyclopedia": "run 'make install'",
    "drawn_words": "run 'make install'",
    "files": "put your own text there",
}
_MADE_BY_THE_GRAPH = "data/labelled/"


def data_findings(parameters: Parameters, root: Path) -> list[Finding]:
    """One finding for the generic text, each private corpus that is compared, each set of labelled text, and each part
    of n-best lists."""
    corpora = {"generic": parameters.generic}
    corpora |= {f"corpora.{name}": parameters.corpora[name] for name in parameters.compare.datasets}
    findings = [_corpus(name, settings, root) for name, settings in corpora.items()]
    for name in parameters.compare.gold_sets:
        source = parameters.masking_evaluation.gold_sets[name].source
        key = f"masking_evaluation.gold_sets.{name}"
        if source.startswith(_MADE_BY_THE_GRAPH):
            findings.append(Finding("data", key, "made later", f"{source}: a stage of the graph writes it"))
        elif (root / source).exists():
            findings.append(_there(key, source, source, root))
        else:
            remedy = f"put labelled text (JSON lines) at {source}, or take {name!r} out of compare.gold_sets"
            findings.append(Finding("data", key, "missing", f"{source} does not exist", remedy))
    for name in parameters.compare.rescored_datasets:
        lists = parameters.speech.nbest[name]
        for part, source in (("dev", lists.dev.source), ("test", lists.test.source)):
            key = f"speech.nbest.{name}.{part}"
            if (root / source).exists():
                findings.append(_there(key, source, source, root))
            else:
                remedy = f"put n-best lists (JSON lines) at {source}, then 'palimpsest add {source}'"
                findings.append(Finding("data", key, "missing", f"{source} does not exist", remedy))
    return findings


def _corpus(name: str, settings: Any, root: Path) -> Finding:
    place = root / settings.source
    try:
        source = settings.model_copy(update={"source": str(place)}).open()
    except CorpusError as error:
        what = str(error).replace(str(place), settings.source) if place.exists() else f"{settings.source} is not there"
        remedy = f"{_HOW_TO_GET[settings.kind]}; put it at {settings.source}, then 'palimpsest add {settings.source}'"
        if settings.kind in ("chitchat", "encyclopedia", "drawn_words"):
            remedy = _HOW_TO_GET[settings.kind]
        return Finding("data", name, "missing", what, remedy)
    size = sum(Path(file).stat().st_size for file in source.files)
    files = f"{len(source.files):,} file{'s' if len(source.files) != 1 else ''}"
    what = f"{settings.kind}: {files}, {bytes_text(size)}"
    return Finding("data", name, "there", what) if name == "generic" else _there(name, settings.source, what, root)


def _there(name: str, source: str, what: str, root: Path) -> Finding:
    """The finding of private text that is there, and that DVC may be about to send away."""
    sent = sent_by_push(source, root)
    if sent is None:
        return Finding("data", name, "there", what)
    detail = f"{sent}.dvc lacks 'push: false', so that 'dvc push' would send it"
    return Finding("data", name, "missing", detail, f"'palimpsest add {sent}'")
