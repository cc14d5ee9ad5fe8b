"""Sections of the constellation file, each a model with the values that are allowed."""

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator

from skymemory.common import defaults
from skymemory.common.checked_toml import CheckedModel, numbers, whole_numbers
from skymemory.sky.placement.layouts import LayoutName
from skymemory.wire import icd
from skymemory.wire.address import Satellite

SUITES = "gmac_header", "gmac_packet", "blake2b_header", "blake2b_packet"
"""Names of the security suites, as in the ICD."""
UINT32_MAX = 2**32 - 1
PACKET_BYTES_MIN = 1200
"""Least packet that has room for the control plane's largest answer, and for the largest chunk in `icd.LIMIT_FRAGMENTS` packets.
"""
OTHERS = "others"
"""Word for all tenants without a quota of their own."""


def _switch(default: bool) -> Any:
    return Field(default=default, description="true and false")


def _choice(default: str, *choices: str) -> Any:
    quoted = [f'"{choice}"' for choice in choices]
    return Field(default=default, description=f"{', '.join(quoted[:-1])} and {quoted[-1]}")


def satellite_of(value: object) -> Satellite:
    """Return the satellite that a file names as [plane, slot]. Raise ValueError if it is none."""
    if (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) and number >= 1 for number in value)
    ):
        return Satellite(*value)
    raise ValueError("not a satellite")  # the field's own text replaces this one


def _network(value: str) -> str:
    first = int(IPv4Network(value).network_address)
    if first % 65536 or not 1 <= first >> 24 <= 223:
        raise ValueError("satellites cannot have these addresses")  # the field's own text replaces this one
    return value


SatelliteField = Annotated[Satellite, PlainValidator(satellite_of), PlainSerializer(list, return_type=list[int])]
_SATELLITE_ALLOWED = "[plane, slot], both from 1"


def _tenant(value: object) -> int | str:
    if value == OTHERS or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= UINT32_MAX):
        return value
    raise ValueError("not a tenant")  # the field's own text replaces this one


TenantField = Annotated[int | str, PlainValidator(_tenant)]


class GridSettings(CheckedModel):
    """[constellation]: size and orbits."""

    planes: int = whole_numbers(5, 1, defaults.MOST_PLANES, " (the third byte of an address)")
    slots: int = whole_numbers(19, 1, defaults.MOST_SLOTS, " (the last byte of an address)")
    altitude_km: float = numbers(550.0, 160, 2000)
    inclination_deg: float = numbers(87.9, 0, 180)
    geometry: Literal["star", "delta"] = _choice("star", "star", "delta")
    seam: Literal["logical", "cut"] = _choice("logical", "logical", "cut")


class Network(CheckedModel):
    """[network]: addresses. Satellite (p, s) has the address network + 256 p + s; all listen at one port.

    Any unicast network is allowed, because satellites may be machines of their own. Refused are addresses that no machine can
    have: 0.0.0.0/8, multicast, and the reserved rest with the broadcast address.
    """

    network: Annotated[str, AfterValidator(_network)] = Field(
        default=f"{IPv4Address(defaults.DEFAULT_NETWORK_IPV4)}/16",
        description='IPv4 networks A.B.0.0/N such as "127.18.0.0/16", A from 1 to 223, no bits set behind the prefix',
    )
    port: int = whole_numbers(icd.UDP_PORT, 1, 65535)
    mtu: int = whole_numbers(icd.LIMIT_PACKET_BYTES, PACKET_BYTES_MIN, icd.LIMIT_PACKET_BYTES)

    @property
    def base(self) -> str:
        """The network's address without its prefix, as `skysat --network` wants it."""
        return str(IPv4Network(self.network).network_address)


