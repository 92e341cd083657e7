"""What an experiment needs before any of its stages starts: the checks that ``doctor``, ``plan`` and ``run`` share."""

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
"""Text of more bytes is taken to be enough for its parts: to know takes reading all of it."""


def data_checks(parameters: Parameters, root: Path) -> list[Check]:
    """One check for the generic text, each private corpus that is compared, each set of labelled text, and each part of
    recordings and of n-best lists."""
    corpora = {"generic": parameters.generic}
    corpora |= {f"corpora.{name}": parameters.corpora[name] for name in parameters.compare.datasets}
    found = [Check(name, partial(_corpus, name, settings, root), settings.source) for name, settings in corpora.items()]
    files = [
        (f"masking_evaluation.gold_sets.{name}", parameters.masking_evaluation.gold_sets[name].source)
        for name in parameters.compare.gold_sets
    ]
    files += [
        (f"labelled_text.learn_from.{number}", one.source)
        for number, one in enumerate(parameters.labelled_text.learn_from)
    ]
    for section, brought, datasets in (
        ("speech.corpora", parameters.speech.corpora, parameters.compare.speech_datasets),
        ("speech.nbest", parameters.speech.nbest, parameters.compare.rescored_datasets),
    ):
        for name in datasets:
            for part in ("dev", "test"):
                files.append((f"{section}.{name}.{part}", getattr(brought[name], part).source))
    return [*found, *(Check(key, partial(_file, key, source, root), source) for key, source in files)]


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
    """The finding of private text that is there, and that DVC may be about to send away."""
    sent = sent_by_push(source, root)
    if sent is None:
        # Only what lies in data/raw can be added; what a stage makes or git has needs not be.
        if Path(source).is_relative_to("data/raw") and not is_tracked(source, root):
            remedy = f"'palimpsest add {source}' keeps this version, for 'palimpsest restore'"
            return Finding("data", name, "there", f"{what}, not added", remedy)
        return Finding("data", name, "there", what)
    detail = f"{sent}.dvc lacks 'push: false', so that 'dvc push' would send it"
    return Finding("data", name, "missing", detail, f"'palimpsest add {sent}'")


def checks(parameters: Parameters, root: Path) -> list[Check]:
    """Data and models, in the order in which the graph needs them; nothing is looked at yet."""
    return [*data_checks(parameters, root), *model_checks(parameters, root)]
