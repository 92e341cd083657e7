"""Finding and removing a clone's data of one corpus.

The data is found again each time from the graph, so that an interrupted removal can continue. Records are removed last:
objects of the cache go before the records that name them.
"""

import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flows.checkout.run_lock import STATE_FOLDER
from flows.erasure.dvc_records import (
    CorpusPaths,
    Record,
    data_records,
    experiments,
    git_records,
    hashes_of,
    lock_records,
    remove_reference,
    run_records,
)
from flows.graph.graph import Graph
from flows.graph.private_sources import named_sources
from flows.runs.run_progress import FILE as DURATIONS
from tasks.files.clone_key import private_home
from tasks.privacy.applied_text import APPLIED, REPORT
from tasks.privacy.ledger import of_corpus, read_ledger
from tasks.results.origin.lock_entries import LOCK_FILE, read_lock, stages_of
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import is_missing_file, locked_store, tracking_uri

if TYPE_CHECKING:
    from dvc.repo import Repo


@dataclass
class Erasure:
    """All traces of a corpus in one clone."""

    name: str
    root: Path
    files: list[Path] = field(default_factory=list)
    """Files and folders of the checkout and of the clone's private home."""
    sources: list[Path] = field(default_factory=list)
    """Raw text; it stays unless ``with_sources``."""
    objects: list[Path] = field(default_factory=list)
    """Files of DVC's cache that no other corpus refers to."""
    runs: list[Path] = field(default_factory=list)
    """Entries of DVC's cache of runs."""
    stages: list[str] = field(default_factory=list)
    """Entries of ``dvc.lock``."""
    experiments: list[str] = field(default_factory=list)
    """Git references of DVC's experiments."""
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    tracked_runs: list[str] = field(default_factory=list)
    """Ids of its MLflow runs, if the store is a SQLite file."""
    tracked_models: list[str] = field(default_factory=list)
    """Names of registered models that have a version of these runs."""
    hashes: Path = Path()
    """DVC's cache of hashes by path, which it recreates; to be removed when DVC is closed."""
    releases: list[str] = field(default_factory=list)
    """Releases in the ledger, which have left the clone."""

    @property
    def experiment_names(self) -> list[str]:
        """Their names; DVC's own references to the latest one have none."""
        return [one.rpartition("/")[2] for one in self.experiments if not one.startswith("refs/exps/exec/")]

    def __bool__(self) -> bool:
        return bool(self.files or self.sources or self.runs or self.stages or self.tracked_runs)

    def carry_out(self, *, with_sources: bool) -> None:
        """Remove everything. Call it only with the lock of runs and DVC's, and with nothing else open."""
        for source in self.sources:
            if not with_sources:
                _make_a_file_of_its_own(source)
        for file in self.objects:
            _remove(file)
        for file in self.runs:
            _remove(file)
            with suppress(OSError):
                file.parent.rmdir()
        for reference in self.experiments:
            remove_reference(self.root, reference)
        if self.stages:
            from dvc.utils.serialize import modify_yaml

            with modify_yaml(str(self.root / LOCK_FILE)) as lock:
                for stage in self.stages:
                    del lock["stages"][stage]
        for path in (*self.files, *(self.sources if with_sources else ())):
            _remove(path)
        if self.tracked_runs:
            with locked_store(self.tracking) as store:
                for model in self.tracked_models:
                    store.client.delete_registered_model(model)
                for run in self.tracked_runs:
                    store.client.delete_run(run)

    def forget_hashes(self) -> None:
        """Remove DVC's cache of hashes, which would confirm a guess of a text."""
        shutil.rmtree(self.hashes, ignore_errors=True)


