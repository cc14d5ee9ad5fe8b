"""The constellation file: constellation.toml -> `Constellation`, checked before anything starts.

Each mistake is reported with its file, its line and the allowed values. Defaults are the paper's (section 5): 5 planes x 19
slots, twelve servers of which two hold parity, chunks of 6,000 bytes, blocks of 128 tokens.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator

from skymemory.common import defaults
from skymemory.common.checked_toml import CheckedModel, Mistake, contradiction, mistakes, read_toml, tell
from skymemory.common.input_error import InputError
from skymemory.sky.file_sections import (
    OTHERS,
    Cache,
    GridSettings,
    Links,
    Network,
    SatelliteSettings,
    Security,
    SiteSettings,
    TenantQuota,
)
from skymemory.sky.orbit import paper_distances
from skymemory.sky.placement.layouts import SERVERS_MAX
from skymemory.sky.placement.structures import STRIPE_ROW_MAX
from skymemory.sky.placement.torus import Direction, Torus
from skymemory.wire import icd
from skymemory.wire.address import Satellite

if TYPE_CHECKING:
    from skymemory.sky.orbit.walker import Walker

CONFIG_FILE = Path("constellation.toml")
KEYRING_VARIABLE = "SKYMEM_KEYRING"
"""Variable that names this machine's keyring, whatever the constellation file says: the file may be the same on all machines."""
KeyUse = Literal["any", "host", "satellites", "none"]
"""Use of the keyring that a constellation file names: any, of a host, to start satellites, or none, so that it need not exist."""
_EXPOSED = "and whoever reaches the satellites' network reads, changes and deletes; see security.keyring"
"""Warning to who uses an exposed constellation. Only starting one is refused: containers are on a bridge of this machine."""
_SLOT_STEP = 1024


class ConfigError(InputError, ValueError):
    """A constellation that cannot exist. The message has one line for each mistake."""


class LinkModel(NamedTuple):
    """Effects of one link's delay line on the packets that leave over it."""

    delay_us: int = 0
    jitter_us: int = 0
    rate_kbps: int = 0
    loss_ppm: int = 0
    cut: bool = False

    def __str__(self) -> str:
        """Return the option of `skysat`: delay_us=7600,jitter_us=0,rate_kbps=0,loss_ppm=0,cut=0."""
        return ",".join(f"{name}={int(value)}" for name, value in self._asdict().items())

    @property
    def ideal(self) -> bool:
        """True if the link needs no delay line."""
        return self == LinkModel()


