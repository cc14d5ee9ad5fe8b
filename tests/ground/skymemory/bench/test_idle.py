"""A constellation at rest."""

from skymemory.bench.idle import run_idle_bench
from skymemory.sky.constellation import Constellation

STORE_FREE_MEMORY_BYTES = 6 << 20
"""What a satellite may take beside its store; OpenSSL is most of it."""


def test_idle_satellites_are_small_and_quiet() -> None:
    sky = Constellation().replace(constellation={"planes": 2, "slots": 5}, cache={"servers": 4, "centre": [1, 2]})
    calls: list[tuple[int, int]] = []
    report = run_idle_bench(sky, seconds=4.0, progress=lambda done, total: calls.append((done, total)))
    assert report["satellites"] == 10
    assert report["seconds"] >= 4.0
    assert calls
    assert 0 < report["private_bytes_max"] <= report["pss_bytes_max"] <= report["rss_bytes_max"] < STORE_FREE_MEMORY_BYTES
    # Clock ticks of 10 ms, and what is left of starting counts too: neither is much of 4 s. Ten that polled at 100 Hz would show.
    assert report["cpu_percent_of_a_core"] < 5
