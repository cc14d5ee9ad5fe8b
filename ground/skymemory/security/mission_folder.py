"""The folder of a mission's keys.

    FOLDER/mission.json                      the mission's keyring, from which all other files can be made again
    FOLDER/generation-N/hosts/NAME.json      keyrings of hosts
    FOLDER/generation-N/satellites/P-S.key   key files of satellites

Each step first makes the new files in a draft that nobody looks at, then replaces mission.json, then gives the draft its name. A
step that was killed in between is finished by the next one.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from skymemory.common.input_error import InputError
from skymemory.common.progress import Progress
from skymemory.common.secret_files import (
    SecretFileError,
    clear_drafts,
    drafted,
    make_folder,
    put_folder,
    replace_secret,
    sync,
    write_secret,
)
from skymemory.security.credential import GENERATION_MAX
from skymemory.security.derivation import KEY_BYTES
from skymemory.security.keyring import HostRecord, KeyringError, MissionKeyring, load_keyring
from skymemory.security.satellite_file import SatelliteKeys, file_name
from skymemory.wire.address import Satellite

MISSION_FILE: Final = "mission.json"
MOST_TOGETHER: Final = 2048
"""Most satellites whose key files are made together: 128 MiB of files, and 2 million derivations."""
_FIRST_GENERATION: Final = 1


class MissionError(InputError, RuntimeError):
    """A step that the mission's keys do not allow. The message says what is allowed."""


def mission_file(path: Path) -> Path:
    """Return the mission's keyring that a path names: the file itself, or its folder."""
    return path / MISSION_FILE if path.is_dir() else path


def mission_folder(path: Path) -> Path:
    """Return the folder of a mission that a path names: the folder itself, or the mission's keyring in it."""
    return path.parent if path.name == MISSION_FILE and not path.is_dir() else path


def load_mission(path: Path) -> MissionKeyring:
    """Read the mission's keyring.

    Args:
        path: The file or its folder.

    Raises:
        KeyringError: It cannot be read, or is a host's.
    """
    file = mission_file(path)
    keyring = load_keyring(file)
    if not isinstance(keyring, MissionKeyring):
        raise KeyringError(f"{file} is the keyring of host {keyring.name}; allowed is the mission's, {MISSION_FILE}")
    return keyring


def generation_folder(folder: Path, generation: int) -> Path:
    """Return the folder of the files of one generation."""
    return folder / f"generation-{generation}"


def host_file(folder: Path, generation: int, name: str) -> Path:
    """Return the keyring of a host."""
    return generation_folder(folder, generation) / "hosts" / f"{name}.json"


def satellites_folder(folder: Path, generation: int) -> Path:
    """Return the folder of the key files of satellites."""
    return generation_folder(folder, generation) / "satellites"


def begin_mission(folder: Path, planes: int, slots: int, host: HostRecord, progress: Progress | None = None) -> MissionKeyring:
    """Draw a root, and make the folder with the keyrings of the mission and of a first host.

    Raises:
        CredentialError: The host's name or tenants are not allowed.
        SecretFileError: The folder exists, or cannot be written.
    """
    host.credential(_FIRST_GENERATION)
    _check_free(folder)
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SecretFileError(f"{folder}: {error.strerror or error}") from error
    mission = MissionKeyring(secrets.token_bytes(KEY_BYTES), planes, slots, _FIRST_GENERATION, (host,), ())
    with drafted(folder.absolute().parent) as draft:
        whole = draft / folder.name
        make_folder(whole)
        _write_generation(generation_folder(whole, mission.generation), mission, progress)
        write_secret(whole / MISSION_FILE, mission.dump())
        sync(whole / MISSION_FILE)
        sync(whole)
        put_folder(whole, folder)
    sync(folder.absolute().parent)
    return mission


def add_host(folder: Path, host: HostRecord) -> tuple[MissionKeyring, Path]:
    """Make the keyring of a further host; make that of a known one again if its file is gone.

    Raises:
        CredentialError: Its name or tenants are not allowed.
        MissionError: Its name is revoked, or the host has its keyring, or other tenants.
        SecretFileError: A file cannot be read or written.
    """
    with _opened(folder) as mission:
        host.credential(mission.generation)
        path = host_file(folder, mission.generation, host.name)
        if host.name in mission.revoked:
            raise MissionError(f"{host.name} is revoked; allowed are names that no host had")
        known = next((one for one in mission.hosts if one.name == host.name), None)
        if known is not None and known != host:
            raise MissionError(f"{host.name} has other tenants; revoke it, and choose another name for the new keyring")
        if known is not None and path.exists():
            raise MissionError(f"{host.name} has its keyring: {path}")
        if known is None:
            mission = mission.changed(hosts=(*mission.hosts, host))
        with drafted(folder) as draft:
            write_secret(draft / path.name, mission.dump_host(host))
            if known is None:
                replace_secret(folder / MISSION_FILE, mission.dump())
            with suppress(FileExistsError):
                make_folder(path.parent)
            (draft / path.name).replace(path)  # what may lie there is of a step that did not end
        return mission, path


