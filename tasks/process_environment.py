"""Environment variables of every process of palimpsest."""

import os
from pathlib import Path

_VARIABLES = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DVC_NO_ANALYTICS": "1",
    "LIGHTNING_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # By default a thread of torch that waits for another one spins: on a busy machine two threads took 2.4 times the
    # processor time of one. Read when torch is loaded.
    "OMP_WAIT_POLICY": "passive",
}


def set_variables() -> None:
    """Switch the tools' telemetry off and let waiting threads sleep, unless the user chose otherwise.

    In a checkout matplotlib lists its fonts there: by default it writes that list to the home folder, and torchmetrics
    imports it in stages that draw nothing. Child processes inherit all of it.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    if Path(".dvc").is_dir():
        os.environ.setdefault("MPLCONFIGDIR", str(Path(".palimpsest/matplotlib").absolute()))
