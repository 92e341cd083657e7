"""Telemetry of all tools, off unless the user has switched it on; and the place of matplotlib's list of fonts."""

import os
from pathlib import Path

_SWITCHES = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DVC_NO_ANALYTICS": "1",
    "LIGHTNING_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def switch_off() -> None:
    """Set the environment variables that disable the tools' telemetry; child processes inherit them.

    In a checkout matplotlib lists its fonts there. By default it writes that list to the home folder, and torchmetrics
    imports it in stages that draw nothing.
    """
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
    if Path(".dvc").is_dir():
        os.environ.setdefault("MPLCONFIGDIR", str(Path(".palimpsest/matplotlib").absolute()))
