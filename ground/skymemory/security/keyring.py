"""Keyrings: what a host, or the mission, needs to associate with satellites. JSON files that only their owner may read.

A host's keyring has its credential and one key a satellite, and so gives away no other key. The mission's has the root from
which all keys follow, and the list of hosts.
"""

import base64
import binascii
import hashlib
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from skymemory.common import defaults
from skymemory.common.checked_toml import CheckedModel
from skymemory.common.input_error import InputError
from skymemory.common.secret_files import SecretFileError, read_secret
from skymemory.security.credential import GENERATION_MAX, Credential, CredentialError, Role, told_tenants
from skymemory.security.derivation import KEY_BYTES, RootKeys, pair_key
from skymemory.wire.address import Satellite

MISSION_NAME: Final = "mission"
"""Name in the mission's own credential."""
_BYTES_MAX: Final = 8 << 20
"""Most bytes of a keyring; the largest constellation's has 2.8 MB."""
_Planes = Annotated[int, Field(ge=1, le=defaults.MOST_PLANES)]
_Slots = Annotated[int, Field(ge=1, le=defaults.MOST_SLOTS)]
_Generation = Annotated[int, Field(ge=1, le=GENERATION_MAX)]
Tenants = tuple[int, ...] | Literal["any"]


class KeyringError(InputError, SecretFileError):
    """A keyring is missing, open to others, damaged or in the way. The message names it and says what is allowed."""


class HostRecord(CheckedModel):
    """A host to which the mission has given a keyring."""

    name: str
    tenants: Tenants

    def credential(self, generation: int) -> Credential:
        """Return its credential."""
        return Credential(Role.HOST, self.name, None if self.tenants == "any" else self.tenants, generation)


class _HostFile(CheckedModel):
    kind: Literal["host"]
    format: Literal[1]
    name: str
    tenants: Tenants
    generation: _Generation
    planes: _Planes
    slots: _Slots
    pair_keys: str
    fingerprint: str


class _MissionFile(CheckedModel):
    kind: Literal["mission"]
    format: Literal[1]
    generation: _Generation
    planes: _Planes
    slots: _Slots
    root: str
    hosts: tuple[HostRecord, ...]
    revoked: tuple[str, ...]
    fingerprint: str


_FILE: Final[TypeAdapter[_HostFile | _MissionFile]] = TypeAdapter(
    Annotated[_HostFile | _MissionFile, Field(discriminator="kind")]
)


class Keyring(ABC):
    """Keys of one host, or of the mission."""

    def __init__(self, credential: Credential, planes: int, slots: int, fingerprint: str) -> None:
        self.role = credential.role
        self.name = credential.name
        self.tenants = credential.tenants
        """Tenants that it may name; None: any."""
        self.generation = credential.generation
        self.planes = planes
        self.slots = slots
        self.fingerprint = fingerprint
        """Short digest of the file, by which people compare two of them. It is no secret."""
        self.credential = credential.pack()

    @abstractmethod
    def pair_key(self, plane: int, slot: int) -> bytes:
        """Return the key shared with a satellite, 32 bytes.

        Raises:
            ValueError: There is no such satellite.
        """

    @abstractmethod
    def packed_pair_keys(self) -> bytes:
        """Return the keys shared with all satellites, plane by plane, 32 bytes each."""

    @property
    def owner(self) -> str:
        """Words for people: whose keyring it is, and its generation."""
        who = "the mission" if self.role is Role.MISSION else f"host {self.name}"
        return f"{who} of generation {self.generation}"

    def _check_place(self, plane: int, slot: int) -> None:
        if not (1 <= plane <= self.planes and 1 <= slot <= self.slots):
            raise ValueError(f"satellite [{plane}, {slot}] is outside {self.planes} planes x {self.slots} slots")

    def __repr__(self) -> str:
        tenants = told_tenants(self.tenants)
        return f"Keyring({self.role.name.lower()} {self.name}, tenants {tenants}, generation {self.generation})"


class HostKeyring(Keyring):
    """Keyring of a host."""

    def __init__(self, credential: Credential, planes: int, slots: int, fingerprint: str, pair_keys: bytes) -> None:
        super().__init__(credential, planes, slots, fingerprint)
        self._pair_keys = pair_keys

    def pair_key(self, plane: int, slot: int) -> bytes:
        self._check_place(plane, slot)
        at = ((plane - 1) * self.slots + slot - 1) * KEY_BYTES
        return self._pair_keys[at : at + KEY_BYTES]

    def packed_pair_keys(self) -> bytes:
        return self._pair_keys


