"""Dockerfile and compose.yaml: no port of the network, no password, and only programs, extras and files that exist."""

import re
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
COMPOSE = (CHECKOUT / "compose.yaml").read_text()
SERVICES = yaml.safe_load(COMPOSE)["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_of_this_machine_alone(name):
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in SERVICES[name].get("ports", ()))


def test_passwords_come_from_the_environment():
    secrets = re.findall(r"(?:\w*(?:PASSWORD|SECRET_KEY|AUTH_STRING): |//\w+:(?=\S+@))(\S+)", COMPOSE)
    assert len(secrets) >= 6
    assert [secret for secret in secrets if "${" not in secret] == []
