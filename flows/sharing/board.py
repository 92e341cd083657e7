"""What the clone in which a run was started tells the others, as Prefect artifacts of its flow run.

Two tables: the stages that the others may compute, and what the outputs are that they need from stages that only that
clone computes. Names, paths and hashes only.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterKey
from prefect.client.schemas.sorting import ArtifactSort

from tasks.errors import StageError
from tasks.parameters.parameter_file import DEFAULT_PATH

_PAGE = 200


def experiment_state(folder: Path) -> str:
    """Twelve digits that are the same in two clones where commit, ``dvc.yaml`` and ``params.yaml`` are."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise StageError("several clones share an experiment by its git commit, and this folder has none; commit first")
    digest = hashlib.sha256(done.stdout.encode())
    for name in ("dvc.yaml", DEFAULT_PATH):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:12]


class Board:
    """The tables of one state of the experiment."""

    def __init__(self, state: str) -> None:
        self._stages_key = f"shared-stages-{state}"
        self._outputs_key = f"shared-outputs-{state}"

    def show_stages(self, flow_run: UUID, stages: Iterable[str], border: Iterable[str]) -> None:
        """Which stages others may compute, and which they wait for."""
        rows = [{"stage": name, "computed": "anywhere"} for name in stages]
        rows += [{"stage": name, "computed": "here"} for name in border]
        self._show(self._stages_key, flow_run, rows, "Stages that other clones may compute, and those they wait for")

    def show_outputs(self, flow_run: UUID, outputs: Mapping[str, list[dict[str, Any]]]) -> None:
        """What stages that are computed here alone have made for the others."""
        rows = [{"stage": name, **output} for name, found in outputs.items() for output in found]
        self._show(self._outputs_key, flow_run, rows, "Outputs that other clones take from the remote")

    def last_run(self) -> tuple[UUID, list[str]] | None:
        """The flow run that shared this state last: its id, and the stages that anybody may compute."""
        with get_client(sync_client=True) as client:
            found = client.read_artifacts(
                artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[self._stages_key])),
                limit=1,
                sort=ArtifactSort.CREATED_DESC,
            )
        if not found or found[0].flow_run_id is None:
            return None
        rows = _rows(found[0])
        return found[0].flow_run_id, [row["stage"] for row in rows if row["computed"] == "anywhere"]

    def outputs(self, flow_run: UUID, known: set[UUID]) -> dict[str, list[dict[str, Any]]]:
        """Outputs told by tables that are not ``known`` yet, by stage; they are known then."""
        asked = ArtifactFilter(
            key=ArtifactFilterKey(any_=[self._outputs_key]), flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run])
        )
        told: dict[str, list[dict[str, Any]]] = {}
        offset = 0
        with get_client(sync_client=True) as client:
            while True:
                page = client.read_artifacts(
                    artifact_filter=asked, limit=_PAGE, offset=offset, sort=ArtifactSort.CREATED_DESC
                )
                new = [artifact for artifact in page if artifact.id not in known]
                for artifact in new:
                    known.add(artifact.id)
                    by_stage: dict[str, list[dict[str, Any]]] = {}
                    for row in _rows(artifact):
                        by_stage.setdefault(row.pop("stage"), []).append(row)
                    told = by_stage | told  # the newest comes first
                if len(page) < _PAGE or len(new) < len(page):
                    return told
                offset += len(page)

    def _show(self, key: str, flow_run: UUID, rows: list[dict[str, Any]], description: str) -> None:
        artifact = ArtifactCreate(
            key=key, type="table", data=json.dumps(rows), description=description, flow_run_id=flow_run
        )
        with get_client(sync_client=True) as client:
            client.create_artifact(artifact)


def _rows(artifact: Any) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(artifact.data)
    return rows
