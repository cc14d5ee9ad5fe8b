"""A short soak: what clients see while satellites, links and clients fail is what a register of each key would answer."""

from dataclasses import replace
from pathlib import Path

from soak.log import Log, operations
from soak.report import Settings, table
from soak.run import Soak
from support.register import ABSENT, violations

SHORT = Settings(seconds=20.0, seed=7, keys=12, fault_s=1.5, bound_s=60.0)


def test_clients_see_a_register(tmp_path: Path) -> None:
    with Soak(tmp_path, SHORT) as soak:
        report = soak.run()
    print(told := table(report))
    assert report.is_right, told
    assert report.faults
    written = [one for one in report.operations if one.is_acknowledged and one.wrote]
    assert written
    assert sum(one.saw not in (None, ABSENT) for one in report.operations) > len(written) / 10

    # The same history with one answer by hand: the check finds it
    read = next(one for one in reversed(report.operations) if one.what == "fetch" and one.saw)
    older = next(one for one in written if one.key != read.key)
    [wrong] = violations([replace(one, saw=older.wrote) if one is read else one for one in report.operations])
    assert wrong.kind == "never written"


def test_what_a_killed_client_had_begun_is_in_its_log(tmp_path: Path) -> None:
    log = Log(path := tmp_path / "c.log", "c")
    with log.operation("k", "put", "a") as outcome:
        outcome.is_acknowledged, outcome.version, outcome.answer = True, 7, "done"
    with log.operation("k", "del", ABSENT) as outcome:
        outcome.saw, outcome.is_no_write = ABSENT, True
    with log.operation("k", "put", "b") as outcome:
        outcome.may_go_on = True
    killed = log.operation("k", "put", "c")
    killed.__enter__()
    done, denied, unknown, last = operations(path, killed=9e9)
    assert (done.wrote, done.is_acknowledged, done.version) == ("a", True, 7)
    assert (denied.wrote, denied.saw) == (None, ABSENT)
    assert (unknown.end, last.end, last.answer) == (float("inf"), 9e9, "none")
    assert operations(tmp_path / "never begun.log") == []
