"""Remove the data of one corpus from this clone, and list the places that this does not reach.

Without --yes, the command only lists the data, with sizes. With --yes, it removes:

- outputs that dvc.yaml makes of the corpus, also in earlier comparisons.
- tables and pages of all corpora. The next run makes them without this corpus.
- copies in DVC's cache that no other corpus has.
- entries of the corpus in dvc.lock and in DVC's cache of runs.
- DVC experiments that contain the corpus.
- its MLflow runs and registered models; 'mlflow gc' then removes their rows and files.
- its logs, unfinished work, reviews, noisy counts and releases.
- stored states for 'palimpsest restore': entries of dvc.lock and uncommitted changes.

The raw text remains, and DVC no longer tracks it. --source removes it too. The key and the ledger
remain, since a release cannot be recalled.

examples:
    palimpsest forget mail         say what would be removed
    palimpsest forget mail --yes   remove it
"""

import shlex
from collections.abc import Iterator
from contextlib import chdir
from typing import TYPE_CHECKING

from tasks.errors import ParameterError

if TYPE_CHECKING:
    from flows.erasure.erasure import Erasure

from typing import Annotated

from tasks.options import Argument, Command, Options

SUMMARY = "remove the data of one corpus from this clone, and list the places out of reach"


class ForgetOptions(Options):
    """Options of the command: the corpus, and the extent of the removal."""

    corpus: Annotated[str, Argument(positional=True)]
    """name of the corpus under corpora in params.yaml, now or earlier"""
    yes: bool = False
    """remove the data; without it, only list them"""
    source: bool = False
    """remove the raw text too"""


def run(options: ForgetOptions) -> int:
    """List, remove on request, and print the remaining places."""
    from dvc.repo import lock_repo

    from flows.checkout.run_lock import run_lock
    from flows.erasure.erasure import find_erasure
    from flows.graph.graph import open_repository, project_folder, read_graph
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters
    from tasks.spelling import nearest

    root = project_folder()
    name = options.corpus
    with chdir(root), run_lock(root):
        parameters = read_parameters(root / DEFAULT_PATH)
        if not name.replace("_", "").isalnum():
            raise ParameterError(f"{name!r} is no name of a corpus: one has letters, digits and underscores only")
        with open_repository(root) as repository:
            graph = read_graph(repository)
            with lock_repo(repository):
                erasure = find_erasure(name, repository, graph, parameters.tracking)
                if not erasure:
                    known = parameters.corpora
                    raise ParameterError(f"this clone has nothing of a corpus {name!r}{nearest(name, known)}")
                print("\n".join(found_lines(erasure, with_sources=options.source)))
                if options.yes:
                    erasure.carry_out(with_sources=options.source)
        if options.yes:
            erasure.forget_hashes()
    print()
    if options.yes:
        print("Removed.", end=" ")
    else:
        print("Nothing was removed: this is what --yes removes.", end=" ")
    if name in parameters.corpora:
        print(f"Take {name!r} out of corpora and compare in params.yaml, or the next run makes it all again.", end="")
    print("\n" + "\n".join(beyond_lines(erasure, with_sources=options.source)))
    return 0


def found_lines(erasure: "Erasure", *, with_sources: bool) -> Iterator[str]:
    """Lines on the data to remove, with sizes."""
    from flows.erasure.erasure import size_of
    from tasks.doctor.finding import bytes_text

    for path in (*erasure.files, *(erasure.sources if with_sources else ())):
        shown = path.relative_to(erasure.root) if path.is_relative_to(erasure.root) else path
        yield f"{bytes_text(size_of([path])):>10}  {shown}"
    yield f"{bytes_text(size_of(erasure.objects)):>10}  DVC's cache: {len(erasure.objects)} files"
    yield f"{bytes_text(size_of(erasure.runs)):>10}  DVC's cache of runs: {len(erasure.runs)} entries"
    yield f"{'':>10}  dvc.lock: {len(erasure.stages)} stages"
    if erasure.experiments:
        yield f"{'':>10}  DVC experiments: {', '.join(erasure.experiment_names)}"
    if erasure.tracked_runs:
        models = "".join(f", registered model {model}" for model in erasure.tracked_models)
        yield f"{'':>10}  MLflow: {len(erasure.tracked_runs)} runs{models}"


def beyond_lines(erasure: "Erasure", *, with_sources: bool) -> Iterator[str]:
    """Lines on the remaining data, here and elsewhere."""
    from tasks.privacy.applied_text import APPLIED
    from tasks.results.tracking.tracking_store import shown_uri, tracking_uri

    uri = tracking_uri(erasure.tracking)
    yield "What this does not reach:"
    if erasure.sources and not with_sources:
        names = ", ".join(str(path.relative_to(erasure.root)) for path in erasure.sources)
        yield f"  the raw text, which stays: {names} (--source removes it)"
    if erasure.releases:
        yield f"  what was released, by the ledger, which stays: {', '.join(erasure.releases)}"
    yield "  git's history: hashes in dvc.lock and .dvc files; commits of experiments until 'git gc --prune=now'"
    yield "  DVC remotes, other clones and worktrees of this project, and backups"
    yield "  Prefect's records: names of stages, times, error lines"
    if not uri.startswith("sqlite:"):
        yield f"  the tracking server {shown_uri(uri)}"
    elif erasure.tracked_runs:
        store = shlex.quote(uri)
        yield "  rows and files of deleted MLflow runs, until you run"
        yield f"    mlflow gc --backend-store-uri {store} --tracking-uri {store}"
    yield "  what others made of it: taggers that learned from it (labelled_text.learn_from), copies by hand"
    yield "  recordings that a manifest or wav.scp names: remove their folder, and its .dvc file"
    yield "  pages of 'palimpsest preview' and 'palimpsest try', exports of 'palimpsest review', where you wrote them"
    yield f"  what 'palimpsest apply' wrote outside {APPLIED}"
    yield "  blocks of the disk that are free now, and snapshots of the file system"


COMMAND = Command(ForgetOptions, run)
