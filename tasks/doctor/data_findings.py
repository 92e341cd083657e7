"""Requirements of an experiment before its first stage: the checks that ``doctor``, ``plan`` and ``run`` share."""

from functools import partial
from pathlib import Path

from tasks.corpora.division import check_divisible
from tasks.corpora.settings import CorpusSettings
from tasks.doctor.finding import Check, Finding, bytes_text
from tasks.doctor.model_findings import model_checks
from tasks.errors import CorpusError
from tasks.parameters.parameter_file import Parameters
from tasks.privacy.tracked_sources import is_tracked, sent_by_push

_MADE_BY_THE_GRAPH = ("data/labelled/", "data/private/")
_SURVEYED_BYTES = 20_000_000
"""Bytes from which a text counts as enough for its parts: to know would take reading all of it."""


def checks(parameters: Parameters, root: Path) -> list[Check]:
    """One check for each text, each part of speech and each compared model; no check is run yet."""
    compare, speech = parameters.compare, parameters.speech
    corpora = {"generic": parameters.generic}
    corpora |= {f"corpora.{name}": parameters.corpora[name] for name in compare.datasets}
    found = [Check(name, partial(_corpus, name, settings, root), settings.source) for name, settings in corpora.items()]
    gold_sets = parameters.masking_evaluation.gold_sets
    files = [(f"masking_evaluation.gold_sets.{name}", gold_sets[name].source) for name in compare.gold_sets]
    files += [
        (f"labelled_text.learn_from.{i}", one.source) for i, one in enumerate(parameters.labelled_text.learn_from)
    ]
    for names, key, section in (
        (compare.speech_datasets, "speech.corpora", speech.corpora),
        (compare.rescored_datasets, "speech.nbest", speech.nbest),
    ):
        files += [(f"{key}.{n}.{part}", getattr(section[n], part).source) for n in names for part in ("dev", "test")]
    found += [Check(key, partial(_file, key, source, root), source) for key, source in files]
    return [*found, *model_checks(parameters, root)]


def _file(key: str, source: str, root: Path) -> Finding:
    if source.startswith(_MADE_BY_THE_GRAPH):
        return Finding("data", key, "made later", f"{source}: a stage of the graph writes it")
    if (root / source).exists():
        return _there(key, source, source, root)
    return Finding("data", key, "missing", f"{source} is not there", f"put it there, then 'palimpsest add {source}'")


def _corpus(name: str, settings: CorpusSettings, root: Path) -> Finding:
    place = root / settings.source
    try:
        source = settings.model_copy(update={"source": str(place)}).open()
    except CorpusError as error:
        what = str(error).replace(str(place), settings.source) if place.exists() else f"{settings.source} is not there"
        remedy = f"{settings.how_to_get}; put it at {settings.source}, then 'palimpsest add {settings.source}'"
        if settings.in_package:
            remedy = "run 'make install'"
        return Finding("data", name, "missing", what, remedy)
    size = sum(Path(file).stat().st_size for file in source.files)
    files = f"{len(source.files):,} file{'s' if len(source.files) != 1 else ''}"
    what = f"{settings.kind}: {files}, {bytes_text(size)}"
    finding = Finding("data", name, "there", what) if name == "generic" else _there(name, settings.source, what, root)
    if finding.state == "there" and size <= _SURVEYED_BYTES:
        try:
            check_divisible(source, settings.cleaning, settings.source)
        except CorpusError as error:
            return Finding("data", name, "missing", str(error))
    return finding


def _there(name: str, source: str, what: str, root: Path) -> Finding:
    """The finding of existing private text, which DVC may be about to push."""
    sent = sent_by_push(source, root)
    if sent is None:
        # Only text in data/raw can be added; outputs of stages and files in git need not be.
        if Path(source).is_relative_to("data/raw") and not is_tracked(source, root):
            remedy = f"'palimpsest add {source}' keeps this version, for 'palimpsest restore'"
            return Finding("data", name, "there", f"{what}, not added", remedy)
        return Finding("data", name, "there", what)
    detail = f"{sent}.dvc lacks 'push: false', so that 'dvc push' would send it"
    return Finding("data", name, "missing", detail, f"'palimpsest add {sent}'")
