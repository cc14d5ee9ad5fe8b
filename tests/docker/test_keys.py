"""Key files of satellites in containers: each reads its own, as nobody, and sees no other."""

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from skymemory.security.constellation_keys import files_for_containers, find_satellite_files
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission
from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import compose_file
from skymemory.testbed.docker import compose_command

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
PROJECT = "skymemory-keys-test"
LOOK = "id -u; sha256sum /run/secrets/satellite.key; ls /run/secrets; test -w /run/secrets/satellite.key || echo read-only"


def test_a_container_reads_its_own_keys_and_no_other(docker: Callable[..., str], tmp_path: Path) -> None:
    begin_mission(tmp_path / "keys", 1, 2, HostRecord(name="host", tenants=(0,)))
    folder = find_satellite_files(tmp_path / "keys" / "mission.json")
    sky = Constellation().replace(
        constellation={"planes": 1, "slots": 2},
        cache={"servers": 1, "parity": 0, "centre": [1, 1]},
        security={"keyring": str(tmp_path / "keys" / "mission.json")},
    )
    made = yaml.safe_load(compose_file(sky, context=None, keys=files_for_containers(folder)))
    made.pop("networks")
    for service in made["services"].values():  # the satellite's image has no shell
        service |= {"image": "debian:bookworm-slim", "restart": "no", "entrypoint": ["sh", "-c"], "command": [LOOK]}
        service |= {"network_mode": "none"}
        service.pop("networks")
    (path := tmp_path / "compose.yaml").write_text(yaml.safe_dump(made))
    compose = [*compose_command(), "--project-name", PROJECT, "--file", str(path)]
    try:
        subprocess.run([*compose, "up", "-d"], check=True, capture_output=True)
        for slot in (1, 2):
            identity = docker("ps", "--all", "--quiet", "--filter", f"name={PROJECT}.sat-1-{slot}").split()[0]
            assert docker("wait", identity).strip() == "0"
            digest = hashlib.sha256((folder / f"1-{slot}.key").read_bytes()).hexdigest()
            said = docker("logs", identity).split()
            assert said == ["65534", digest, "/run/secrets/satellite.key", "satellite.key", "read-only"]
    finally:
        subprocess.run([*compose, "down", "--timeout", "2"], check=False, capture_output=True)
