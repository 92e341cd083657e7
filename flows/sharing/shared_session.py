"""How several clones work on one experiment: each stage is computed by one of them, and the others restore it.

The clone in which the run is started *leads*: it brings every stage to its end, and tells the others what they may
compute. Clones that *join* compute shared stages (``flows.sharing.shared_stages``). Whoever starts a shared stage
claims it first, looks on the trusted DVC remote whether its result is there, and pushes what it has computed before it
gives the claim back; so no shared stage is computed twice, and what a killed clone had claimed is taken over when its
lease runs out.
"""

from pathlib import Path
from uuid import UUID

from flows.graph.graph import open_repository
from flows.runs.session import Session
from flows.sharing.board import experiment_state
from flows.sharing.join import Join
from flows.sharing.lead import Lead
from flows.sharing.role import Alone, Role
from tasks.errors import ResourceError
from tasks.spelling import nearest


def shared_session(session: Session, role: Role, flow_run: UUID) -> "Alone | Lead | Join":
    """What the scheduler of a run in this role asks. ``ResourceError`` where it cannot be shared."""
    if role is Role.ALONE:
        return Alone(session)
    if not session.shown:
        raise ResourceError(
            "several clones share a run through a Prefect server that all of them reach; set PREFECT_API_URL to its "
            "address"
        )
    if session.trusted_remote is None:
        raise ResourceError(
            "several clones share results through a DVC remote on which raw text may lie, and params.yaml names none: "
            "set resources.trusted_remote; every machine that reaches it may see the private text"
        )
    with open_repository(Path()) as repository:
        remotes = repository.config["remote"]
        if session.trusted_remote not in remotes:
            raise ResourceError(
                f"resources.trusted_remote: DVC has no remote {session.trusted_remote!r}"
                f"{nearest(session.trusted_remote, remotes)}; run 'dvc remote add {session.trusted_remote} ADDRESS' in "
                "each clone"
            )
    state = experiment_state(Path())
    return (Lead if role is Role.LEAD else Join)(session, flow_run, state)
