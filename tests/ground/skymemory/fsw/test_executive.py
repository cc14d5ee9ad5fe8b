"""One satellite in the test's process: both apps, Software Bus, housekeeping, events, tables, packets from a real socket."""

import gc
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skymemory import fsw
from skymemory.fsw import App, EventType, Executive, FswError, Message, Pipe, messages, structures
from skymemory.fsw.link_names import links_of
from skymemory.fsw.structures import IslLinksTable, IslSetLink, KvcFunctionCode, KvcLimitsTable, KvcScheduleTable
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire.address import Satellite
from support.executive import bus_counters, load_table, next_event


def wait_event(pipe: Pipe, text: str) -> str:
    while (event := next_event(pipe)) is not None:
        if text in event.message.decode():
            return event.packet_id.app_name.decode()
    pytest.fail(f"no event with {text!r}")


def test_both_apps_come_up_and_say_so(satellite: Executive) -> None:
    started = [wait_event(satellite.events, "Initialized.") for _ in range(2)]
    assert sorted(started) == ["ISL", "KVC"]
    kvc = satellite.kvc_housekeeping()
    assert kvc.serving == 1
    assert kvc.slot_bytes >= 6000
    assert 0 == kvc.used_bytes < kvc.store_bytes <= 16 << 20
    isl = satellite.isl_housekeeping()
    assert (isl.plane, isl.slot) == (3, 10)
    assert {name: (link.plane, link.slot) for name, link in links_of(isl).items()} == {
        "north": (2, 10),
        "east": (3, 11),
        "south": (4, 10),
        "west": (3, 9),
        "ground": (0, 0),
    }


def test_commands_are_counted_and_answered_by_events(satellite: Executive) -> None:
    with App("OPERATOR") as operator:
        operator.command(structures.KVC_CMD_MID, KvcFunctionCode.NOOP)
        assert wait_event(satellite.events, "no operation") == "KVC"
        operator.command(structures.KVC_CMD_MID, 99)  # no such function code
        operator.send(Message(structures.KVC_CMD_MID, b"too long", KvcFunctionCode.NOOP))
        housekeeping = satellite.kvc_housekeeping()
        assert (housekeeping.command_counter, housekeeping.command_error_counter) == (1, 2)
        operator.command(structures.KVC_CMD_MID, KvcFunctionCode.RESET_COUNTERS)
        assert satellite.kvc_housekeeping().command_error_counter == 0


def test_packets_from_the_ground_reach_the_service(satellite: Executive, constellation: Constellation) -> None:
    here = Satellite(3, 10)
    with ControlPlane(constellation) as control:
        assert here in control.ping([Route(here, here)], 5.0)
    assert satellite.kvc_housekeeping().requests == 1
    housekeeping = satellite.isl_housekeeping()
    assert housekeeping.to_ground == 1
    assert housekeeping.security.secured == 0
    assert list(housekeeping.security.by_suite) == [0, 0, 0, 0]


def test_a_satellite_stops_and_starts_again_in_the_same_process(words: list[str]) -> None:
    before = set(threading.enumerate())  # those of other tests may end meanwhile
    for _ in range(3):
        with Executive(words) as satellite:
            assert satellite.kvc_housekeeping().serving == 1
    begun = set(threading.enumerate()) - before
    gc.collect()
    assert set(threading.enumerate()) - before == begun


def test_one_satellite_per_process(satellite: Executive, words: list[str]) -> None:
    with pytest.raises(FswError, match="one satellite per process"), Executive(words):
        pass
    assert satellite.kvc_housekeeping().serving == 1


def test_an_address_in_use_is_told(satellite: Executive, words: list[str]) -> None:
    code = "import sys; from skymemory.fsw import Executive; Executive(sys.argv[1:]).__enter__()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is in use by another process" in done.stderr
    assert satellite.kvc_housekeeping().serving == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--slot", "20"], "--slot 20: allowed are 1 .. 19"),
        (["--credit", "none"], "--credit none: allowed are 1 .. 2048"),
        (["--store-mib", "1", "--slot-bytes", "61440", "--network", "127.18.0.1"], "--network 127.18.0.1"),
    ],
)
def test_wrong_arguments_are_told(words: list[str], change: list[str], said: str) -> None:
    with pytest.raises(FswError, match=said), Executive(words + change):
        pass


