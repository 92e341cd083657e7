"""What every page starts from: the parameters of the project and the runs, read again every few seconds."""

from pathlib import Path

import streamlit as st

from dashboards.app.tracked_runs import TrackedRun, read_runs
from tasks.parameters.parameter_file import DEFAULT_PATH, Parameters, read_parameters
from tasks.results.tracking.settings import TrackingSettings

KEPT_SECONDS = 10
"""How long runs that were read are shown before they are read again."""


def parameters() -> Parameters:
    """``params.yaml`` of the folder that the app was started in."""
    return _parameters(Path(DEFAULT_PATH).stat().st_mtime_ns if Path(DEFAULT_PATH).is_file() else None)


def all_runs() -> list[TrackedRun]:
    """All runs of the experiment, at most ``KEPT_SECONDS`` old; the same for everybody who looks."""
    return _runs(parameters().tracking)


@st.cache_data(show_spinner=False, max_entries=2)
def _parameters(state: int | None) -> Parameters:
    """``state`` tells a changed file from the one that was read."""
    return read_parameters(DEFAULT_PATH)


@st.cache_data(show_spinner="Reading MLflow …", ttl=KEPT_SECONDS, max_entries=2, hash_funcs={TrackingSettings: repr})
def _runs(tracking: TrackingSettings) -> list[TrackedRun]:
    return read_runs(tracking)
