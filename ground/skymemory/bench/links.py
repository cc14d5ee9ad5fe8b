"""`skymem bench links`: measures what delay, jitter, loss and a cut link do to a transfer of many blocks.

Each link model has a local constellation of its own. All of them are up at once, and the same blocks go up and come down
through each in turn, so other load on the machine affects all alike. Idle satellites take no time from measured ones.

As with the manager, each call of the store carries a few blocks, and `cache.deadline_ms` holds for each call. One store puts
the blocks and another one, which has measured no link yet, gets them: as from one host to another. Both are new in each round,
so that no round knows what an earlier one took for lost. Blocks that did not go up in time are put again, off the clock. So GET
is of all blocks even where PUT fails.
"""

import os
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.table import Table

from skymemory.common.progress import Progress, no_progress
from skymemory.link.block_entry import BlockEntry
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.wire.packets import KEY_BYTES

BLOCK_BYTES = 12 * 2 * 4 * 64 * 128 * 4
"""Bytes of a block of the demo's model: layers, K and V, heads, head size, tokens, bytes: 3.15 MB."""
BLOCKS = 22
"""Blocks of the demo's prompt."""
CALL_BLOCKS = 5
"""Blocks that the manager fetches in one call."""
ROUNDS = 3
JITTER_US = 200
LOSS_PPM = 1000
_PUTS_MORE = 8
"""Most times that blocks are put again which did not go up in time."""
_REFERENCE = "geometry"
"""Links that the others are compared with: the delays that no constellation is without."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Round:
    """The figures of one round: the blocks once up and once down."""

    put_mb_s: float
    """Speed of the stored blocks, in 1e6 bytes a second."""
    get_mb_s: float
    """Speed of the blocks that came back, in 1e6 bytes a second."""
    put_failures: int
    """Blocks that were not stored in time."""
    misses: int
    """Blocks that did not come back, or could not be stored at all."""
    put_retries: int
    get_retries: int
    wrong: int
    """Blocks that came back different."""


def link_models(constellation: Constellation) -> dict[str, Constellation]:
    """Return the constellations to measure, by the name of their links, at the addresses of the given one.

    They are the given one with a logical window, and with links and uplink as the name says. The cut link leads from the
    window's centre to the satellite ahead of it.

    Raises:
        ConfigError: The planes of the given one have one slot, so no satellite is ahead.
    """
    base = constellation.replace(
        links={"model": "off", "delay_us": 0, "jitter_us": 0, "rate_kbps": 0, "loss_ppm": 0, "override": []},
        cache={"window": "logical", "uplink": "window"},
    )
    centre = base.cache.centre
    cut = {"from": centre, "to": base.torus.wrap(centre.plane, centre.slot + 1), "cut": True}
    geometry = base.replace(links={"model": "geometry"})
    jitter = geometry.replace(links={"jitter_us": JITTER_US})
    both = jitter.replace(links={"loss_ppm": LOSS_PPM})
    both_cut = both.replace(links={"override": [cut]})
    jitter_text, loss_text = f"jitter {JITTER_US} us", f"loss {LOSS_PPM / 10_000:g} %"
    both_text = f"{_REFERENCE}, {jitter_text}, {loss_text}"
    return {
        "off": base,
        _REFERENCE: geometry,
        f"{_REFERENCE}, {jitter_text}": jitter,
        f"{_REFERENCE}, {loss_text}": geometry.replace(links={"loss_ppm": LOSS_PPM}),
        both_text: both,
        f"{both_text}, one link cut": both_cut,
        f"{both_text}, one link cut, uplink nearest": both_cut.replace(cache={"uplink": "nearest"}),
    }


def run_links_bench(
    constellation: Constellation,
    blocks: int = BLOCKS,
    block_bytes: int = BLOCK_BYTES,
    rounds: int = ROUNDS,
    call_blocks: int = CALL_BLOCKS,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure all link models.

    Args:
        constellation: Keeps everything but links and window, see `link_models`. Its satellites must have room for
            all blocks.
        blocks: Number of blocks.
        block_bytes: Size of each block.
        call_blocks: Blocks in one call of the store.
        rounds: Measured rounds; one more goes before them, for memory that is used for the first time.
        progress: Called with the number of started constellations and finished rounds, and of all of both.

    Returns:
        `rows` has an entry for each link model. Medians over the rounds: `put_mb_s` and `get_mb_s` (1e6
        bytes a second of blocks that arrived), `put_ratio` and `get_ratio` (their ratios to geometry alone), `put_retries` and
        `get_retries` (requests and chunks sent again). Sums over the rounds: `put_failures` (blocks not stored in time),
        `misses` (blocks that did not come back) and `wrong` (blocks that came back different).

    Raises:
        ConfigError: See `link_models`.
        StartError: A constellation does not start.
    """
    models = link_models(constellation)
    data = [os.urandom(block_bytes) for _ in range(blocks)]
    total = (1 + 1 + rounds) * len(models)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    results: dict[str, list[_Round]] = {name: [] for name in models}
    with ExitStack() as stack:
        skies: dict[str, Constellation] = {}
        for name, model in models.items():
            skies[name] = model.replace(network={"port": free_port(model)})
            stack.enter_context(LocalConstellation(skies[name]))
            step()
        for _ in range(1 + rounds):
            for name, sky in skies.items():
                results[name].append(_measure(sky, data, call_blocks))
                step()
    rows = [{"links": name, **_row(of_model[1:])} for name, of_model in results.items()]
    reference = next(row for row in rows if row["links"] == _REFERENCE)
    for row in rows:
        row |= {f"{what}_ratio": _ratio(row[f"{what}_mb_s"], reference[f"{what}_mb_s"]) for what in ("put", "get")}
    return {
        "blocks": blocks,
        "block_bytes": block_bytes,
        "call_blocks": call_blocks,
        "rounds": rounds,
        "credit": constellation.satellite.credit,
        "deadline_ms": constellation.cache.deadline_ms,
        "rows": rows,
    }


