"""What our servers ask for, and where our clients find it.

Prefect's server always asks: its API runs commands as the user, for whoever it answers. MLflow asks where it
is told to. A password is the one that the environment names, or a random one in
``.palimpsest/services/passwords``: mode 0600, lines ``NAME=VALUE`` that a shell reads too, with the names that clients
look for. The file outlives the services, and says which of them ask.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from dashboards.services.running_service import running_services
from dashboards.services.service import (
    MLFLOW_PASSWORD,
    OWN_USERS,
    PREFECT_PASSWORD,
    STATE_FOLDER,
    is_at,
    is_loopback,
    mlflow_user,
)
from tasks.errors import ParameterError
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, atomic_writer

FILE = STATE_FOLDER / "passwords"
VARIABLES = {"prefect": PREFECT_PASSWORD, "mlflow": MLFLOW_PASSWORD}
"""Environment variables with passwords of the user's own."""
MLFLOW_PASSWORD_LENGTH = 12
"""The shortest one that MLflow takes."""
_PREFECT_CLIENT = "PREFECT_API_AUTH_STRING"
_MLFLOW_CLIENT = "MLFLOW_TRACKING_PASSWORD"
_MLFLOW_CLIENT_USER = "MLFLOW_TRACKING_USERNAME"


@dataclass(frozen=True)
class Passwords:
    """What each service asks for; ``None`` where it asks nobody."""

    prefect: str
    """``USER:PASSWORD``."""
    mlflow: str | None

    def of(self, name: str) -> str | None:
        """That of the service of this name."""
        return {"prefect": self.prefect, "mlflow": self.mlflow}[name]


def new_password() -> str:
    """32 letters, digits, ``-`` and ``_`` (192 bits)."""
    return secrets.token_urlsafe(24)


def read_passwords(folder: Path, names: Sequence[str], host: str, everywhere: bool | None) -> Passwords:
    """What the services of these names, if they start now, ask for, with a random password where there is none yet.

    ``everywhere``: whether MLflow asks too; ``None`` for what was said last. It asks in any case where the environment
    has a password for it, and where other machines reach ``host``.
    Raises ``ParameterError`` for a password that a service would not take, or where one would be open to others.
    """
    kept = _read(folder)
    if everywhere is None:
        everywhere = _MLFLOW_CLIENT in kept or not is_loopback(host)
    passwords = Passwords(
        os.environ.get(PREFECT_PASSWORD) or kept.get(_PREFECT_CLIENT) or f"palimpsest:{new_password()}",
        os.environ.get(MLFLOW_PASSWORD) or (kept.get(_MLFLOW_CLIENT) or new_password() if everywhere else None),
    )
    _check(passwords, names, host)
    return passwords


def keep_passwords(folder: Path, passwords: Passwords) -> None:
    """Write those that are ours, and none of the environment's, which stand in no file."""
    before = _read(folder)
    kept = {}
    if not os.environ.get(PREFECT_PASSWORD):
        kept[_PREFECT_CLIENT] = passwords.prefect
    if passwords.mlflow is not None and not os.environ.get(MLFLOW_PASSWORD):
        kept |= {_MLFLOW_CLIENT_USER: mlflow_user(), _MLFLOW_CLIENT: passwords.mlflow}
        if _MLFLOW_CLIENT not in before:
            (folder / OWN_USERS).unlink(missing_ok=True)
    if kept != before:
        with atomic_writer(folder / FILE, private=True) as stream:
            stream.writelines(f"{name}={value}\n" for name, value in kept.items())
    (folder / STATE_FOLDER).chmod(PRIVATE_FOLDER_MODE)


def hand_over_passwords(folder: Path) -> None:
    """Let clients in this process, and in those that it starts, log in to the services that run in this checkout.

    A password goes to the address of a running service of ours alone: another program may have taken the port of one
    that has ended. What the environment says already stays.
    """
    kept, running = _read(folder), running_services(folder)
    for address, name, variables in (
        ("PREFECT_API_URL", "prefect", [_PREFECT_CLIENT]),
        ("MLFLOW_TRACKING_URI", "mlflow", [_MLFLOW_CLIENT_USER, _MLFLOW_CLIENT]),
    ):
        service = running.get(name)
        if service is not None and is_at(os.environ.get(address, ""), service.port, service.host):
            for variable in variables:
                if variable in kept:
                    os.environ.setdefault(variable, kept[variable])


def _read(folder: Path) -> Mapping[str, str]:
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _check(passwords: Passwords, names: Sequence[str], host: str) -> None:
    problems = []
    if ":" not in passwords.prefect:
        problems.append(f"{PREFECT_PASSWORD} is not of the form USER:PASSWORD")
    if "mlflow" in names and passwords.mlflow is None and not is_loopback(host):
        problems.append(f"other machines would reach MLflow on {host!r}, and it must ask them: leave out --no-password")
    if "mlflow" in names and passwords.mlflow is not None:
        if len(passwords.mlflow) < MLFLOW_PASSWORD_LENGTH:
            problems.append(f"{MLFLOW_PASSWORD} has fewer than {MLFLOW_PASSWORD_LENGTH} characters")
        if find_spec("flask_wtf") is None:
            problems.append("MLflow asks with Flask-WTF, which is not installed (pip install -e '.[shared]')")
    if problems:
        raise ParameterError("; ".join(problems))
