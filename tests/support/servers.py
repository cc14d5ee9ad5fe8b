"""The servers of a constellation, as the native client takes them."""

import time

from skymemory.link.native import Server
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import server_routes
from skymemory.sky.whereabouts import Whereabouts


def servers_of(constellation: Constellation) -> list[Server]:
    """Return where the servers of this moment are reached."""
    return [
        (satellite, entry, constellation.address(*entry), constellation.network.port)
        for satellite, entry in server_routes(Whereabouts(constellation), time.time())
    ]
