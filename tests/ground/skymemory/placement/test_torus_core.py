"""Placement and flight core agree about the torus: the same neighbours, distances and next hops."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from skymemory.link.native import library
from skymemory.placement.torus import Direction, Satellite, Torus

ALL_UP = 0b1111
LINKS = list(Direction)
NONE = 5
"""`SKY_LINK_NONE`"""


class Address(ctypes.Structure):
    _fields_ = (("plane", ctypes.c_uint16), ("slot", ctypes.c_uint16))


class CoreTorus(ctypes.Structure):
    _fields_ = (("planes", ctypes.c_uint16), ("slots", ctypes.c_uint16), ("seam_cut", ctypes.c_bool))


def core() -> ctypes.CDLL:
    loaded = library()
    loaded.SKY_Torus_Init.restype = ctypes.c_bool
    loaded.SKY_Torus_Init.argtypes = [ctypes.POINTER(CoreTorus), ctypes.c_uint32, ctypes.c_uint32, ctypes.c_bool]
    loaded.SKY_Torus_Hops.restype = ctypes.c_uint32
    loaded.SKY_Torus_Hops.argtypes = [ctypes.POINTER(CoreTorus), Address, Address]
    loaded.SKY_Torus_NextHop.argtypes = [ctypes.POINTER(CoreTorus), Address, Address, Address, ctypes.c_uint32]
    loaded.SKY_Torus_Neighbour.restype = Address
    loaded.SKY_Torus_Neighbour.argtypes = [ctypes.POINTER(CoreTorus), Address, ctypes.c_int]
    return loaded


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Torus, Satellite, Satellite]:
    sizes = st.one_of(st.integers(1, 12), st.integers(1, 60_000))
    torus = Torus(draw(sizes), draw(sizes), draw(st.booleans()))
    ends = st.builds(Satellite, st.integers(1, torus.planes), st.integers(1, torus.slots))
    return torus, draw(ends), draw(ends)


@given(pairs())
def test_core_agrees(case: tuple[Torus, Satellite, Satellite]) -> None:
    torus, origin, target = case
    sky, there = CoreTorus(), Address(*target)
    assert core().SKY_Torus_Init(sky, torus.planes, torus.slots, torus.seam_cut)
    assert core().SKY_Torus_Hops(sky, Address(*origin), there) == torus.hops(origin, target)
    hop = torus.next_hop(origin, target)
    number = core().SKY_Torus_NextHop(sky, Address(*origin), there, Address(0, 0), ALL_UP)
    assert number == (NONE if hop is None else LINKS.index(hop))
    for number, direction in enumerate(LINKS):
        end = core().SKY_Torus_Neighbour(sky, Address(*origin), number)
        assert (end.plane, end.slot) == (torus.neighbour(origin, direction) or (0, 0))
