"""Words that tell machines and containers from each other."""

from pathlib import Path

from skymemory.common.machine_identity import machine_identity

MOUNT = "691 677 254:0 /var/lib/docker/containers/{}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n"
OTHER_MOUNT = "677 645 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"


def machine(root: Path, identity: str = "", container: str = "") -> str:
    for folder in ("etc", "proc/self"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "etc/machine-id").write_text(f"{identity}\n")
    (root / "proc/self/mountinfo").write_text(OTHER_MOUNT + (MOUNT.format(container) if container else ""))
    return machine_identity(root)


def test_machines_and_containers_with_the_same_host_name_differ(tmp_path: Path) -> None:
    told = [
        machine(tmp_path, "3d12"),
        machine(tmp_path, "4e23"),
        machine(tmp_path, "3d12", "aa01"),
        machine(tmp_path, "3d12", "bb02"),
        machine(tmp_path, "", "bb02"),
        machine_identity(tmp_path / "nothing is there"),
    ]
    assert len(set(told)) == len(told)
    assert machine(tmp_path, "3d12", "aa01") == told[2]


def test_a_machine_is_itself_again() -> None:
    assert machine_identity() == machine_identity()
