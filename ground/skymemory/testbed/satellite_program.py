"""The satellite program and its command line, the same for processes and for containers."""

import os
from pathlib import Path

from skymemory.common.compiled import FOLDER
from skymemory.sky.constellation import Constellation
from skymemory.sky.file_sections import Cache
from skymemory.wire.address import Satellite

NAME = "skysat"
READY_WORD = "ready"
"""Word in the line that `skysat` prints once it listens."""
UNTIL_STDIN_ENDS = "--until-stdin-ends"
"""Option for a satellite that has a `Leash` as its standard input."""


def program() -> Path:
    """Return the satellite binary that was installed with this package.

    Raises:
        FileNotFoundError: The package was not built.
    """
    path = FOLDER / NAME
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is missing: the package was not built; `pip install .` builds it")
    return path


def arguments(constellation: Constellation, satellite: Satellite, keys: Path | str | None = None) -> list[str]:
    """Return the command line of one satellite, without the program and without links that do nothing.

    Args:
        keys: File of its keys, as the satellite sees it.
    """
    plane, slot = satellite
    network, own = constellation.network, constellation.satellite
    words = ["--plane", str(plane), "--slot", str(slot)]
    words += ["--planes", str(constellation.planes), "--slots", str(constellation.slots)]
    words += ["--network", network.base, "--port", str(network.port), "--mtu", str(network.mtu)]
    words += ["--store-mib", str(own.store_mib), "--slot-bytes", str(constellation.slot_bytes)]
    words += ["--credit", str(own.credit), "--hello-s", str(own.hello_s)]
    words += ["--handover-ms", str(round(1000 * constellation.cache.handover_s))]
    words += ["--scrub-ms", str(1000 * own.scrub_s)]
    words += ["--window", _window(constellation.cache)]
    if own.gossip:
        words.append("--gossip")
    if own.log_json:
        words.append("--log-json")
    for quota in constellation.tenants:
        words += ["--tenant", str(quota)]
    if constellation.torus.seam_cut:
        words.append("--seam-cut")
    for name, model in constellation.named_link_models(satellite).items():
        if not model.ideal:
            words += ["--link", f"{name}:{model}"]
    if keys is not None:
        words += ["--keys", str(keys)]
    return words


def _window(cache: Cache) -> str:
    """Return the window that says what belongs where while satellites have no schedule."""
    return ":".join(str(part) for part in (cache.layout, cache.servers, *cache.centre))
