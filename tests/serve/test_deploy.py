"""The files to deploy with: read as Docker and Prometheus read them, as far as that goes here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

# The keys of the Compose specification that are used here, with the kind of their values.
TOP = {"name": str, "services": dict, "volumes": dict, "secrets": dict}
SERVICE = {
    **{"build": dict, "image": str, "command": list, "environment": dict, "volumes": list},
    **{"ports": list, "depends_on": (dict, list), "read_only": bool, "tmpfs": list},
    **{"cap_drop": list, "security_opt": list, "restart": str, "healthcheck": dict},
    "secrets": list,
}


def checked(found: dict[str, Any], known: dict[str, Any]) -> None:
    for key, value in found.items():
        assert key in known, f"{key} is no key of the Compose specification that is known here"
        assert isinstance(value, known[key]), f"{key} holds {value!r}"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_compose_file_has_known_keys_and_names_only_what_is_there(
    compose: dict[str, Any],
) -> None:
    checked(compose, TOP)
    services = compose["services"]
    assert set(services) == {"server", "db", "prometheus"}
    for service in services.values():
        checked(service, SERVICE)
        assert ("image" in service) != ("build" in service)
        assert set(service.get("depends_on", ())) <= set(services)
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")  # TLS is the proxy's
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0] if not volume.startswith("${") else None
            named = source in compose["volumes"]
            assert source is None or named or (DEPLOY / source).exists()
    build = services["server"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    assert "${POSTGRES_PASSWORD" in services["db"]["environment"]["POSTGRES_PASSWORD"]


def test_the_server_is_started_by_options_that_the_command_has(compose: dict[str, Any]) -> None:
    from typer.main import get_command

    from evenhand.cli import app

    first, place, *words = compose["services"]["server"]["command"]
    command = get_command(app).commands[first]
    known = {name: param for param in command.params for name in param.opts}
    assert place == "/model"
    assert all(word in known for word in words if word.startswith("--"))
    assert known["--store"].envvar in compose["services"]["server"]["environment"]


def test_prometheus_scrapes_a_route_of_the_server(compose: dict[str, Any]) -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    (name, port) = job["static_configs"][0]["targets"][0].split(":")
    assert name in compose["services"]
    assert port == "8000"
    secret = Path(job["authorization"]["credentials_file"])
    assert secret.parent == Path("/run/secrets")
    assert secret.name in compose["secrets"]


def test_the_image_is_made_of_files_that_are_there_and_runs_as_nobody_special() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}
    words = [shlex.split(line) for line in lines]
    assert {line[0] for line in words} <= known
    assert words[0][0] == "FROM"
    for line in words:
        if line[0] == "COPY":
            assert all((ROOT / source).exists() for source in line[1:-1])
    (user,) = [line[1] for line in words if line[0] == "USER"]
    assert user != "root"
    extras = re.search(r"\[(\w+),(\w+)\]", text)
    project = (ROOT / "pyproject.toml").read_text()
    assert extras is not None
    assert all(f"\n{extra} = [" in project for extra in extras.groups())
