"""Waiting for satellites that say that they are settled: before that nobody purges by their word."""

from collections.abc import Sequence

from skymemory.link.ask import Ask
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.wire import icd
from support.waiting import wait_until


def are_settled(store: SkyStore, routes: Sequence[Route]) -> bool:
    """Return True if each of these satellites says that all has arrived that belongs to it."""
    answers = store.control.exchange([Ask(route, icd.OP_PING) for route in routes], 10)
    return all(answer is not None and answer.raw.word & icd.WORD_SETTLED for answer in answers)


def wait_until_settled(store: SkyStore) -> None:
    """Wait until all servers of a sky that stands still say so."""
    routes = [Route(one, one) for one in store.whereabouts.servers(0)]
    wait_until(lambda: are_settled(store, routes), "all servers are settled")
