"""The passwords of Prefect's and MLflow's servers, and how clients get them.

Both servers require one: another user of the machine could otherwise run commands through Prefect's API. The passwords
are random, made once, in ``.palimpsest/services/passwords`` (mode 0600). Its lines ``NAME=VALUE`` can be read by a
shell, with the clients' variables as names.
"""

import os
import secrets
from pathlib import Path

from dashboards.services.running_service import running_services
from dashboards.services.service import MLFLOW_USER, MLFLOW_USERS, STATE_FOLDER, is_at
from tasks.files.atomic_file import atomic_writer, make_folder

FILE = STATE_FOLDER / "passwords"
PREFECT = "PREFECT_API_AUTH_STRING"
"""Client's variable with Prefect's ``USER:PASSWORD``."""
MLFLOW, _MLFLOW_USER = "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_USERNAME"


def new_password() -> str:
    """32 letters, digits, ``-`` and ``_`` (192 bits)."""
    return secrets.token_urlsafe(24)


def make_passwords(folder: Path) -> dict[str, str]:
    """The variables of the file, which is made if it is missing."""
    found = _read(folder)
    if found.keys() != {PREFECT, MLFLOW, _MLFLOW_USER}:
        make_folder(folder / STATE_FOLDER, private=True)
        (folder / MLFLOW_USERS).unlink(missing_ok=True)
        found = {PREFECT: f"palimpsest:{new_password()}", _MLFLOW_USER: MLFLOW_USER, MLFLOW: new_password()}
        with atomic_writer(folder / FILE, private=True) as stream:
            stream.writelines(f"{name}={value}\n" for name, value in found.items())
    return found


def hand_over_passwords(folder: Path) -> None:
    """Let clients in this process and its children log in to the services of this checkout.

    A password goes only to the address of a running service: another program may use the port of a stopped one. The
    user's own variables stay.
    """
    found, running = _read(folder), running_services(folder)
    for name, address, variables in (
        ("prefect", "PREFECT_API_URL", [PREFECT]),
        ("mlflow", "MLFLOW_TRACKING_URI", [_MLFLOW_USER, MLFLOW]),
    ):
        if name in running and is_at(os.environ.get(address, ""), running[name].port):
            for variable in found.keys() & variables:
                os.environ.setdefault(variable, found[variable])


def _read(folder: Path) -> dict[str, str]:
    if not (folder / FILE).exists():
        return {}
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