def test_messages_between_python_apps(satellite: Executive) -> None:
    mid = messages.ONBOARD_MIDS[1]
    with App("SENDER") as sender, App("READER") as reader:
        pipe = reader.pipe("READER", mid)
        assert pipe.receive(0) is None
        sender.publish(mid, b"one")
        sender.publish(mid, b"two")
        first, second = pipe.receive(1), pipe.receive(1)
        assert first is not None
        assert second is not None
        assert (first.payload, second.payload) == (b"one", b"two")
        assert second.sequence == first.sequence + 1
        assert first.time is not None
        pipe.unsubscribe(mid)
        sender.publish(mid, b"three")
        assert pipe.receive(0.01) is None


def test_what_a_pipe_cannot_hold_is_dropped_and_counted(satellite: Executive) -> None:
    mid = messages.ONBOARD_MIDS[1]
    with App("SENDER") as sender, App("SLOW") as slow:
        pipe = slow.pipe("SLOW", mid)
        before = bus_counters()["message_limit"]
        for number in range(10):
            sender.publish(mid, bytes([number]))
        assert bus_counters()["message_limit"] - before == 6
        got = [message.payload[0] for message in iter(lambda: pipe.receive(0), None)]
        assert got == [0, 1, 2, 3]


def test_a_waiting_reader_is_woken_when_its_app_closes(satellite: Executive) -> None:
    failures: list[FswError] = []
    app = App("WAITER")
    pipe = app.pipe("WAITER", messages.ONBOARD_MIDS[2])

    def wait() -> None:
        try:
            pipe.receive()
        except FswError as error:
            failures.append(error)

    reader = threading.Thread(target=wait)
    reader.start()
    app.close()
    reader.join(10)
    assert not reader.is_alive()
    assert len(failures) == 1


def test_events_of_python_code(satellite: Executive) -> None:
    satellite.ground.event(7, "hand over", EventType.ERROR)
    while (event := next_event(satellite.events)) is not None and event.packet_id.app_name != b"GROUND":
        pass
    assert event is not None
    assert (event.packet_id.event_id, event.packet_id.event_type, event.message) == (7, EventType.ERROR, b"hand over")
    assert event.packet_id.spacecraft_id == 3010


def test_names_must_be_free(satellite: Executive) -> None:
    with pytest.raises(FswError, match="name is taken"):
        App("KVC")
    with App("TWICE") as app:
        app.pipe("TWICE")
        with pytest.raises(FswError, match="name is taken"):
            app.pipe("TWICE")
    with pytest.raises(FswError):
        App("A_NAME_OF_20_LETTERS")


def test_a_link_is_cut_by_command(satellite: Executive) -> None:
    satellite.ground.command(structures.ISL_CMD_MID, 2, bytes(IslSetLink(link=1, cut_s=60)))
    links = links_of(satellite.isl_housekeeping())
    assert (links["east"].up, links["west"].up) == (0, 1)


def test_a_table_is_loaded_in_flight_and_a_bad_one_refused(satellite: Executive) -> None:
    table = IslLinksTable()
    table.link[0].delay_us = 7600
    load_table("ISL.Links", table)
    # isl takes it over at its next wake-up, at most a second from now
    for _ in range(100):
        if links_of(satellite.isl_housekeeping())["north"].delay_requested_us == 7600:
            break
        satellite.events.receive(0.05)
    else:
        pytest.fail("the table was not taken over")
    load_table("KVC.Limits", KvcLimitsTable(slot_bytes=0, credit=1, part_lifetime_ms=1))
    wait_event(satellite.events, "SlotBytes is 0")
    assert satellite.kvc_housekeeping().slot_bytes > 0
    with pytest.raises(FswError, match="no table has this name"):
        load_table("ISL.Nothing", table)
    with pytest.raises(FswError, match="larger than the table"):
        load_table("KVC.Limits", KvcScheduleTable())


def test_it_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    """The image with Python on board has no packages, and of ours `skymemory.fsw` only."""
    shutil.copytree(Path(fsw.__file__).parent, tmp_path / "skymemory" / "fsw")
    command = [sys.executable, "-S", "-c", "import skymemory.fsw.health"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
