"""The layouts, which give each server 0 to n - 1 a satellite, and stand-ins for lost ones.

Three are the paper's (sections 3.5 to 3.7), `all_planes` is ours.

The core decides both (`sky_placement.h`, `sky_standins.h`), as on board. A layout is a pure function of centre, number of servers
and torus. `skymemory.sky.placement.spread` says which chunks a server holds. The satellites of a layout are distinct, so that
losing one loses one share. Only stand-ins may have several shares.

The paper's layouts correct three faults of the authors' public simulator, which its 15 x 15 grid with odd squares (9, 25, 49,
81 servers) hides:

* The simulator's window is ceil(sqrt(n)) wide *made odd downward*, so that 10 servers get 3 x 3 cells and the tenth has none.
  Here the window is the smallest box with w = ceil(sqrt(n)) slots and h = ceil(n / w) planes, never larger than the torus.
* The simulator's upper wrap is off by one (the column behind the last becomes the second).
* In the simulator, going west from slot 1 leaves the torus, because of a mistyped name.

An even width has no middle: the box then reaches one further west (one further north for an even height). West is where the next
satellites come from, so the longer arm is the one that stays in sight longest.
"""

import ctypes
import struct
from collections.abc import Collection
from typing import Final, Literal

from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import core_torus, from_core, library, sorted_list, to_core
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

LayoutName = Literal["rotation", "hop", "rotation_hop", "all_planes"]
LAYOUT_IDS: Final[dict[LayoutName, int]] = {
    "rotation": structures.LayoutId.ROTATION.value,
    "hop": structures.LayoutId.HOP.value,
    "rotation_hop": structures.LayoutId.ROTATION_HOP.value,
    "all_planes": structures.LayoutId.ALL_PLANES.value,
}
"""`SKY_LayoutId_t` of each layout."""
SERVERS_MAX: Final = structures.PLACEMENT_SERVERS_MAX
"""Servers for which a satellite has room."""


def lay_out(name: LayoutName, centre: Satellite, servers: int, torus: Torus) -> structures.Placement:
    """Return a layout around a centre.

    * `rotation`: left to right, top to bottom in the window (figure 4). Server 0 is the window's north-west corner.
    * `hop`: rings of growing hop count around the centre, without a box (figure 6). Server 0 is the centre.
    * `rotation_hop`: rings around the centre inside the window (figures 7 and 8). Server 0 is the centre.
    * `all_planes`: the same in a window over all planes, so that few servers are lost with a plane. Server 0 is the centre.

    Raises:
        ValueError: There are more servers than satellites or than `SERVERS_MAX`, or less than one, or the centre is outside the
            torus.
    """
    require_servers(servers, torus)
    if centre not in torus:
        raise ValueError(f"centre {centre} is outside the torus of {torus.planes} planes x {torus.slots} slots")
    placement, raw_torus = structures.Placement(), core_torus(torus)
    cell = structures.Cell(*centre)
    if not library().SKY_Placement_Init(ctypes.byref(placement), ctypes.byref(raw_torus), LAYOUT_IDS[name], servers, cell):
        raise ValueError(f"the core refuses the layout {name} of {servers} servers around {centre}")
    return placement


def require_servers(servers: int, torus: Torus) -> None:
    """Check a number of servers.

    Raises:
        ValueError: There are more servers than satellites or than `SERVERS_MAX`, or less than one.
    """
    satellites = torus.planes * torus.slots
    if not 1 <= servers <= satellites:
        raise ValueError(f"there are {servers} servers; allowed are 1 to {satellites} (planes x slots)")
    if servers > SERVERS_MAX:
        raise ValueError(f"there are {servers} servers; allowed are 1 to {SERVERS_MAX:,}")


def nearest(centre: Satellite, count: int, torus: Torus) -> list[Satellite]:
    """Return the satellites nearest to a centre, which comes first: any number, in the rings of the hop-aware layout."""
    found = (structures.Cell * count)()
    library().SKY_StandIns_Nearest(ctypes.byref(core_torus(torus)), structures.Addr(*centre), count, found)
    return list(map(Satellite._make, struct.iter_unpack("=ii", found)))


def substitute(servers: list[Satellite], lost: Collection[Satellite], centre: Satellite, torus: Torus) -> list[Satellite]:
    """Return the same servers, with a stand-in for each lost satellite (`sky_standins.h` has the rule).

    Other servers stay where they are, so only shares of lost satellites are missing. Hosts that know of the same losses find the
    same places. Lost satellites stay only when all satellites are lost.
    """
    if not lost:
        return servers
    placed, room = to_core(servers), (structures.Cell * (torus.planes * torus.slots))()
    listed = sorted_list(lost)
    library().SKY_StandIns_Replace(
        *(ctypes.byref(core_torus(torus)), structures.Addr(*centre), ctypes.byref(listed), placed, len(placed), room)
    )
    return from_core(placed)
