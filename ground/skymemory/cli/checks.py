"""Checks of `skymem doctor`: each looks at one thing, changes nothing, and says what it found and what can be done."""

import importlib.util
import os
import platform
import resource
import shutil
import socket
import stat
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import version
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final, Literal
from urllib.error import HTTPError

from prometheus_client.parser import text_string_to_metric_families

from skymemory.common.extras import how_to_install
from skymemory.common.input_error import InputError
from skymemory.common.machine import free_memory_bytes, number
from skymemory.common.secret_files import FILE_MODE, FOLDER_MODE
from skymemory.common.state_folder import agent_socket, http_record, is_own
from skymemory.link.control import ControlPlane
from skymemory.security.keyring import load_keyring
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.testbed import satellite_program
from skymemory.testbed.docker import DockerError, compose_command
from skymemory.testbed.local import StartError, check_addresses
from skymemory.testbed.room_for_satellites import refusal, rooms
from skymemory.testbed.run_record import Running

State = Literal["well", "note", "mend"]
"""Judgement: all is well; something is missing or slower than it could be, and may stay so; something does not work."""

PING_S: Final = 3.0
"""Seconds for which satellites and the agent are waited for."""
NAMED_MOST: Final = 8
"""Most satellites that are named one by one."""
DISK_BYTES: Final = 64 << 20
"""Free bytes that logs and records want."""
BUFFER_BYTES: Final = 8 << 20
"""Bytes of a receive buffer that a host asks for; 4 MiB of them to send."""
DESCRIPTORS: Final = 2048
"""Open files with which an agent serves all that may connect."""
_OTHERS: Final = 0o077
_METRICS_BYTES_MAX: Final = 4 << 20
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opener that asks this host itself, whatever $http_proxy says."""


@dataclass(frozen=True)
class Finding:
    """Result of a check."""

    about: str
    state: State
    found: str
    cure: str = ""
    """Remedy, for people; '' if all is well."""


def check_package() -> Iterator[Finding]:
    """Check that the package is whole, and name its version."""
    told = (
        f"skymemory {version('skymemory')}, Python {platform.python_version()}, Linux {platform.release()} {platform.machine()}"
    )
    try:
        satellite_program.program()
    except FileNotFoundError as error:
        yield Finding("package", "mend", str(error), "`make`, or `pip install .` in the checkout")
    else:
        yield Finding("package", "well", told)
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        use = "`demo`, `serve`, `segment add` and `pic check` need it"
        yield Finding("models", "note", f"{how_to_install(missing[0], 'model')}: {use}", "install it if you want these commands")


def check_state_folder(folder: Path) -> Iterator[Finding]:
    """Check that the state folder can be written to, has room, and is this user's own, as are the secrets in it."""
    about = "state folder"
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        yield Finding(about, "mend", f"{above} cannot be written to", "make it yours, or let $SKYMEM_STATE name another folder")
        return
    free = shutil.disk_usage(above).free
    if free < DISK_BYTES:
        room = f"{free / 2**20:,.0f} MiB are free, {DISK_BYTES >> 20} are wanted for logs and records"
        yield Finding(about, "mend", f"{above}: {room}", "make room, or let $SKYMEM_STATE name a folder on another disk")
    if not folder.is_dir():
        yield Finding(about, "well", f"{folder} is made when it is needed")
        return
    found = folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if not is_own(found):
        yield Finding(about, "mend", f"{folder} is not this user's own", "let $SKYMEM_STATE name a folder of your own")
    elif mode & _OTHERS:
        state: State = "mend" if mode & 0o022 else "note"
        may = "change" if mode & 0o022 else "see"
        yield Finding(
            about, state, f"{folder} has mode {mode:04o}: others may {may} what is in it", f"chmod {FOLDER_MODE:o} {folder}"
        )
    elif free >= DISK_BYTES:
        yield Finding(about, "well", f"{folder}, {free / 1e9:,.1f} GB free")
    for file in sorted(folder.glob("*secret")):
        told = file.lstat()
        mode = stat.S_IMODE(told.st_mode)
        if stat.S_ISREG(told.st_mode) and mode & _OTHERS:
            cure = f"chmod {FILE_MODE:o} {file}; if others may have read it, begin anew with another secret"
            yield Finding("keys", "mend", f"{file} has mode {mode:04o}: others may read it", cure)
    for note in sorted(folder.glob("*.made")):
        if not (secret := note.with_suffix("")).exists():
            cure = f"put a copy of it there; to begin anew without what was stored, remove {note}"
            yield Finding("keys", "mend", f"{secret} is missing, and without it nothing is found", cure)


def check_constellation(constellation: Constellation, running: Running | None, remains: int) -> Iterator[Finding]:
    """Check that the satellites that should run do and answer, or that there is room to start them.

    Args:
        constellation: The constellation.
        running: Its record, if `skymem up` started it.
        remains: Satellites that run without a record.
    """
    about, places = "constellation", list(constellation.torus.satellites())
    with ControlPlane(constellation) as control:
        answered = control.ping([Route(place, place) for place in places], PING_S)
        refused = control.refusal()
    silent = [place for place in places if place not in answered]
    if refused:
        yield Finding("keys", "mend", refused, "give this host a keyring that the satellites know: `skymem keys show`")
    elif running is None and remains:
        yield Finding(about, "mend", f"{remains} satellites run without a record of them", "`skymem down` ends them")
    elif not silent:
        yield Finding(about, "well", f"all {len(places)} satellites answer at {constellation.network.base}")
    elif answered or running is not None:
        named = ", ".join(map(str, silent[:NAMED_MOST])) + (", ..." if len(silent) > NAMED_MOST else "")
        cure = "`skymem restart PLANE SLOT` for each, or `skymem down` and `skymem up`"
        yield Finding(about, "mend", f"{len(silent)} of {len(places)} satellites do not answer: {named}", cure)
    else:
        yield Finding(about, "note", "no satellite answers: none is up", "`skymem up` starts one, --constellation names another")
        yield from _check_room(constellation, len(places))
    stores, free = len(places) * constellation.satellite.store_mib << 20, free_memory_bytes()
    if free is not None and stores > free and IPv4Network(constellation.network.network).is_loopback:
        room = f"full stores would take {stores / 2**30:,.1f} GiB, {free / 2**30:,.1f} GiB are free"
        yield Finding("memory", "note", room, "lower satellite.store_mib, or free memory")