def links_table(report: dict[str, Any]) -> Table:
    """Return a table of the report of `run_links_bench`."""
    size = f"{report['blocks']} blocks of {report['block_bytes']:,} bytes, {report['call_blocks']} in one call"
    table = Table(title=f"{size}\nmedians of {report['rounds']} rounds, MB/s (1e6 bytes)", show_lines=True)
    table.add_column("links")
    table.add_column("", no_wrap=True)
    for column in ("MB/s", "of geometry", "repeats", f"missing, of {report['blocks'] * report['rounds']}"):
        table.add_column(column, justify="right")
    for row in report["rows"]:
        table.add_row(
            row["links"],
            "up\ndown",
            f"{row['put_mb_s']:,.1f}\n{row['get_mb_s']:,.1f}",
            f"{_factor(row['put_ratio'])}\n{_factor(row['get_ratio'])}",
            f"{row['put_retries']:,}\n{row['get_retries']:,}",
            f"{row['put_failures']}\n{row['misses']}",
        )
    return table


def _measure(sky: Constellation, data: Sequence[bytes], call_blocks: int) -> _Round:
    items = [(os.urandom(KEY_BYTES), block) for block in data]
    with SkyStore(sky) as store:
        start_s = time.perf_counter()
        entries = _put(store, items, call_blocks)
        put_s = time.perf_counter() - start_s
        put_retries = store.stats().retries
        in_time = [block for entry, block in zip(entries, data, strict=True) if entry is not None]
        for _ in range(_PUTS_MORE):
            left = [index for index, entry in enumerate(entries) if entry is None]
            for index, entry in zip(left, _put(store, [items[index] for index in left], call_blocks), strict=True):
                entries[index] = entry
    stored = [(entry, block) for entry, block in zip(entries, data, strict=True) if entry is not None]
    with SkyStore(sky) as store:
        start_s = time.perf_counter()
        gets = [one for run in _calls(stored, call_blocks) for one in store.get([entry for entry, _ in run])]
        get_s = time.perf_counter() - start_s
        get_retries = store.stats().retries
        store.purge([key for key, _ in items])
    back = [(one.data, block) for one, (_, block) in zip(gets, stored, strict=True) if one.data is not None]
    return _Round(
        put_mb_s=_mb_s(in_time, put_s),
        get_mb_s=_mb_s((block for _, block in back), get_s),
        put_failures=len(data) - len(in_time),
        misses=len(data) - len(back),
        put_retries=put_retries,
        get_retries=get_retries,
        wrong=sum(came != put for came, put in back),
    )


def _put(store: SkyStore, items: Sequence[tuple[bytes, bytes]], call_blocks: int) -> list[BlockEntry | None]:
    """Store blocks; return their entries in order, None for a block that was not stored."""
    return [one.entry for run in _calls(items, call_blocks) for one in store.put(run)]


def _calls(things: Sequence[_T], call_blocks: int) -> Iterator[Sequence[_T]]:
    return (things[start : start + call_blocks] for start in range(0, len(things), call_blocks))


def _mb_s(blocks: Iterable[bytes], duration_s: float) -> float:
    return sum(len(block) for block in blocks) / duration_s / 1e6


def _row(rounds: Sequence[_Round]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in ("put_mb_s", "get_mb_s", "put_retries", "get_retries"):
        row[name] = round(statistics.median(getattr(one, name) for one in rounds), 1 if name.endswith("mb_s") else None)
    return row | {name: sum(getattr(one, name) for one in rounds) for name in ("put_failures", "misses", "wrong")}


def _ratio(value: float, reference: float) -> float | None:
    """Return value / reference; None if nothing arrived with the reference."""
    return round(value / reference, 2) if reference else None


def _factor(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f} x"
