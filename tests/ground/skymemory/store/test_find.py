"""Look-ups that nobody waits for any more. What is made of answers is the core's (`test_ground_find.c`)."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256

import pytest

from skymemory.link.timing import Timing
from skymemory.store.results import CancelledLookupError
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.spread import shares_of
from support.waiting import PATIENCE_S

KEYS = [sha256(f"{__name__} {index}".encode()).digest() for index in range(4)]


def test_a_chain_that_nobody_waits_for_is_not_asked_for(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        with pytest.raises(CancelledLookupError):
            store.find_longest(KEYS, cancelled=lambda: True)
        assert store.stats().questions == 0
        assert store.find_longest(KEYS, cancelled=lambda: False).entries == []
        assert store.stats().questions == 1  # the first block is not there, so no other one is asked for


def test_a_look_up_is_called_back_while_it_waits(
    start_sky: Callable[..., LocalConstellation], stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    local = start_sky(cache={"deadline_ms": 600_000})
    with SkyStore(local.constellation) as store:
        begun_s = time.monotonic()
        with stopped(local), pytest.raises(CancelledLookupError):
            store.find_longest(KEYS, cancelled=lambda: time.monotonic() > begun_s + 0.2)
        assert time.monotonic() < begun_s + PATIENCE_S
        assert store.find_longest(KEYS).unanswered == []  # satellites answer again, and the store goes on


def test_what_is_known_needs_no_question(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        [stored] = store.put([(KEYS[0], b"known")])
        assert stored.entry is not None
        assert [one.entry for one in store.find(KEYS[:1])] == [stored.entry]
        assert [one.data for one in store.get([stored.entry])] == [b"known"]
        assert (store.find([]), store.find_longest([]).entries) == ([], [])
        assert store.stats().questions == 0


def test_a_new_host_waits_once_for_one_that_is_silent(
    start_sky: Callable[..., LocalConstellation], stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    """The first look-up beside it takes as long as a satellite may be silent, not twice that; later ones do not wait."""
    local = start_sky(cache={"parity": 2})
    silent = shares_of(local.constellation, KEYS[0])[0]
    with SkyStore(local.constellation, timing=Timing(silence_s=6.0)) as store, stopped(local, silent):
        begun_s = time.monotonic()
        assert store.find_longest(KEYS[:1]).entries == []
        assert 6.0 <= time.monotonic() - begun_s < 11.0
        assert store.lost == {silent}
        begun_s = time.monotonic()
        assert store.find_longest(KEYS[:1]).unanswered == []
        assert time.monotonic() - begun_s < 5.0
