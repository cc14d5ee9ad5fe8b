"""A ground host in a container, for constellations whose addresses docker/sky-net routes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skymemory.sky.constellation import Constellation
from skymemory.testbed.several_machines import PLANE

GROUND = """
import json, os, sys
from skymemory.sky.constellation import Constellation
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore

sky = Constellation.load(sys.argv[1])
routes = {place: Route(place, place) for place in sky.torus.satellites()}


def silent(control, waiting):
    for _ in range(60):
        for place in control.ping(list(waiting.values()), 2.0):
            del waiting[place]
        if not waiting:
            break
    return list(waiting)


with ControlPlane(sky) as control:
    told = {"silent": silent(control, dict(routes))}
    told["silent_through_centre"] = silent(control, {place: Route(place, sky.cache.centre) for place in routes})
with SkyStore(sky) as store:
    blocks = [(os.urandom(32), os.urandom(600_000)) for _ in range(4)]
    put = [result.status for result in store.put(blocks)]
    got = [result.data == data for result, (_, data) in zip(store.get([key for key, _ in blocks]), blocks)]
print(json.dumps({**told, "put": put, "got": got}))
"""


@contextmanager
def routes(docker: Callable[..., str], network: str, sky: Constellation, here: str = "", *words: str) -> Iterator[str]:
    """Run a container on a Docker network with only sky-net in it; yield its id, so that others can share its network."""
    command = ["run", "--detach", "--rm", "--network", network, "--cap-drop", "ALL", "--cap-add", "NET_ADMIN", *words]
    container = docker(*command, PLANE.name, sky.network.base, str(sky.planes), here).strip()
    try:
        yield container
    finally:
        docker("stop", container)


def ground(network: str, constellation: Path) -> dict[str, Any]:
    """Return the observations of a ground host that shares a container's network: this interpreter with all it needs."""
    folders = {"/usr", sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
    folders |= {folder for folder in sys.path if folder.endswith("site-packages")}
    mounts = [word for folder in sorted(folders) for word in ("--volume", f"{folder}:{folder}:ro")]
    command = ["docker", "run", "--rm", "--network", f"container:{network}", *mounts]
    command += ["--volume", f"{constellation}:/constellation.toml:ro", "debian:bookworm-slim"]
    command += [sys.executable, "-c", GROUND, "/constellation.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


ALL_IS_WELL: dict[str, Any] = {"silent": [], "silent_through_centre": [], "put": ["done"] * 4, "got": [True] * 4}
"""Observations if nothing is missing."""