def rotate(folder: Path, revoked: str | None = None, progress: Progress | None = None) -> MissionKeyring:
    """Begin the next generation: new files for all satellites and hosts, beside the old ones.

    Args:
        revoked: Name of a host that gets none.

    Raises:
        MissionError: There is no such host, or no further generation.
        SecretFileError: A file cannot be read or written.
    """
    with _opened(folder) as mission:
        if mission.generation == GENERATION_MAX:
            raise MissionError(
                f"{folder} is at generation {GENERATION_MAX}, the last; begin a new mission with `skymem keys new`"
            )
        hosts, names = mission.hosts, mission.revoked
        if revoked is not None:
            known = [host.name for host in hosts]
            if revoked not in known:
                told = "is revoked already" if revoked in names else "is no host of this mission"
                raise MissionError(f"{revoked} {told}; allowed are {', '.join(known) or 'none'}")
            hosts = tuple(host for host in hosts if host.name != revoked)
            names = (*names, revoked)
        following = mission.changed(generation=mission.generation + 1, hosts=hosts, revoked=names)
        target = generation_folder(folder, following.generation)
        if os.path.lexists(target):
            raise KeyringError(f"{target} exists, and is not of this mission; move it away")
        with drafted(folder) as draft:
            _write_generation(draft / target.name, following, progress)
            replace_secret(folder / MISSION_FILE, following.dump())
            put_folder(draft / target.name, target)
        return following


def export_satellites(
    mission: MissionKeyring, folder: Path, places: Sequence[Satellite], progress: Progress | None = None
) -> None:
    """Write the key files of some satellites into a new folder.

    Raises:
        SecretFileError: The folder exists, or cannot be written.
    """
    _check_free(folder)
    with drafted(folder.absolute().parent) as draft:
        make_folder(draft / folder.name)
        for number, place in enumerate(places, start=1):
            write_secret(draft / folder.name / file_name(place), satellite_keys(mission, place).pack())
            if progress is not None:
                progress(number, len(places))
        put_folder(draft / folder.name, folder)


def satellite_keys(mission: MissionKeyring, place: Satellite) -> SatelliteKeys:
    """Return the keys of one satellite."""
    peers = b"".join(mission.peer_key(place, other) for other in mission.satellites())
    return SatelliteKeys(mission.generation, mission.planes, mission.slots, place, mission.master_key(place), peers)


def _check_free(folder: Path) -> None:
    if os.path.lexists(folder):
        raise KeyringError(f"{folder} exists; allowed is a folder that does not")


@contextmanager
def _opened(folder: Path) -> Iterator[MissionKeyring]:
    """Give the mission's keyring while no other command works in the folder; finish what a killed one began."""
    mission = load_mission(folder)  # this says best why it is none
    if not folder.is_dir():
        raise MissionError(f"{folder} is no folder; allowed are the mission's folder, and {MISSION_FILE} in it")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        mission = load_mission(folder)
        clear_drafts(folder)
        target = generation_folder(folder, mission.generation)
        if not target.exists():
            with drafted(folder) as draft:
                _write_generation(draft / target.name, mission, None)
                put_folder(draft / target.name, target)
        yield mission
    finally:
        os.close(descriptor)


def _write_generation(folder: Path, mission: MissionKeyring, progress: Progress | None) -> None:
    make_folder(folder)
    make_folder(folder / "hosts")
    for host in mission.hosts:
        write_secret(folder / "hosts" / f"{host.name}.json", mission.dump_host(host))
    if mission.planes * mission.slots <= MOST_TOGETHER:
        _write_all(folder / "satellites", mission, progress)


def _write_all(folder: Path, mission: MissionKeyring, progress: Progress | None) -> None:
    """Write the files of all satellites; each key is derived once and stands in two of them."""
    places = mission.satellites()
    row_bytes = len(places) * KEY_BYTES
    table = bytearray(len(places) * row_bytes)
    make_folder(folder)
    for number, place in enumerate(places):
        for other in range(number + 1, len(places)):
            key = mission.peer_key(place, places[other])
            for row, column in ((number, other), (other, number)):
                at = row * row_bytes + column * KEY_BYTES
                table[at : at + KEY_BYTES] = key
        peers = bytes(table[number * row_bytes : (number + 1) * row_bytes])
        keys = SatelliteKeys(mission.generation, mission.planes, mission.slots, place, mission.master_key(place), peers)
        write_secret(folder / file_name(place), keys.pack())
        if progress is not None:
            progress(number + 1, len(places))
