"""A constellation whose links are secured, with keyrings for an honest host, for one of another tenant, and for the mission."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from skymemory.security.keyring import HostRecord, Keyring, load_keyring
from skymemory.security.mission_folder import MISSION_FILE, add_host, begin_mission, host_file, satellites_folder
from skymemory.security.satellite_file import SatelliteKeys, file_name, read_satellite_keys
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.raw_host import RawHost

ALICE: Final = 7
"""Tenant of the honest host."""
MALLORY: Final = 8
"""Tenant of another host, who has a keyring, too."""
PLANES: Final = 3
SLOTS: Final = 5


@dataclass(frozen=True)
class GuardedSky:
    """Satellites that run, and the folder of their keys; without a keyring the same satellites, which serve everybody."""

    local: LocalConstellation
    keys: Path

    @property
    def is_keyed(self) -> bool:
        return bool(self.local.constellation.security.keyring)

    def constellation_of(self, host: str) -> Constellation:
        """The constellation file of a host: `alice`, `mallory`, `mission`, or `stranger`, who has no keyring."""
        files = {name: str(host_file(self.keys, 1, name)) for name in ("alice", "mallory")}
        files["mission"] = str(self.keys / MISSION_FILE)
        keyring = files.get(host, "") if self.is_keyed else ""
        tenant = MALLORY if host == "mallory" else ALICE
        return self.local.constellation.replace(security={"keyring": keyring}, cache={"tenant": tenant})

    def keyring_of(self, host: str) -> Keyring | None:
        file = self.constellation_of(host).security.keyring
        return load_keyring(Path(file)) if file else None

    def host(self, name: str, number: int) -> RawHost:
        """A host with this keyring that makes its packets by itself."""
        return RawHost(self.local.constellation, number, keyring=self.keyring_of(name))

    def captured(self, satellite: Satellite) -> SatelliteKeys:
        """All keys that a satellite has."""
        return read_satellite_keys(satellites_folder(self.keys, 1) / file_name(satellite))


def guarded_sky(
    start_sky: Callable[..., LocalConstellation], folder: Path, *, is_keyed: bool, **sections: dict[str, Any]
) -> GuardedSky:
    """Start satellites, with a keyring or without one: by default 3 planes x 5 slots."""
    grid = {"planes": PLANES, "slots": SLOTS, **sections.pop("constellation", {})}
    begin_mission(folder, grid["planes"], grid["slots"], HostRecord(name="alice", tenants=(ALICE,)))
    add_host(folder, HostRecord(name="mallory", tenants=(MALLORY,)))
    security: dict[str, object] = {"keyring": str(folder / MISSION_FILE)} if is_keyed else {}
    sections["cache"] = {"tenant": ALICE, **sections.get("cache", {})}
    return GuardedSky(start_sky(constellation=grid, security=security, **sections), folder)