class MissionKeyring(Keyring):
    """Keyring of the mission: the root of all keys, and the hosts that have a keyring."""

    def __init__(
        self, root: bytes, planes: int, slots: int, generation: int, hosts: tuple[HostRecord, ...], revoked: tuple[str, ...]
    ) -> None:
        self._root = root
        self._keys = RootKeys(root, generation)
        self.hosts = hosts
        self.revoked = revoked
        """Names that no host gets again."""
        credential = Credential(Role.MISSION, MISSION_NAME, None, generation)
        super().__init__(credential, planes, slots, "")
        self.fingerprint = _fingerprint(self._fields())

    def satellites(self) -> list[Satellite]:
        """Return all satellites, plane by plane."""
        return [Satellite(plane, slot) for plane in range(1, self.planes + 1) for slot in range(1, self.slots + 1)]

    def pair_key(self, plane: int, slot: int) -> bytes:
        self._check_place(plane, slot)
        return pair_key(self.master_key(Satellite(plane, slot)), self.credential)

    def packed_pair_keys(self) -> bytes:
        return self.host_pair_keys(self.credential)

    def host_pair_keys(self, credential: bytes) -> bytes:
        """Return the keys that satellites share with the holder of a packed credential, plane by plane."""
        return b"".join(pair_key(self.master_key(place), credential) for place in self.satellites())

    def master_key(self, place: Satellite) -> bytes:
        """Return the master key of a satellite in this generation, 32 bytes."""
        return self._keys.master_key(place)

    def master_keys(self) -> dict[Satellite, bytes]:
        """Return the master key of each satellite: after `next`, the new ones that satellites in the sky need."""
        return {place: self.master_key(place) for place in self.satellites()}

    def peer_key(self, one: Satellite, other: Satellite) -> bytes:
        """Return the key between two satellites, 32 bytes; zeros between a satellite and itself."""
        return bytes(KEY_BYTES) if one == other else self._keys.peer_key(one, other)

    def changed(
        self,
        *,
        generation: int | None = None,
        hosts: tuple[HostRecord, ...] | None = None,
        revoked: tuple[str, ...] | None = None,
    ) -> "MissionKeyring":
        """Return the keyring with another generation or other hosts."""
        return MissionKeyring(
            self._root,
            self.planes,
            self.slots,
            self.generation if generation is None else generation,
            self.hosts if hosts is None else hosts,
            self.revoked if revoked is None else revoked,
        )

    def dump(self) -> bytes:
        """Return the content of its file."""
        return _dump(self._fields())

    def dump_host(self, host: HostRecord) -> bytes:
        """Return the content of the keyring of a host."""
        keys = self.host_pair_keys(host.credential(self.generation).pack())
        return _dump(
            {
                "kind": "host",
                "format": 1,
                "name": host.name,
                "tenants": host.tenants,
                "generation": self.generation,
                "planes": self.planes,
                "slots": self.slots,
                "pair_keys": base64.b64encode(keys).decode(),
            }
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "kind": "mission",
            "format": 1,
            "generation": self.generation,
            "planes": self.planes,
            "slots": self.slots,
            "root": base64.b64encode(self._root).decode(),
            "hosts": [host.model_dump(mode="json") for host in self.hosts],
            "revoked": list(self.revoked),
        }


def parse_keyring(content: bytes) -> HostKeyring | MissionKeyring:
    """Return the keyring that a file holds.

    Raises:
        ValueError: It is no keyring; the message says why, and shows nothing of it.
    """
    try:
        file = _FILE.validate_json(content)
    except ValidationError as error:  # its own text shows secrets
        place = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"] if part not in ("host", "mission"))
        raise ValueError(f"its {place} is not valid" if place else "it is no keyring") from None
    fields = file.model_dump(mode="json", exclude={"fingerprint"})
    if _fingerprint(fields) != file.fingerprint:
        raise ValueError("its fingerprint is another")
    try:
        if isinstance(file, _MissionFile):
            root = _decoded("root", file.root, KEY_BYTES)
            for host in file.hosts:
                host.credential(file.generation)
            return MissionKeyring(root, file.planes, file.slots, file.generation, file.hosts, file.revoked)
        credential = HostRecord(name=file.name, tenants=file.tenants).credential(file.generation)
        keys = _decoded("pair_keys", file.pair_keys, file.planes * file.slots * KEY_BYTES)
        return HostKeyring(credential, file.planes, file.slots, file.fingerprint, keys)
    except CredentialError as error:
        raise ValueError(str(error)) from error


def load_keyring(path: str | Path) -> HostKeyring | MissionKeyring:
    """Read a keyring.

    Raises:
        KeyringError: The file cannot be read, others may read it, or it is damaged.
    """
    path = Path(path)
    try:
        return parse_keyring(read_secret(path, _BYTES_MAX))
    except ValueError as error:
        raise KeyringError(f"{path} is damaged: {error}") from error
    except SecretFileError as error:
        raise KeyringError(str(error)) from error


def _decoded(what: str, text: str, count: int) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"its {what} is not base64") from None
    if len(content) != count:
        raise ValueError(f"its {what} has {len(content)} bytes instead of {count}")
    return content


def _dump(fields: dict[str, Any]) -> bytes:
    return (json.dumps({**fields, "fingerprint": _fingerprint(fields)}, indent=1) + "\n").encode()


def _fingerprint(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8, person=b"skymem keyring").hexdigest()