def find_erasure(name: str, repository: "Repo", graph: Graph, tracking: TrackingSettings) -> Erasure:
    """All data of a corpus. Call it only with DVC's lock."""
    root = Path(repository.root_dir)
    locked = lock_records(read_lock(root))
    nodes = [Record(node.dependencies, dict.fromkeys(node.outputs)) for node in graph.values()]
    paths = CorpusPaths(name)
    releases = [release.name for release in of_corpus(read_ledger(), name)]
    paths.add(f"releases/{release}" for release in releases)
    # The page of 'dvc plots show' is about all corpora.
    paths.add(["dvc_plots"])
    paths.add_what_is_made([*nodes, *locked.values()])
    sources = _sources(name, root, paths)
    objects = Path(repository.cache.local.path)
    data, runs = list(data_records(root)), list(run_records(objects.parents[1]))
    raw = [root / source for source in sources if (root / source).exists()]
    erasure = Erasure(name, root, sources=raw, releases=releases)
    found = [
        *paths.files(root),
        *(file for file, record in data if _of_data(record, paths, sources)),
        *_state_of_runs(root, name),
        *(path for one in releases for path in (private_home() / "releases").glob(one)),
        *_lineage_of(name, paths),
    ]
    erasure.files = list(dict.fromkeys(found))
    erasure.runs = [file for file, record in runs if paths.touches(record)]
    erasure.stages = [stage for stage, record in locked.items() if paths.touches(record)]
    held = list(experiments(root))
    erasure.experiments = [reference for reference, stages in held if any(map(paths.touches, stages.values()))]
    erasure.tracking, uri = tracking, tracking_uri(tracking)
    if uri.startswith("sqlite:") and not is_missing_file(uri):
        with locked_store(tracking) as store:
            erasure.tracked_runs = [str(run.info.run_id) for run in store.runs(f"tags.dataset = '{name}'")]
            versions = store.client.search_model_versions()
        erasure.tracked_models = sorted({str(one.name) for one in versions if one.run_id in erasure.tracked_runs})

    def is_gone(record: Record) -> bool:
        return paths.touches(record) if record.inputs else _of_data(record, paths, sources)

    records = [
        *locked.values(),
        *(record for _, record in runs),
        *(record for _, record in data),
        *git_records(root),
    ]
    gone = hashes_of((record for record in records if is_gone(record)), objects)
    kept = hashes_of((record for record in records if not is_gone(record)), objects)
    # In a cache of this clone alone, an object without a record is the remainder of some work.
    is_ours = objects.resolve().is_relative_to(root.resolve())
    cached = {file: file.parent.name + file.name for file in sorted(objects.glob("??/*"))}
    erasure.objects = [file for file, digest in cached.items() if digest not in kept and (is_ours or digest in gone)]
    erasure.hashes = Path(repository.site_cache_dir)
    return erasure


def size_of(paths: Iterable[Path]) -> int:
    """The bytes of files, and of all files in folders."""
    found = [one for path in paths for one in (path, *path.rglob("*")) if one.is_file() and not one.is_symlink()]
    return sum(one.stat().st_size for one in found)


def _sources(name: str, root: Path, paths: CorpusPaths) -> list[str]:
    """Sources of this corpus only that no stage makes and git does not track."""
    named = named_sources(root)
    others = {source for keys, source in named if name not in keys}
    own = {source for keys, source in named if name in keys and source not in others and not paths.holds(source)}
    return sorted(source for source in own if not Path(source).is_absolute() and ".." not in Path(source).parts)


def _of_data(record: Record, paths: CorpusPaths, sources: Collection[str]) -> bool:
    """Whether added data belongs to the corpus: its raw text, now or earlier, or a release of it."""
    return bool(record.outputs) and all(path in sources or paths.holds(path) for path in record.outputs)


def _state_of_runs(root: Path, name: str) -> Iterator[Path]:
    """Logs and durations of its stages, texts that a cell was applied to, and unfinished work."""
    state, applied = root / STATE_FOLDER, root / APPLIED
    of_corpus = re.compile(rf"[@.-]{re.escape(name)}[.-]")
    yield from (file for file in (state / "logs").glob("*@*") if of_corpus.search(file.name))
    durations = root / DURATIONS
    if durations.exists() and of_corpus.search(durations.read_text(encoding="utf-8").replace('"', ".")):
        yield durations
    # Names of unfinished work do not say its corpus. It can be made again.
    yield from (path for kind in ("fills", "audits", "applied", "checkpoints") for path in (state / kind).glob("*"))
    yield from applied.rglob(".*.partial")
    yield from (one.parent for one in applied.rglob(REPORT) if f'"cell": "{name}/' in one.read_text(encoding="utf-8"))


def _lineage_of(name: str, paths: CorpusPaths) -> Iterator[Path]:
    """Stored states of numbers: entries of the lock with files of the corpus, and uncommitted changes that name
    the corpus."""
    kept = private_home() / "lineage"
    for file in sorted(kept.glob("*.json")):
        if any(map(paths.touches, lock_records(stages_of(file.read_text(encoding="utf-8"))).values())):
            yield file
    for file in sorted(kept.glob("*.patch")):
        if re.search(rf"\b{re.escape(name)}\b", file.read_text(encoding="utf-8", errors="replace")):
            yield file


def _make_a_file_of_its_own(path: Path) -> None:
    """Replace a link to DVC's cache by a copy: raw text that is a link would be removed with the cache."""
    for one in (path, *path.rglob("*")):
        if one.is_symlink() and one.is_file():
            copy = one.with_name(f".{one.name}.partial")
            shutil.copyfile(one.resolve(), copy)
            copy.chmod(0o600)
            copy.replace(one)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
