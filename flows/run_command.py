"""Run the stages of the experiment that changed, several at once.

The command prints the plan, runs the stages, and ends with the state of every stage. The graph is
in dvc.yaml. Each stage runs through DVC, so nothing is done twice. If a run is stopped or killed,
only the stages that were running are lost. 'dvc repro' does the same work, one stage at a time.

Prefect decides when a stage starts. PREFECT_API_URL, a Prefect profile or 'palimpsest up' sets its
server. Without them, the run starts a temporary server.

examples:
    palimpsest run                 everything that changed
    palimpsest run --jobs 4        four stages at once
    palimpsest run summarise       one stage, with what it needs
    palimpsest run --only technique=entity_tagger --only method=top_k
                                   a part of the experiment, with what it needs
    palimpsest run --set filling.top_k.k=20
                                   another value for this run, recorded as a DVC experiment
"""

import json
import os
import signal
import sys
import time
from contextlib import chdir, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from flows.graph.plan import Plan, enumeration
from flows.plan_command import SelectionOptions
from flows.runs.run_progress import REPORT_PAGE, SUMMARY_TABLE, VERDICT, is_of_this_run, makers_of
from flows.stages.executor import INTERRUPTED, UNFINISHED, Finish, Outcome, State

if TYPE_CHECKING:
    from tasks.settings.resources import ResourceSettings

from typing import Annotated

from pydantic import Field

from tasks.options import Argument, Command

SUMMARY = "run the stages of the experiment that changed, several at once"


class RunOptions(SelectionOptions):
    """What is run, and how."""

    jobs: Annotated[int | None, Field(ge=1)] = None
    """number of stages at once (default: resources.parallel_stages of params.yaml)"""
    set_: Annotated[list[str], Argument(again=True, metavar="KEY.PATH=VALUE")] = Field(default_factory=list)
    """a value of params.yaml for this run only, as YAML. The run is recorded as a DVC experiment, and params.yaml is
    restored afterwards"""
    json_: bool = False
    """print the states as JSON instead of text"""


def run(options: RunOptions) -> int:
    """Run the stages; 0 where all are done, 1 where one failed, 128 and the signal's number where it was stopped."""
    from flows.checkout.overrides import checked_resources, known_to_be_valid, overridden, remember_as_valid
    from flows.checkout.run_lock import RunLock
    from flows.graph.graph import open_repository, project_folder
    from flows.prefect_flow.abandoned_flow_run import abandoned_flow_runs
    from flows.runs.preparation import plan_after_repair
    from flows.runs.recorded_experiment import check_recordable, record_experiment
    from flows.runs.run_progress import Bar, Lines, TimeLeft, load_durations
    from tasks.settings.overrides import parse_overrides

    started = time.monotonic()
    selection = options.selection
    overrides = parse_overrides(options.set_)
    root = project_folder()
    if not known_to_be_valid(root):
        _resources(root)
    if overrides:
        check_recordable(root)
    with chdir(root), RunLock(root) as lock, overridden(root, overrides):
        resources = None if known_to_be_valid(root) else checked_resources(root)
        with open_repository(root) as repository:
            plan = plan_after_repair(repository, selection, resources)
        if resources is not None:
            remember_as_valid(root)
        if not options.json_:
            print("\n".join(short_plan(plan)), flush=True)
        time_left = None
        if plan.nothing_to_do:
            outcomes = {name: Outcome(name, State.UNCHANGED) for name in plan.stages}
            finish = Finish(outcomes)
            if abandoned_flow_runs(root):
                from flows.prefect_flow.driver import close_abandoned_records

                finish.warning = close_abandoned_records(root)
        else:
            from flows.prefect_flow.driver import drive
            from flows.runs.preparation import refuse_missing

            refuse_missing(plan, root)
            resources = resources or _resources(root)
            jobs = options.jobs or resources.parallel_stages
            time_left = TimeLeft(plan.graph, jobs, load_durations(root))
            total = len(plan.stages)
            progress: Bar | Lines = Bar(total, time_left) if sys.stderr.isatty() else Lines(total)
            asked = {"stages": options.stages, "only": options.only, "overrides": options.set_}
            # Ray prints what it hears of its machines to standard output, which is for the JSON alone.
            with progress, redirect_stdout(sys.stderr) if options.json_ else nullcontext():
                finish = drive(
                    root,
                    plan,
                    resources=resources,
                    parallel_stages=jobs,
                    observer=progress,
                    parameters={**{name: value for name, value in asked.items() if value}, "jobs": jobs},
                    inherited=[lock.handle],
                )
        recorded = record_experiment(root, overrides, finish.outcomes, plan) if overrides else None
        if options.json_:
            print(json.dumps(as_json(finish.outcomes, time.monotonic() - started), indent=2, ensure_ascii=False))
        else:
            print("\n".join(final_lines(finish.outcomes, time.monotonic() - started)))
            print("".join(f"{line}\n" for line in result_lines(plan, finish.outcomes)), end="")
        if recorded is not None:
            said = f"recorded as the DVC experiment {recorded!r}; params.yaml is as before. 'dvc exp apply {recorded}'"
            print(f"palimpsest: {said} brings it back, 'dvc exp show' compares", file=sys.stderr)
        if time_left is not None:
            for outcome in finish.outcomes.values():
                time_left.end(outcome)
            time_left.save(root)
    if finish.warning is not None:
        print(f"palimpsest: warning: {finish.warning}", file=sys.stderr)
    failed = count_states(finish.outcomes)[State.FAILED]
    # Last of all, so that it is what one sees.
    if not options.json_:
        print("".join(f"{line}\n" for line in failure_lines(finish.outcomes)), end="", flush=True)
    if finish.signal is not None:
        print("palimpsest: stopped; finished stages are kept, run it again to go on", file=sys.stderr)
        status = 128 + finish.signal
    elif finish.cancelled:
        print("palimpsest: cancelled in Prefect; finished stages are kept, run it again to go on", file=sys.stderr)
        status = 128 + signal.SIGTERM
    elif failed:
        said = f"{failed} of {len(finish.outcomes)} stages failed; put right what is said of them, then run it again"
        print(f"palimpsest: {said}: finished stages are kept", file=sys.stderr)
        status = 1
    else:
        status = 0
    if finish.abandoned:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _resources(root: Path) -> "ResourceSettings":
    """The section ``resources``; ``ParameterError`` where ``params.yaml`` has a mistake anywhere."""
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    return read_parameters(root / DEFAULT_PATH).resources