class Constellation(CheckedModel):
    """All values on which ground and satellites must agree. Immutable.

    Raises:
        ConfigError: From `load` and `replace`. The constructor raises pydantic's ValidationError, a ValueError too.
    """

    grid: GridSettings = Field(default=GridSettings(), alias="constellation")
    network: Network = Network()
    satellite: SatelliteSettings = SatelliteSettings()
    links: Links = Links()
    cache: Cache = Cache()
    site: SiteSettings = SiteSettings()
    security: Security = Security()
    tenants: tuple[TenantQuota, ...] = Field(default=(), strict=False, description="tables [[tenants]]")

    @classmethod
    def load(cls, path: str | Path, keys: KeyUse = "any") -> "Constellation":
        """Read a constellation file, and check the keyring that it names, or that $SKYMEM_KEYRING names.

        Args:
            path: The file.
            keys: Use of the keyring.

        Raises:
            ConfigError: The file cannot be read or has mistakes. The message has one line `file:line: what is; allowed are ...`
                for each mistake, in the order of the file. Mistakes without a line, about values and sections that the file
                leaves out, come last.
        """
        path = Path(path)
        text, raw = read_toml(path, ConfigError)
        section = raw.get("security")
        if isinstance(section, dict) and isinstance(named := section.get("keyring"), str) and named:
            section["keyring"] = os.path.abspath(path.parent / named)
        try:
            constellation = cls.model_validate(_with_own_keyring(raw))
        except ValidationError as error:
            raise ConfigError(tell(path, text, mistakes(error, cls))) from error
        if keys != "none" and (why := constellation.find_keyring_mistake(keys)):
            raise ConfigError(why if _own_keyring() else tell(path, text, [(("security", "keyring"), why)]))
        return constellation

    def walker(self) -> "Walker":
        """Return the orbits that the file describes."""
        from skymemory.sky.orbit.walker import Walker  # it needs numpy and SGP4, most users of the file need neither

        grid = self.grid
        return Walker(grid.planes, grid.slots, grid.altitude_km, grid.inclination_deg, grid.geometry == "star")

    @classmethod
    def default(cls, keys: KeyUse = "any") -> "Constellation":
        """Return `constellation.toml` of the current folder if it exists, else the paper's constellation.

        Raises:
            ConfigError: As from `load`.
        """
        if CONFIG_FILE.is_file():
            return cls.load(CONFIG_FILE, keys)
        constellation = cls.model_validate(_with_own_keyring({}))
        if keys != "none" and (why := constellation.find_keyring_mistake(keys)):
            raise ConfigError(why)
        return constellation

    def find_keyring_mistake(self, keys: KeyUse) -> str:
        """Return what is wrong with the keyring for that use, or '' if nothing is or there is none."""
        if not self.security.keyring:
            return ""
        from skymemory.common.secret_files import SecretFileError
        from skymemory.security.constellation_keys import (
            check_host_file,
            check_keyring,
            check_satellite_files,
            find_satellite_files,
        )

        path = Path(self.security.keyring)
        try:
            if keys == "host":
                check_host_file(path)
            check_keyring(path, self.planes, self.slots, self.cache.tenant)
            if keys == "satellites":
                check_satellite_files(find_satellite_files(path), self.planes, self.slots)
        except SecretFileError as error:
            return f"{KEYRING_VARIABLE if _own_keyring() else 'security.keyring'}: {error}"
        return ""

    def of_host(self) -> "Constellation":
        """Return the constellation for a host of this machine: with the keyring that $SKYMEM_KEYRING names, if it names one.

        The keyring may be none for this constellation: `find_keyring_mistake("host")` tells.
        """
        own = _own_keyring()
        return self.replace(security={"keyring": os.path.abspath(own)}) if own else self

    def as_host(self) -> "Constellation":
        """Return the constellation as `of_host` does, once its keyring is checked.

        Raises:
            ConfigError: The keyring is none for this constellation or for hosts.
        """
        constellation = self.of_host()
        if why := constellation.find_keyring_mistake("host"):
            raise ConfigError(why)
        return constellation

    @property
    def is_exposed(self) -> bool:
        """True if satellites are at addresses that other machines may reach, without a keyring, and nobody decided so."""
        network = IPv4Network(self.network.network)
        return not (network.is_loopback or self.security.keyring or self.security.insecure)

    def check_exposure(self) -> None:
        """Check that satellites which other machines reach have a keyring, or are insecure by somebody's decision.

        Raises:
            ConfigError: Other machines reach them, and nothing protects them; the message has both ways out.
        """
        if self.is_exposed:
            raise ConfigError(
                f"network.network is {self.network.network}, where other machines reach the satellites, and no keyring protects "
                'them; allowed are security.keyring = "FILE" (`skymem keys new` makes one), or security.insecure = true, '
                "or a network inside 127.0.0.0/8"
            )

    def security_words(self, used: Collection[str]) -> str:
        """Return a sentence that tells people whether the links are protected, and how.

        Args:
            used: Names of the suites of this host's associations.
        """
        if self.security.keyring:
            return f"secured: {', '.join(used)}" if used else "secured: no satellite has made an association yet"
        return f"not secured: no keyring, {_EXPOSED}" if self.is_exposed else "not secured: no keyring"

    def replace(self, **sections: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> "Constellation":
        """Return a copy with some values changed, checked again: `replace(cache={"servers": 12})`.

        Sections and keys have their names of the file. A list replaces all tables: `replace(tenants=[{"number": 7}])`.

        Raises:
            ConfigError: The message has one line for each mistake.
        """
        raw = self.model_dump(by_alias=True, exclude_none=True)
        for section, values in sections.items():
            raw[section] = {**raw.get(section, {}), **values} if isinstance(values, Mapping) else values
        try:
            return type(self).model_validate(raw)
        except ValidationError as error:
            raise ConfigError("\n".join(what for _, what in mistakes(error, type(self)))) from error

    @model_validator(mode="after")
    def _check(self) -> "Constellation":
        if found := list(self._contradictions()):
            raise contradiction(found)
        return self

    def _contradictions(self) -> Iterator[Mistake]:
        """Yield the values that are right by themselves and wrong together."""
        grid, cache = self.grid, self.cache
        size = f"{grid.planes} planes x {grid.slots} slots"
        satellites = grid.planes * grid.slots
        if cache.servers > satellites:
            yield ("cache", "servers"), f"{_told('cache', cache, 'servers')}; allowed are 1 to {satellites} (planes x slots)"
        elif cache.servers > SERVERS_MAX:
            told = _told("cache", cache, "servers")
            yield ("cache", "servers"), f"{told}; allowed are 1 to {SERVERS_MAX:,}, as a satellite has room"
        else:
            yield from self._parity_contradictions()
        if cache.centre not in self.torus:
            yield ("cache", "centre"), f"{_told('cache', cache, 'centre')}; allowed are {self._places}"
        if cache.host == "satellite":
            for key, allowed in (("layout", "hop"), ("window", "logical")):
                if getattr(cache, key) != allowed:
                    told = f"{_told('cache', cache, key)} with a host on board (cache.host)"
                    yield ("cache", key), f'{told}; allowed is "{allowed}"'
        network = IPv4Network(self.network.network)
        needed = 256 * grid.planes + grid.slots + 1  # the broadcast address counts, too
        if needed >= network.num_addresses:
            yield (
                ("network", "network"),
                f"{_told('network', self.network, 'network')}, too small for {size}; "
                f"allowed are prefixes of /{32 - needed.bit_length()} and shorter",
            )
        geometry_us = self._longest_way_us() if self.links.model == "geometry" else 0
        if self.links.delay_us + geometry_us > defaults.MOST_DELAY_US:
            yield (
                ("links", "delay_us"),
                f"{_told('links', self.links, 'delay_us')} and comes on top of up to {geometry_us} from geometry; "
                f"allowed are 0 to {defaults.MOST_DELAY_US - geometry_us}",
            )
        security = self.security
        if security.keyring and security.insecure:
            yield ("security", "insecure"), "security.insecure is true, and there is a keyring; allowed is one of the two"
        if security.suite != "auto" and not security.keyring:
            yield (
                ("security", "suite"),
                f'security.suite is "{security.suite}" without a keyring; allowed is "auto", or a keyring',
            )
        yield from self._override_contradictions()
        yield from self._tenant_contradictions()

    def _parity_contradictions(self) -> Iterator[Mistake]:
        cache, most = self.cache, self.cache.servers - 1
        is_default = "parity" not in cache.model_fields_set
        if cache.parity > most and is_default:  # the file has no line for parity
            less = f"from 0 to {most}" if most else "= 0"
            told = f"{_told('cache', cache, 'servers')}, and {_told('cache', cache, 'parity')}"
            yield ("cache", "servers"), f"{told}; allowed are cache.servers from {cache.parity + 1}, or cache.parity {less}"
        elif cache.parity > most:
            allowed = f"allowed are 0 to {most}" if most else "allowed is 0"
            yield ("cache", "parity"), f"{_told('cache', cache, 'parity')}; {allowed} (servers - 1)"
        elif cache.parity and cache.servers > STRIPE_ROW_MAX:
            told = f"{_told('cache', cache, 'servers')}, and {_told('cache', cache, 'parity')}"
            allowed = f"{cache.parity + 1} to {STRIPE_ROW_MAX}, or cache.parity = 0"
            yield ("cache", "servers"), f"{told}; allowed are {allowed}"

    def _override_contradictions(self) -> Iterator[Mistake]:
        torus, overrides = self.torus, self.links.override
        cut = {(override.origin, override.target) for override in overrides if override.cut}
        seen: set[tuple[Satellite, Satellite]] = set()
        for index, override in enumerate(overrides):
            at = ("links", "override", index)
            origin, target = override.origin, override.target
            outside = [(key, end) for key, end in (("from", origin), ("to", target)) if end not in torus]
            for key, end in outside:
                yield (*at, key), f"links.override.{key} is {end}; allowed are {self._places}"
            neighbours = () if outside else tuple(dict.fromkeys(torus.neighbours(origin).values()))
            if not outside and target not in neighbours:
                allowed = ", ".join(str(end) for end in neighbours) or "none"
                yield (*at, "to"), f"links.override.to is {target}, not a neighbour of {origin}; allowed are {allowed}"
            if (origin, target) in seen:
                text = f"links.override appears twice for the link from {origin} to {target}; allowed is one for each direction"
                yield at, text
            elif override.cut is False and (target, origin) in cut:
                text = f"links.override.cut is false, while the link from {target} to {origin} is cut"
                yield (*at, "cut"), f"{text}; allowed is true, or nothing: a link is cut in both directions"
            seen.add((origin, target))

    def _tenant_contradictions(self) -> Iterator[Mistake]:
        seen: set[int | str] = set()
        reserved = 0
        for index, quota in enumerate(self.tenants):
            at = ("tenants", index)
            if quota.number in seen:
                text = f"tenants.number is {quota.number} for the second time; allowed is one table for each tenant"
                yield (*at, "number"), text
            seen.add(quota.number)
            if quota.reserved_percent > quota.most_percent:
                told = f"tenants.reserved_percent is {quota.reserved_percent}, more than most_percent"
                yield (*at, "reserved_percent"), f"{told}; allowed are 0 to {quota.most_percent}"
            left = max(100 - reserved, 0)
            reserved += quota.reserved_percent
            if quota.reserved_percent > left:
                told = f"tenants.reserved_percent is {quota.reserved_percent}, and with those before {reserved}"
                yield (*at, "reserved_percent"), f"{told}; allowed are 0 to {left}, 100 in all"
        if seen == {OTHERS}:
            yield ("tenants", 0, "number"), 'tenants.number is "others" alone; allowed is this beside a table of a tenant'
        if len(seen - {OTHERS}) > icd.LIMIT_TENANTS:
            yield (
                ("tenants", len(self.tenants) - 1),
                f"tenants has {len(seen - {OTHERS})} tenants; allowed are {icd.LIMIT_TENANTS}, as a satellite has room",
            )

    @property
    def _places(self) -> str:
        return f"[1, 1] to [{self.planes}, {self.slots}] ({self.planes} planes x {self.slots} slots)"

    @property
    def planes(self) -> int:
        """Planes of the torus."""
        return self.grid.planes

    @property
    def slots(self) -> int:
        """Slots of each plane."""
        return self.grid.slots

    @cached_property
    def torus(self) -> Torus:
        """The grid with its links."""
        return Torus(self.grid.planes, self.grid.slots, self.grid.seam == "cut")

    @cached_property
    def network_address(self) -> IPv4Address:
        return IPv4Network(self.network.network).network_address

    @cached_property
    def _addresses(self) -> dict[tuple[int, int], str]:
        """Addresses that were asked for: every call of a store asks again."""
        return {}

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot in a satellite's store: a chunk, rounded up to a multiple of 1,024 (6,000 -> 6,144)."""
        return min(-(-self.cache.chunk_bytes // _SLOT_STEP) * _SLOT_STEP, icd.LIMIT_CHUNK_BYTES)

    def address(self, plane: int, slot: int) -> str:
        """Return the IPv4 address of a satellite: network + 256 planes + slot, so (3, 10) of 127.18.0.0 is 127.18.3.10.

        Raises:
            ValueError: There is no such satellite.
        """
        known = self._addresses.get((plane, slot))
        if known is not None:
            return known
        if (plane, slot) not in self.torus:
            raise ValueError(f"satellite [{plane}, {slot}] is outside {self.planes} planes x {self.slots} slots")
        return self._addresses.setdefault((plane, slot), str(self.network_address + 256 * plane + slot))

    @cached_property
    def link_models(self) -> dict[Satellite, dict[Direction, LinkModel]]:
        """The link model of each link of each satellite, for the packets that leave over it.

        Delays with `links.model = "geometry"` are the largest that the paper's equations give: equation (1) within a plane, (2)
        between planes. So a constellation that meets its deadlines with them meets them all along the orbit. `links.delay_us`
        comes on top; an override's `delay_us` replaces the sum.

        A link that is cut in one direction is cut in both: nobody routes over a link that brings no hello back. So the other end
        knows it from the start, not after three lost hellos.
        """
        links = self.links
        slot_us = plane_us = links.delay_us
        if links.model == "geometry":
            cross_km, in_km = self._neighbours_km()
            slot_us += paper_distances.delay_us(in_km)
            plane_us += paper_distances.delay_us(cross_km)
        common = LinkModel(0, links.jitter_us, links.rate_kbps, links.loss_ppm)
        within, between = common._replace(delay_us=slot_us), common._replace(delay_us=plane_us)
        changes = {
            (override.origin, override.target): override.model_dump(exclude={"origin", "target"}, exclude_none=True)
            for override in links.override
        }
        for override in links.override:
            if override.cut:
                changes[override.target, override.origin] = {**changes.get((override.target, override.origin), {}), "cut": True}
        return {
            origin: {
                direction: (within if direction in (Direction.EAST, Direction.WEST) else between)._replace(
                    **changes.get((origin, target), {})
                )
                for direction, target in self.torus.neighbours(origin).items()
            }
            for origin in self.torus.satellites()
        }

    def named_link_models(self, satellite: Satellite) -> dict[str, LinkModel]:
        """Return the models of a satellite's links by name: its neighbours' directions, and `ground`."""
        return {
            **{direction.value: model for direction, model in self.link_models[satellite].items()},
            "ground": self.ground_model(*satellite),
        }

    def ground_model(self, plane: int, slot: int) -> LinkModel:
        """Return the link model between a satellite and the ground, one way.

        The delay with `links.model = "geometry"` is that of equation (4), with the site under the window's centre. Overrides are
        about inter-satellite links only.
        """
        links, centre = self.links, self.cache.centre
        delay = links.delay_us
        if links.model == "geometry":
            torus = Torus(self.planes, self.slots)
            steps = torus.plane_offset(centre.plane, plane), torus.slot_offset(centre.slot, slot)
            away_km = paper_distances.grid_km(*steps, *self._neighbours_km())
            delay += paper_distances.delay_us(paper_distances.ground_km(away_km, self.grid.altitude_km))
        return LinkModel(delay, links.jitter_us, links.rate_kbps, links.loss_ppm)

    def _longest_way_us(self) -> int:
        """Return the largest delay that geometry gives any link; one is the link from the ground to the farthest satellite."""
        cross_km, in_km = self._neighbours_km()
        away_km = paper_distances.grid_km(self.planes // 2, self.slots // 2, cross_km, in_km)
        return paper_distances.delay_us(max(cross_km, in_km, paper_distances.ground_km(away_km, self.grid.altitude_km)))

    def _neighbours_km(self) -> tuple[float, float]:
        """Return the largest distance of neighbours in different planes, and the distance of neighbours in one plane."""
        grid = self.grid
        return (
            paper_distances.cross_plane_km(grid.planes, grid.altitude_km, grid.geometry == "star"),
            paper_distances.in_plane_km(grid.slots, grid.altitude_km),
        )


def _own_keyring() -> str:
    return os.environ.get(KEYRING_VARIABLE, "")


def _with_own_keyring(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a file with the keyring that this machine names."""
    section = raw.get("security", {})
    if not (own := _own_keyring()) or not isinstance(section, dict):
        return raw
    return {**raw, "security": {**section, "keyring": os.path.abspath(own)}}


def _told(name: str, section: CheckedModel, key: str) -> str:
    """Return `cache.servers is 10`, with `by default` if the value was not set."""
    value = getattr(section, key)
    return f"{name}.{key} is {value}{'' if key in section.model_fields_set else ' by default'}"
