"""Dockerfile and compose.yaml: no port of the network, no password, and only programs, extras and files that exist."""

import re
import shlex
import shutil
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
COMPOSE = (CHECKOUT / "compose.yaml").read_text()
SERVICES = yaml.safe_load(COMPOSE)["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_of_this_machine_alone(name):
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in SERVICES[name].get("ports", ()))


def test_passwords_come_from_the_environment():
    secrets = re.findall(r"(?:\w*(?:PASSWORD|SECRET_KEY|AUTH_STRING): |//\w+:(?=\S+@))(\S+)", COMPOSE)
    assert len(secrets) >= 6
    assert [secret for secret in secrets if "${" not in secret] == []


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if service["image"] == "palimpsest"])
def test_services_of_the_image_start_an_installed_program(name):
    program = SERVICES[name].get("entrypoint", ["palimpsest"])[0]
    assert shutil.which(program, path=str(BIN))


def test_the_image_installs_extras_and_files_that_exist():
    lines = (CHECKOUT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    (install,) = [line for line in lines if "whl" in line]
    extras = re.search(r"\[([a-z,]+)\]", install)[1].split(",")
    assert set(extras) <= set(metadata("palimpsest").get_all("Provides-Extra"))
    copied = [shlex.split(line)[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert all((CHECKOUT / name).exists() for names in copied for name in names)
    assert [line for line in lines if line.startswith("USER")] == ["USER 1000:1000"]