class SatelliteSettings(CheckedModel):
    """[satellite]: memory and periodic tasks of each satellite."""

    store_mib: int = whole_numbers(defaults.DEFAULT_STORE_MIB, 1, defaults.MOST_STORE_MIB)
    credit: int = whole_numbers(defaults.DEFAULT_CREDIT, 1, icd.LIMIT_CHUNK_SET)
    hello_s: int = whole_numbers(defaults.DEFAULT_HELLO_S, 1, defaults.MOST_HELLO_S)
    gossip: bool = _switch(False)
    scrub_s: int = whole_numbers(defaults.DEFAULT_SCRUB_MS // 1000, 0, defaults.MOST_SCRUB_MS // 1000)
    log_json: bool = _switch(False)


class Override(CheckedModel):
    """[[links.override]]: one link, in one direction; a key that is left out keeps the value of all links."""

    origin: SatelliteField = Field(alias="from", description=_SATELLITE_ALLOWED)
    target: SatelliteField = Field(alias="to", description=_SATELLITE_ALLOWED)
    delay_us: int | None = whole_numbers(None, 0, defaults.MOST_DELAY_US)
    jitter_us: int | None = whole_numbers(None, 0, defaults.MOST_DELAY_US)
    rate_kbps: int | None = whole_numbers(None, 0, UINT32_MAX)
    loss_ppm: int | None = whole_numbers(None, 0, 1_000_000)
    cut: bool | None = Field(default=None, description="true and false")


class Links(CheckedModel):
    """[links]: emulation of inter-satellite and ground links, off by default."""

    model: Literal["off", "geometry"] = _choice("off", "off", "geometry")
    delay_us: int = whole_numbers(0, 0, defaults.MOST_DELAY_US)
    jitter_us: int = whole_numbers(0, 0, defaults.MOST_DELAY_US)
    rate_kbps: int = whole_numbers(0, 0, UINT32_MAX)
    loss_ppm: int = whole_numbers(0, 0, 1_000_000)
    override: tuple[Override, ...] = Field(default=(), strict=False, description="tables [[links.override]]")


class Cache(CheckedModel):
    """[cache]: how blocks are cut, laid out and reached."""

    servers: int = Field(default=12, ge=1, description="whole numbers from 1 to planes x slots")
    parity: int = Field(default=2, ge=0, description="whole numbers from 0 to servers - 1")
    """Servers of these that hold parity: so many may be lost. 0: a block needs all of its servers."""
    ask_all: bool = False
    """True: a get asks for parity at once, so that slow satellites do not hold it up. False: it asks once a satellite is slow."""
    chunk_bytes: int = whole_numbers(6000, 1, icd.LIMIT_CHUNK_BYTES)
    layout: LayoutName = _choice("rotation_hop", "rotation", "hop", "rotation_hop", "all_planes")
    window: Literal["logical", "physical"] = _choice("logical", "logical", "physical")
    uplink: Literal["window", "nearest"] = _choice("window", "window", "nearest")
    host: Literal["ground", "satellite"] = _choice("ground", "ground", "satellite")
    centre: SatelliteField = Field(default=Satellite(3, 10), description=_SATELLITE_ALLOWED)
    block_tokens: int = whole_numbers(128, 1, 65536)
    codec: Literal["raw", "int8", "int4", "int4g16", "int4g32", "quanto", "hqq"] = _choice(
        "raw", "raw", "int8", "int4", "int4g16", "int4g32", "quanto", "hqq"
    )
    tenant: int = whole_numbers(0, 0, UINT32_MAX)
    deadline_ms: int = whole_numbers(5000, 1, 3_600_000)
    handover_s: float = numbers(defaults.DEFAULT_HANDOVER_MS / 1000, 0, defaults.MOST_HANDOVER_MS / 1000)
    lazy_purge: bool = _switch(True)


class TenantQuota(CheckedModel):
    """[[tenants]]: a tenant's share of each satellite's store. The number "others": all tenants without a table together."""

    number: TenantField = Field(description=f'whole numbers from 0 to {UINT32_MAX} and "others"')
    reserved_percent: int = whole_numbers(0, 0, 100)
    most_percent: int = whole_numbers(100, 0, 100)

    def __str__(self) -> str:
        """Return the value of `skysat --tenant`: 7:25:50."""
        return f"{self.number}:{self.reserved_percent}:{self.most_percent}"


class SiteSettings(CheckedModel):
    """[site]: place of the ground host; used by the physical window."""

    latitude_deg: float = numbers(37.4, -90, 90)
    longitude_deg: float = numbers(-122.1, -180, 180)
    min_elevation_deg: float = numbers(10.0, 0, 90)


class Security(CheckedModel):
    """[security]: how links are protected."""

    keyring: str = Field(default="", description='names of files, such as "keys/mission.json"')
    """Absolute path once a file was loaded; '' if there is none."""
    suite: Literal["auto", "gmac_header", "gmac_packet", "blake2b_header", "blake2b_packet"] = _choice("auto", "auto", *SUITES)
    """Suite to ask satellites for."""
    insecure: bool = _switch(False)