def _check_room(constellation: Constellation, count: int) -> Iterator[Finding]:
    """Check that addresses, processes and memory for all satellites are free."""
    try:
        check_addresses(constellation)
    except StartError as error:
        yield Finding(
            "ports",
            "mend" if IPv4Network(constellation.network.network).is_loopback else "note",
            str(error),
            "`skymem up` cannot start there",
        )
    else:
        yield Finding("ports", "well", f"port {constellation.network.port} of all {count} satellites is free")
    if why := refusal(count, rooms()):
        yield Finding("memory", "mend", why, "raise the limit, or take fewer planes or slots")


def check_kernel(root: Path = Path("/"), is_root: bool | None = None) -> Iterator[Finding]:
    """Check the kernel's limits on buffers and open files.

    Args:
        root: Folder above /proc.
        is_root: True for the superuser, who is given what a program asks for; by default whether this is it.
    """
    is_well = True
    if not (os.geteuid() == 0 if is_root is None else is_root):
        for name, wanted in (("rmem_max", BUFFER_BYTES), ("wmem_max", BUFFER_BYTES // 2)):
            most = number(root / "proc" / "sys" / "net" / "core" / name)
            if most is not None and most < wanted:
                is_well = False
                found = f"net.core.{name} is {most:,}: large values move slower than they could"
                yield Finding("kernel", "note", found, f"sudo sysctl -w net.core.{name}={wanted}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        is_well = False
        found = f"{hard:,} open files are allowed: an agent serves all that may connect with {DESCRIPTORS:,}"
        yield Finding("kernel", "mend", found, "raise `ulimit -Hn`, or LimitNOFILE of its unit")
    if is_well:
        yield Finding("kernel", "well", "buffers and open files suffice")


def check_docker() -> Iterator[Finding]:
    """Check whether containers could be started."""
    try:
        yield Finding("docker", "well", f"an engine answers, Compose is `{' '.join(compose_command())}`")
    except DockerError as error:
        yield Finding("docker", "note", str(error), "only `skymem up --docker` needs it")


def check_agent() -> Iterator[Finding]:
    """Check that an agent that runs has this version and reaches its sky."""
    about, path = "agent", agent_socket()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PING_S)
        try:
            link.connect(str(path))
        except FileNotFoundError:
            yield Finding(about, "note", "none runs", "`skymem agent` starts one, for engines, Redis clients and the page")
            return
        except ConnectionRefusedError:
            yield Finding(
                about, "note", f"none runs; {path} remains of one that was killed", "the next `skymem agent` takes it over"
            )
            return
        except OSError as error:
            yield Finding(
                about, "mend", f"{path}: {error.strerror or error}", "see who owns it; $SKYMEM_AGENT_SOCKET names another"
            )
            return
    try:
        url = http_record(path).read_text(encoding="utf-8")
        running = _agent_version(url)
    except (OSError, ValueError, HTTPException):
        yield Finding(
            about, "note", f"one runs at {path}, and serves no HTTP, by which it could be asked", "--http-port of `skymem agent`"
        )
        return
    own = version("skymemory")
    if running != own:
        yield Finding(about, "mend", f"{url} runs version {running}, this is {own}", "start the agent again")
    elif why := _why_not_ready(url):
        yield Finding(about, "mend", f"{url} is not ready: {why}", "its log says more; `skymem status` shows the satellites")
    else:
        yield Finding(about, "well", f"{url}, version {running}, is ready")


def _agent_version(url: str) -> str:
    with _OPENER.open(f"{url}/metrics", timeout=PING_S) as answer:
        text = answer.read(_METRICS_BYTES_MAX).decode()
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return next((sample.labels.get("version", "") for sample in samples if sample.name == "skymem_build_info"), "unknown")


def _why_not_ready(url: str) -> str:
    """Return what an agent says of why it is not ready; '' if it is."""
    try:
        with _OPENER.open(f"{url}/readyz", timeout=PING_S):
            return ""
    except HTTPError as error:
        return " ".join(error.read(500).decode(errors="replace").split())
    except OSError as error:
        return str(error)


def check_keyring(constellation: Constellation) -> Iterator[Finding]:
    """Check that the keyring that a constellation names is there, whole, this user's own, and for this size."""
    keyring = constellation.security.keyring
    if not keyring:
        yield Finding("keys", "well", "no keyring is named: links are not secured")
        return
    try:
        found = load_keyring(Path(keyring))
    except InputError as error:
        yield Finding("keys", "mend", str(error), "see `skymem keys`")
        return
    yield Finding("keys", "well", f"{keyring}: {found.role.name.lower()} {found.name}, generation {found.generation}")
