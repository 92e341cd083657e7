"""Run the experiment: print the plan, run what has to run in parallel, and end with the state of every stage.

The graph is the one in dvc.yaml. Each stage runs through DVC, so nothing is done twice, and stopping or killing a
run loses only the stages that were running. Prefect decides when a stage starts; without PREFECT_API_URL or a Prefect
profile a temporary server is used. 'dvc repro' does the same work one stage at a time.

    palimpsest run                 everything that changed
    palimpsest run --jobs 4        four stages at once
    palimpsest run summarise       one stage, with what it needs
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

from flows.executor import Finish, Outcome, State
from flows.plan import Plan, enumeration
from flows.plan_command import add_stage_option
from tasks.errors import ParameterError

if TYPE_CHECKING:
    from dvc.repo import Repo

SUMMARY = "run the experiment: what changed, in parallel"

SUMMARY_TABLE = Path("results/summary.md")
REPORT_PAGE = Path("results/report.html")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_stage_option(parser)
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="stages at once (default: resources.parallel_stages of params.yaml)",
    )
    parser.add_argument("--json", action="store_true", help="print the states as JSON instead of text")
    parser.add_argument("--verbose", action="store_true", help="also show Prefect's own log lines")


def run(arguments: argparse.Namespace) -> int:
    """Run the stages; 0 where all are done, 1 where one failed, 128 and the signal's number where it was stopped."""
    from flows.graph import open_repository, project_folder
    from flows.run_lock import RunLock
    from flows.run_progress import Bar, Lines
    from flows.time_left import TimeLeft, load_durations
    from tasks.params import DEFAULT_PATH, read_parameters

    started = time.monotonic()
    root = project_folder()
    parameters = read_parameters(root / DEFAULT_PATH)
    jobs = parameters.resources.parallel_stages if arguments.jobs is None else arguments.jobs
    if jobs < 1:
        raise ParameterError(f"--jobs: {jobs!r} is not allowed; give 1 or more stages at once")
    with chdir(root), RunLock(root) as lock:
        with open_repository(root) as repository:
            plan = _plan_after_repair(repository, arguments.stages)
        if not arguments.json:
            print("\n".join(short_plan(plan)), flush=True)
        time_left = None
        if plan.nothing_to_do:
            outcomes = {name: Outcome(name, State.UNCHANGED) for name in plan.stages}
            finish = Finish(outcomes)
        else:
            from flows.driver import drive

            time_left = TimeLeft(plan.graph, jobs, load_durations(root))
            total = len(plan.stages)
            progress: Bar | Lines = Bar(total, time_left) if sys.stderr.isatty() else Lines(total)
            with progress:
                finish = drive(
                    root,
                    plan,
                    parallel_stages=jobs,
                    observer=progress,
                    inherited=[lock.handle],
                    verbose=arguments.verbose,
                )
        if arguments.json:
            print(json.dumps(as_json(finish.outcomes, time.monotonic() - started), indent=2, ensure_ascii=False))
        else:
            print("\n".join(final_lines(finish.outcomes, time.monotonic() - started)))
            print("\n".join(result_lines(plan, finish.outcomes)))
        if time_left is not None:
            for outcome in finish.outcomes.values():
                time_left.end(outcome)
            time_left.save(root)
    if finish.warning is not None:
        print(f"palimpsest: warning: {finish.warning}", file=sys.stderr)
    if finish.signal is not None:
        print("palimpsest: stopped; finished stages are kept, run it again to go on", file=sys.stderr)
        status = 128 + finish.signal
    else:
        status = int(any(outcome.state is State.FAILED for outcome in finish.outcomes.values()))
    if finish.abandoned:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _plan_after_repair(repository: "Repo", patterns: Sequence[str]) -> Plan:
    """The plan, after what killed processes left behind has been put right."""
    from dvc.exceptions import DvcException

    from flows.abandoned_state import release_dead_locks, set_torn_record_aside
    from flows.plan import make_plan

    done = release_dead_locks(repository)
    try:
        plan = make_plan(repository, patterns)
    except DvcException:
        aside = set_torn_record_aside(repository)
        if not aside:
            raise
        done += aside
        plan = make_plan(repository, patterns)
    for sentence in done:
        print(f"palimpsest: {sentence}", file=sys.stderr)
    return plan


def short_plan(plan: Plan, shown: int = 12) -> list[str]:
    """The counts, and each reason with the stages that have it."""
    causes = [f"  {text}: {enumeration(names)}" for text, names in plan.causes()]
    if len(causes) > shown:
        causes = [*causes[:shown], f"  and {len(causes) - shown} more reasons; 'palimpsest plan' has all"]
    return [plan.summary(), *causes]


def final_lines(outcomes: dict[str, Outcome], seconds: float) -> list[str]:
    """The state of every stage: one line each where something was done or went wrong, and the counts."""
    from flows.run_progress import clock

    shown = [outcome for outcome in outcomes.values() if outcome.state is not State.UNCHANGED]
    width = max((len(outcome.name) for outcome in shown), default=0)
    lines = [""] if shown else []
    for outcome in shown:
        took = clock(outcome.seconds) if outcome.log else ""
        lines.append(f"{outcome.state:<9}  {outcome.name:<{width}}  {took:>7}  {outcome.error or ''}".rstrip())
        if outcome.state is State.FAILED and outcome.log:
            lines.append(f"{'':<9}  output: {outcome.log}")
    counts = ", ".join(f"{count} {state}" for state, count in count_states(outcomes).items() if count)
    return [*lines, "", f"{counts}; {clock(seconds)}"]


def count_states(outcomes: dict[str, Outcome]) -> dict[State, int]:
    """How many stages ended in each state; every state is there."""
    states = [outcome.state for outcome in outcomes.values()]
    return {state: states.count(state) for state in State}


def as_json(outcomes: dict[str, Outcome], seconds: float) -> dict[str, object]:
    """States, counts and wall time for ``--json``."""
    return {
        "stages": [outcome.as_dict() for outcome in outcomes.values()],
        "counts": {state.value: count for state, count in count_states(outcomes).items()},
        "seconds": round(seconds, 3),
    }


def result_lines(plan: Plan, outcomes: dict[str, Outcome]) -> list[str]:
    """The table of results and the path of the report page, where the stages that make them are done.

    A file that is there although its stage did not get that far belongs to an earlier run, and is not shown as new.
    """
    from tasks.reports.summary_document import main_tables

    lines = []
    for path in (SUMMARY_TABLE, REPORT_PAGE):
        makers = [node.name for node in plan.graph.nodes.values() if str(path) in node.outputs]
        if not makers or not path.exists():
            continue
        if any(outcomes[name].state in (State.FAILED, State.SKIPPED) for name in makers):
            lines += ["", f"{path} is of an earlier run"]
        elif path == SUMMARY_TABLE:
            lines += ["", *main_tables(path.read_text(encoding="utf-8").strip()), "", f"more tables: {path}"]
        else:
            lines += ["", f"report page: {path.absolute()}"]
    return lines
