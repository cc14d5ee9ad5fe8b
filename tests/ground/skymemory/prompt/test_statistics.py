import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from skymemory.prompt.statistics import Ledger


def test_counts_from_many_threads_add_up() -> None:
    ledger = Ledger()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ledger.add(prompts=1, tokens_asked=number), range(1000)))
    assert (ledger.copy().prompts, ledger.copy().tokens_asked) == (1000, 499500)
    with ledger.timed("get_s"):
        pass
    assert ledger.copy().get_s > 0


def test_one_line_for_each_change_of_state(caplog) -> None:
    ledger = Ledger()
    caplog.set_level(logging.INFO, "skymemory")
    ledger.outcome("get")
    for _ in range(100):
        ledger.outcome("get", Counter(expired=3), "too late")
    ledger.outcome("put", {"store_full": 1})
    ledger.outcome("get", {"miss": 1})
    ledger.outcome("get")
    ledger.outcome("get")
    assert [(record.levelname, record.message.split(";")[0]) for record in caplog.records] == [
        ("WARNING", "get: expired (3): too late"),
        ("WARNING", "put: store_full (1)"),
        ("INFO", "get: miss (1)"),
        ("INFO", "get: works again"),
    ]
    assert ledger.copy().errors == {"expired": 300, "store_full": 1, "miss": 1}
