"""Run the stages of the experiment that changed, several at once.

The command prints the plan, a line for each finished stage, and the results. The graph is in
dvc.yaml. Each stage runs through DVC, so nothing is done twice. If a run is stopped or killed, only
the stages that were running are lost. 'dvc repro' does the same work, one stage at a time.

Prefect decides when a stage starts. PREFECT_API_URL, a Prefect profile or 'palimpsest up' sets its
server. Without them, the run starts a temporary server.

examples:
    palimpsest run                 everything that changed
    palimpsest run --jobs 4        four stages at once
    palimpsest run summarise       one stage, with what it needs
    palimpsest run --only technique=allow_list --only method=top_k
                                   a part of the experiment, with what it needs
    palimpsest run --set filling.top_k.k=20
                                   another value for this run, recorded as a DVC experiment
"""

import json
import sys
import time
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.graph.graph import Action, Graph, enumeration
from flows.graph.plan import causes, summary
from flows.plan_command import SelectionOptions
from flows.runs.run_progress import Progress, clock
from flows.stages.executor import INTERRUPTED, UNDONE, UNFINISHED, Outcome, State
from tasks.options import Argument, Command

SUMMARY = "run the stages of the experiment that changed, several at once"
SUMMARY_TABLE, REPORT_PAGE, VERDICT = (Path("results") / name for name in ("summary.md", "report.html", "verdict.txt"))


class RunOptions(SelectionOptions):
    """Options of the run."""

    jobs: Annotated[int | None, Field(ge=1)] = None
    """number of stages at once (default: resources.parallel_stages of params.yaml)"""
    set_: Annotated[list[str], Argument(again=True, metavar="KEY.PATH=VALUE")] = Field(default_factory=list)
    """a value of params.yaml for this run only, as YAML. The run is recorded as a DVC experiment, and params.yaml is
    restored afterwards"""
    json_: bool = False
    """print the states as JSON instead of text"""


def run(options: RunOptions) -> int:
    """Run the stages; return 0 if all are done, 1 if one failed, 128 plus the signal's number if it was stopped."""
    from flows.runs.missing import refuse_missing
    from flows.runs.preparation import prepared_run

    started = time.monotonic()
    with prepared_run(options.stages, options.only, options.set_, options.jobs, say) as run:
        plan = run.plan
        if not options.json_:
            print("\n".join(short_plan(plan)), flush=True)
        if all(stage.action is Action.UNCHANGED for stage in plan.values()):
            run.outcomes = {name: Outcome(name, State.UNCHANGED) for name in plan}
        else:
            from flows.prefect_flow.prefect_api import drive

            refuse_missing(plan, run.root)
            run.observer = progress = Progress(plan, run.parallel_stages, run.root)
            parameters = {"stages": options.stages, "only": options.only, "overrides": options.set_}
            # Ray prints messages of its machines to standard output, which is for the JSON only.
            with redirect_stdout(sys.stderr) if options.json_ else nullcontext():
                drive(run, {**parameters, "jobs": run.parallel_stages})
            progress.save()
        if options.json_:
            print(json.dumps(as_json(run.outcomes, time.monotonic() - started), indent=2, ensure_ascii=False))
        else:
            counts = counts_line(run.outcomes, time.monotonic() - started)
            print("\n".join(["", counts, *result_lines(plan, run.outcomes)]))
            # Printed last, so that it is visible.
            print("".join(f"{line}\n" for line in failure_lines(run.outcomes)), end="", flush=True)
    if run.stopped:
        how, number = run.stopped
        say(f"{how}; finished stages are saved, run it again to continue")
        return 128 + number
    if failed := count_states(run.outcomes)[State.FAILED]:
        correct = "correct the errors above, then run it again"
        say(f"{failed} of {len(run.outcomes)} stages failed; {correct}: finished stages are saved")
    return int(failed > 0)


def say(sentence: str) -> None:
    """Print a sentence to standard error."""
    print(f"palimpsest: {sentence}", file=sys.stderr)


def short_plan(plan: Graph, shown: int = 12) -> list[str]:
    """The counts, and each reason with its stages."""
    lines = [f"  {text}: {enumeration(names)}" for text, names in causes(plan).items()]
    if len(lines) > shown:
        lines = [*lines[:shown], f"  and {len(lines) - shown} more reasons; 'palimpsest plan' has all"]
    return [summary(plan), *lines]


def counts_line(outcomes: dict[str, Outcome], seconds: float) -> str:
    """The numbers of stages by state, and the time of the run."""
    counts = ", ".join(f"{count} {state}" for state, count in count_states(outcomes).items() if count)
    return f"{counts}; {clock(seconds)}"


def failure_lines(outcomes: dict[str, Outcome]) -> list[str]:
    """Lines on unfinished stages: each failed stage with its reason, all skipped ones in one line."""
    failed = [outcome for outcome in outcomes.values() if outcome.state is State.FAILED]
    interrupted = [outcome.name for outcome in failed if outcome.error == INTERRUPTED]
    skipped = [outcome for outcome in outcomes.values() if outcome.state is State.SKIPPED]
    lines = []
    for outcome in (outcome for outcome in failed if outcome.error != INTERRUPTED):
        tries = f" ({outcome.attempts} tries)" if outcome.attempts > 1 else ""
        lines += ["", f"FAILED {outcome.name}{tries}", f"  {outcome.error}"]
        if outcome.log:
            lines.append(f"  its output: {outcome.log}")
    if interrupted:
        lines += ["", f"{len(interrupted)} {INTERRUPTED}: {enumeration(interrupted)}"]
    if skipped:
        # A stage's missing inputs are in a line above; other reasons, such as a stopped run, are not.
        others = {str(outcome.error) for outcome in skipped if not str(outcome.error).endswith(UNFINISHED)}
        reasons = "; ".join(sorted(others)) or "stages that they need failed"
        names = enumeration(outcome.name for outcome in skipped)
        lines += ["", f"{len(skipped)} skipped ({reasons}): {names}"]
    return lines


def count_states(outcomes: dict[str, Outcome]) -> dict[State, int]:
    """The number of stages in each state, with every state as a key."""
    states = [outcome.state for outcome in outcomes.values()]
    return {state: states.count(state) for state in State}


def as_json(outcomes: dict[str, Outcome], seconds: float) -> dict[str, object]:
    """States, counts and wall time for ``--json``."""
    return {
        "stages": [asdict(outcome) for outcome in outcomes.values()],
        "counts": {state.value: count for state, count in count_states(outcomes).items()},
        "seconds": round(seconds, 3),
    }


def result_lines(plan: Graph, outcomes: dict[str, Outcome]) -> list[str]:
    """The table of results, the path of the report page and the verdict, if the stages that make them are done.

    The verdict is computed again: limits and the ledger of releases may have changed since the page was written.

    A file whose stage did not finish in this run belongs to an earlier run, and is not shown as new.
    """
    lines = []
    for path in (SUMMARY_TABLE, REPORT_PAGE, VERDICT):
        makers = [node.name for node in plan.values() if str(path) in node.outputs]
        if not makers or not path.exists():
            continue
        if any(outcomes[name].state in UNDONE for name in makers):
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
