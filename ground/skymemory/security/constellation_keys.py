"""Keys of a constellation, where they come from: the keyring that its file names, and the key files of its satellites."""

from pathlib import Path
from typing import Final

from skymemory.common.secret_files import drafted, make_folder, put_folder, write_secret
from skymemory.security.credential import told_tenants
from skymemory.security.keyring import KeyringError, MissionKeyring, load_keyring
from skymemory.security.mission_folder import MISSION_FILE, satellite_keys, satellites_folder
from skymemory.security.satellite_file import SatelliteKeys, file_name, read_satellite_keys
from skymemory.wire.address import Satellite

CONTAINERS: Final = "containers"
"""Folder inside that of the key files, with copies for containers."""
_COPY_MODE: Final = 0o444


def check_keyring(path: Path, planes: int, slots: int, tenant: int) -> None:
    """Check that a keyring fits a constellation. A folder of key files of satellites counts as one.

    Args:
        tenant: Tenant that the constellation names.

    Raises:
        SecretFileError: It cannot be read, others may read it, it is damaged, or it is of another constellation.
    """
    if path.is_dir():
        check_satellite_files(path, planes, slots)
        return
    if not path.exists():
        raise KeyringError(f"{path} does not exist; `skymem keys new` makes keyrings")
    keyring = load_keyring(path)
    _check_size(path, (keyring.planes, keyring.slots), (planes, slots))
    if keyring.tenants is not None and tenant not in keyring.tenants:
        raise KeyringError(
            f"{path} is for other tenants than cache.tenant = {tenant}; allowed are {told_tenants(keyring.tenants)}"
        )


def check_host_file(path: Path) -> None:
    """Check that a host can use what is named as its keyring: a folder of the satellites' key files has no keys for hosts.

    Raises:
        KeyringError: It is a folder.
    """
    if path.is_dir():
        raise KeyringError(
            f"{path} is a folder, and no host's keyring; allowed are the keyring of a host, generation-N/hosts/NAME.json, and "
            f"that of the mission, {MISSION_FILE}; the variable SKYMEM_KEYRING names a host's keyring"
        )


def find_satellite_files(path: Path) -> Path:
    """Return the folder of the satellites' key files that belong to a keyring.

    Args:
        path: The mission's keyring, or the folder itself.

    Raises:
        KeyringError: It is a host's, or the folder is not there.
    """
    if path.is_dir():
        return path
    keyring = load_keyring(path)
    if not isinstance(keyring, MissionKeyring):
        allowed = "the mission's keyring, or a folder of the satellites' key files"
        raise KeyringError(f"{path} is the keyring of host {keyring.name}, which starts no satellites; allowed are {allowed}")
    folder = satellites_folder(path.parent, keyring.generation)
    if not folder.is_dir():
        raise KeyringError(
            f"{folder} is missing, with the satellites' key files; `skymem keys satellites {path} {folder}` makes it"
        )
    return folder


class KeySource:
    """Origin of the keys of single satellites: the mission's keyring, or a folder of their key files."""

    def __init__(self, path: Path, previous: bool = False) -> None:
        """Open the keyring.

        Args:
            path: The mission's keyring, or the folder.
            previous: The generation before is wanted, too, which only the mission's keyring has.

        Raises:
            SecretFileError: It is a host's, it has no generation before, or it cannot be read.
        """
        self._folder = path if path.is_dir() else None
        self._missions: list[MissionKeyring] = []
        if self._folder is None:
            keyring = load_keyring(path)
            if not isinstance(keyring, MissionKeyring):
                told = f"{path} is the keyring of host {keyring.name}, which has no satellite's keys"
                raise KeyringError(f"{told}; allowed are the mission's keyring, or a folder of the satellites' key files")
            if previous and keyring.generation > 1:
                self._missions.append(keyring.changed(generation=keyring.generation - 1))
            self._missions.append(keyring)
        if previous and len(self._missions) < 2:
            raise KeyringError(f"{path} has no generation before the newest; allowed is a mission's keyring after a rotation")

    def of(self, place: Satellite) -> list[SatelliteKeys]:
        """Return the keys of a satellite in each generation that is wanted, the oldest first."""
        if self._folder is not None:
            return [read_satellite_keys(self._folder / file_name(place))]
        return [satellite_keys(mission, place) for mission in self._missions]


def check_satellite_files(folder: Path, planes: int, slots: int) -> None:
    """Check that a folder has the key file of each satellite, all of one generation.

    Raises:
        SecretFileError: A file is missing, damaged, open to others, or of another satellite, constellation or generation.
    """
    generations = set()
    for place in (Satellite(plane, slot) for plane in range(1, planes + 1) for slot in range(1, slots + 1)):
        path = folder / file_name(place)
        keys = read_satellite_keys(path)
        _check_size(path, (keys.planes, keys.slots), (planes, slots))
        if keys.place != place:
            raise KeyringError(f"{path} is the file of satellite {keys.place}")
        generations.add(keys.generation)
    if len(generations) > 1:
        raise KeyringError(f"{folder} has files of generations {', '.join(map(str, sorted(generations)))}; allowed is one")


def files_for_containers(folder: Path) -> Path:
    """Return the folder with copies of the key files that a container's user can read; make it if it is not there.

    Compose mounts a file with the owner and the mode that it has here, and satellites run as nobody. So the copies may be read by
    anybody, but only their owner can enter their folder. A container sees its own file and no folder.

    Raises:
        SecretFileError: The folder cannot be written.
    """
    copies = folder / CONTAINERS
    if not copies.is_dir():
        with drafted(folder) as draft:
            make_folder(draft / CONTAINERS)
            for path in folder.glob("*.key"):
                write_secret(draft / CONTAINERS / path.name, path.read_bytes(), _COPY_MODE)
            put_folder(draft / CONTAINERS, copies)
    return copies


def _check_size(path: Path, size: tuple[int, int], needed: tuple[int, int]) -> None:
    if size != needed:
        told = f"{path} is for {size[0]} planes x {size[1]} slots"
        raise KeyringError(f"{told}; allowed is a keyring for {needed[0]} planes x {needed[1]} slots")
