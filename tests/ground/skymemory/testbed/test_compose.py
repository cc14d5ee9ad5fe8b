"""The compose file that is checked in is the one that `skymem compose` makes."""

from pathlib import Path

import pytest
import yaml

from skymemory.security.constellation_keys import files_for_containers, find_satellite_files
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission
from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import compose_file, in_containers

ROOT = Path(__file__).resolve().parents[4]


def test_the_file_that_is_checked_in_is_up_to_date() -> None:
    file = "docker/constellation.toml"
    made = compose_file(Constellation.load(ROOT / file), source=file)
    again = f"skymem compose --constellation {file} --output docker/compose.yaml"
    assert (ROOT / "docker" / "compose.yaml").read_text() == made, f"run: {again}"


def test_the_file_beside_it_is_the_default_one_as_containers_have_it() -> None:
    ours = Constellation.load(ROOT / "docker" / "constellation.toml")
    assert ours == in_containers(ours) == in_containers(Constellation.load(ROOT / "constellation.toml"))


def test_the_file_of_the_repository_is_the_default() -> None:
    assert Constellation.load(ROOT / "constellation.toml") == Constellation()


def test_one_service_a_satellite_at_its_address() -> None:
    text = compose_file(Constellation())
    assert text.count("ipv4_address: 198.18.") == 95
    assert '"--plane", "5", "--slot", "19"' in text
    assert "ipv4_address: 198.18.5.19}" in text
    assert "gateway: 198.18.0.1" in text
    assert text.count("build:") == 1


def test_memory_limit_follows_the_store() -> None:
    assert "mem_limit: 24m" in compose_file(Constellation())
    assert "mem_limit: 72m" in compose_file(Constellation().replace(satellite={"store_mib": 64}))


@pytest.mark.parametrize(("mtu", "expected"), [(65507, 8972), (1472, 1472)])
def test_packets_fit_the_frames(mtu: int, expected: int) -> None:
    inside = in_containers(Constellation().replace(network={"mtu": mtu}))
    assert inside.network.mtu == expected
    assert inside.address(3, 10) == "198.18.3.10"


def test_it_says_what_it_was_made_from() -> None:
    assert compose_file(Constellation()).startswith("# Made by `skymem compose` from constellation.toml. Do not edit.\n")
    assert compose_file(Constellation(), source="mine.toml").startswith("# Made by `skymem compose` from mine.toml. Do")
    assert compose_file(Constellation(), source="a\nb: c").splitlines()[1] == ""


def test_where_the_image_is_built_from() -> None:
    assert '    build: {context: "..", dockerfile: docker/Dockerfile, target: satellite}\n' in compose_file(Constellation())
    assert 'build: {context: "../a \\"b\\", $$c", dockerfile' in compose_file(Constellation(), context='../a "b", $c')
    assert "build:" not in compose_file(Constellation(), context=None)


def test_each_container_has_its_own_key_file_and_no_other() -> None:
    made = yaml.safe_load(compose_file(Constellation(), keys=Path("../a $b/containers")))
    assert len(made["secrets"]) == 95
    assert made["secrets"]["keys-3-10"] == {"file": "../a $$b/containers/3-10.key"}
    for name, service in made["services"].items():
        _, plane, slot = name.split("-")
        assert service["secrets"] == [{"source": f"keys-{plane}-{slot}", "target": "/run/secrets/satellite.key"}]
        assert service["command"][-2:] == ["--keys", "/run/secrets/satellite.key"]
    assert "secrets" not in yaml.safe_load(compose_file(Constellation()))


def test_copies_for_containers_are_behind_a_folder_of_their_owner(tmp_path: Path) -> None:
    begin_mission(tmp_path / "keys", 1, 3, HostRecord(name="host", tenants=(0,)))
    folder = find_satellite_files(tmp_path / "keys" / "mission.json")
    copies = files_for_containers(folder)
    assert copies == files_for_containers(folder) == folder / "containers"
    assert copies.stat().st_mode & 0o777 == 0o700
    for path in folder.glob("*.key"):
        copy = copies / path.name
        assert (copy.read_bytes(), copy.stat().st_mode & 0o777) == (path.read_bytes(), 0o444)
    assert len(list(copies.iterdir())) == 3
