"""Telemetry of every tool we use, off unless the user has switched it on."""

import os

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
    """Set the environment variables that keep the tools from calling home; child processes inherit them."""
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
