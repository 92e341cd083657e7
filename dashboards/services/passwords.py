"""The passwords of Prefect's and MLflow's servers, and how clients get them.

Both servers require one: another user of the machine could otherwise run commands through Prefect's API. The passwords
are random, made once, in ``.palimpsest/services/passwords`` (mode 0600). Its lines ``NAME=VALUE`` can be read by a
shell, with the clients' variables as names.
"""

import os
import secrets
from pathlib import Path

from dashboards.services.running_service import running_services
from dashboards.services.service import KINDS, MLFLOW_USER, MLFLOW_USERS, STATE_FOLDER, is_at
from tasks.files.atomic_file import atomic_writer, make_folder

FILE = STATE_FOLDER / "passwords"
PREFECT = "PREFECT_API_AUTH_STRING"
"""Client's variable with Prefect's ``USER:PASSWORD``."""
MLFLOW, _MLFLOW_USER = "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_USERNAME"
_VARIABLES = {"prefect": (PREFECT,), "mlflow": (_MLFLOW_USER, MLFLOW)}


def new_password() -> str:
    """32 letters, digits, ``-`` and ``_`` (192 bits)."""
    return secrets.token_urlsafe(24)


def make_passwords(folder: Path) -> dict[str, str]:
    """The variables of the file, which is made if it is missing."""
    found = _read(folder)
    if not found:
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
    found = _read(folder)
    for name, service in running_services(folder).items():
        if is_at(os.environ.get(KINDS[name].client, ""), service.port):
            for variable in found.keys() & _VARIABLES[name]:
                os.environ.setdefault(variable, found[variable])


def _read(folder: Path) -> dict[str, str]:
    path = folder / FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line.split("=", 1) for line in lines)