def short_plan(plan: Plan, shown: int = 12) -> list[str]:
    """The counts, and each reason with the stages that have it."""
    causes = [f"  {text}: {enumeration(names)}" for text, names in plan.causes()]
    if len(causes) > shown:
        causes = [*causes[:shown], f"  and {len(causes) - shown} more reasons; 'palimpsest plan' has all"]
    return [plan.summary(), *causes]


def final_lines(outcomes: dict[str, Outcome], seconds: float) -> list[str]:
    """One line for each stage of which something was made, and the counts of all states."""
    from flows.runs.run_progress import clock

    made = [outcome for outcome in outcomes.values() if outcome.state in (State.RAN, State.RESTORED)]
    width = max((len(outcome.name) for outcome in made), default=0)
    lines = [""] if made else []
    for outcome in made:
        tries = f"  ({outcome.attempts} tries)" if outcome.attempts > 1 else ""
        lines.append(f"{outcome.state:<9}  {outcome.name:<{width}}  {clock(outcome.seconds):>7}{tries}")
    counts = ", ".join(f"{count} {state}" for state, count in count_states(outcomes).items() if count)
    return [*lines, "", f"{counts}; {clock(seconds)}"]


def failure_lines(outcomes: dict[str, Outcome]) -> list[str]:
    """What did not get done and why: each failed stage with its reason, all skipped ones in one line."""
    failed = [outcome for outcome in outcomes.values() if outcome.state is State.FAILED]
    interrupted = [outcome.name for outcome in failed if outcome.error == INTERRUPTED]
    skipped = [outcome for outcome in outcomes.values() if outcome.state is State.SKIPPED]
    lines = []
    for outcome in (outcome for outcome in failed if outcome.error != INTERRUPTED):
        tries = f" ({outcome.attempts} tries)" if outcome.attempts > 1 else ""
        lines += ["", f"FAILED {outcome.name}{tries}", f"  {outcome.error}"]
        if outcome.log:
            lines.append(f"  what it printed: {outcome.log}")
    if interrupted:
        lines += ["", f"{len(interrupted)} {INTERRUPTED}: {enumeration(interrupted)}"]
    if skipped:
        # What a stage lacks stands above; other reasons, such as a run that was stopped, do not.
        others = {str(outcome.error) for outcome in skipped if not str(outcome.error).endswith(UNFINISHED)}
        reasons = "; ".join(sorted(others)) or "what they need failed"
        names = enumeration(outcome.name for outcome in skipped)
        lines += ["", f"{len(skipped)} skipped ({reasons}): {names}"]
    return lines


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
    """The table of results, the path of the report page and the verdict, where the stages that make them are done.

    The verdict is asked anew: limits and the ledger of releases may have changed since the page was written.

    A file that is there although its stage did not get that far belongs to an earlier run, and is not shown as new.
    """
    lines = []
    for path in (SUMMARY_TABLE, REPORT_PAGE, VERDICT):
        if not makers_of(path, plan) or not path.exists():
            continue
        if not is_of_this_run(path, plan, outcomes):
            lines += ["", f"{path} is of an earlier run"]
        elif path == SUMMARY_TABLE:
            from tasks.results.summary.summary_document import main_tables

            lines += ["", *main_tables(path.read_text(encoding="utf-8").strip()), "", f"more tables: {path}"]
        elif path == REPORT_PAGE:
            lines += ["", f"report page: {path.absolute()}"]
        else:
            from tasks.results.verdict import current_verdicts

            lines += ["", *(line for verdict in current_verdicts() for line in verdict.lines())]
    return lines


COMMAND = Command(RunOptions, run)
