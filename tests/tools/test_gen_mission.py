"""What mission control reads: valid XTCE, and definitions of both kinds that say the same as the compiled structures.

Real housekeeping of real satellites is decoded by them, and commands made by them are carried out.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from ctypes import LittleEndianStructure, c_uint8
from pathlib import Path
from struct import pack
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from space_packet_parser import load_xtce, validate_xtce
from space_packet_parser.xtce.definitions import XtcePacketDefinition

from skymemory.fsw import structures
from skymemory.fsw.link_names import LINKS
from skymemory.fsw.messages import Message
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import ChunkSet, Packet, migrate_payload
from support.mission import ROOT, TARGET, XTCE, Cosmos, XtceCommands, link, snake, with_checksum

COMMANDS, TELEMETRY = Cosmos((TARGET / "cmd_tlm" / "cmd.txt").read_text()), Cosmos((TARGET / "cmd_tlm" / "tlm.txt").read_text())
HOUSEKEEPING: dict[str, tuple[int, type[LittleEndianStructure]]] = {
    "ISL_HK": (structures.ISL_HK_TLM_MID, structures.IslHousekeeping),
    "KVC_HK": (structures.KVC_HK_TLM_MID, structures.KvcHousekeeping),
}
PLACE = Satellite(4, 7)


@pytest.fixture(scope="module")
def xtce() -> XtcePacketDefinition:
    return load_xtce(XTCE)


def generate(folder: Path, *words: str) -> Path:
    subprocess.run([sys.executable, ROOT / "tools" / "gen_mission.py", *words, "-o", folder], check=True)
    return folder


def leaves(structure: Any, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Integers of a ctypes structure by their flat names."""
    for name, *_ in structure._fields_:
        value = getattr(structure, name)
        if isinstance(value, int):
            yield prefix + name, value
        elif name == "link":
            for one, inner in zip(LINKS, value, strict=True):
                yield from leaves(inner, f"{prefix}{name}_{one}_")


def test_a_mission_of_its_own_gets_every_file(tmp_path: Path) -> None:
    def files(folder: Path) -> dict[Path, str]:
        return {one.relative_to(folder): one.read_text() for one in folder.rglob("*") if one.suffix != ".pyc" and one.is_file()}

    assert files(generate(tmp_path)) == files(ROOT / "mission")


def read_by_xtce(definition: XtcePacketDefinition, packet: bytes) -> dict[str, Any]:
    """Values as on the wire."""
    return {name: getattr(value, "raw_value", value) for name, value in definition.parse_bytes(packet).items()}


# ---- the documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["little", "big"])
def test_xtce_is_valid(order: str, tmp_path: Path) -> None:
    path = generate(tmp_path, "--byte-order", order) / "xtce" / "skymemory.xml"
    validate_xtce(path, level="schema", print_results=False)
    assert ("leastSignificantByteFirst" in path.read_text()) == (order == "little")


def test_every_name_that_xtce_refers_to_is_there() -> None:
    root = ElementTree.parse(XTCE).getroot()
    names = {str(node.get("name")) for node in root.iter() if node.get("name")}
    for node in root.iter():
        for key, value in node.attrib.items():
            assert not key.endswith("Ref") or value in names, f"{node.tag} {key} {value}"


def test_the_files_of_the_repository_are_those_of_the_apps(tmp_path: Path) -> None:
    for path in generate(tmp_path).rglob("*.*"):
        assert path.read_text() == (ROOT / "mission" / path.relative_to(tmp_path)).read_text()


def test_a_mission_has_topics_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "kvc_topicid_values.h").write_text(
        "#define CFE_MISSION_KVC_TIDVAL(x) OUR_KVC_##x##_TOPIC\n"
        "#define OUR_KVC_CMD_TOPIC 0x21\n#define OUR_KVC_SEND_HK_TOPIC 0x22\n"
        "#define OUR_KVC_WAKEUP_TOPIC 0x23\n#define OUR_KVC_HK_TLM_TOPIC 0x24\n"
    )
    target = generate(tmp_path / "out", "--definitions", str(tmp_path)) / "cosmos" / "targets" / "SKYMEMORY" / "cmd_tlm"
    own = Cosmos((target / "cmd.txt").read_text()), Cosmos((target / "tlm.txt").read_text())
    apids = [packets[name]["CCSDS_APID"].identity for packets in (own[0].packets, own[1].packets) for name in packets]
    assert set(apids) == {0x21, 0x22, 0x23, 0x24, 0xD8, 0xD9, 0xDA}


def test_both_have_the_same_packets() -> None:
    commands = XtceCommands(XTCE)
    assert commands.names == set(COMMANDS.packets)
    assert commands.critical == COMMANDS.hazardous == {"KVC_CLEAR_STORE", "KVC_HANDOVER"}
    assert set(TELEMETRY.packets) == set(HOUSEKEEPING)


# ---- layouts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOUSEKEEPING)
@given(seed=st.integers(0, 2**32 - 1))
def test_housekeeping_is_laid_out_as_compiled(name: str, seed: int, xtce: XtcePacketDefinition) -> None:
    mid, structure = HOUSEKEEPING[name]
    compiled = structure.from_buffer_copy(random.Random(seed).randbytes(len(bytes(structure()))))
    packet = Message(mid, bytes(compiled), sequence=seed % 16384).encode()
    expected = dict(leaves(compiled))
    assert TELEMETRY.identify(packet) == name
    by_cosmos = {key.lower(): value for key, value in TELEMETRY.decode(name, packet).items()}
    assert {key: by_cosmos[key] for key in expected} == expected
    parsed = read_by_xtce(xtce, packet)
    by_xtce = {snake(key.removeprefix(f"{name}_")): value for key, value in parsed.items()}
    assert {key: by_xtce[key] for key in expected} == expected
    assert parsed["CCSDS_SequenceCount"] == by_cosmos["ccsds_sequence_count"] == seed % 16384


def expected_commands() -> Iterator[tuple[str, dict[str, int | str | bytes], Message]]:
    """A command, arguments that differ from their defaults, and the message that they make."""
    for app, mid in (("ISL", structures.ISL_CMD_MID), ("KVC", structures.KVC_CMD_MID)):
        yield f"{app}_NOOP", {}, Message(mid, b"", structures.KvcFunctionCode.NOOP)
        yield f"{app}_RESET_COUNTERS", {}, Message(mid, b"", structures.KvcFunctionCode.RESET_COUNTERS)
        yield f"{app}_SEND_HK", {}, Message(mid + 1)
        yield f"{app}_WAKEUP", {}, Message(mid + 2)
    kvc, key = structures.KVC_CMD_MID, bytes(range(32))
    yield "ISL_SET_LINK", {"Link": "SOUTH", "CutS": 77}, Message(structures.ISL_CMD_MID, bytes(structures.IslSetLink(2, 77)), 2)
    yield "KVC_CLEAR_STORE", {}, Message(kvc, b"", 2)
    purge = structures.KvcPurgeBlock(0x01020304, (c_uint8 * 32)(*key))
    yield "KVC_PURGE_BLOCK", {"Tenant": 0x01020304, "Key": key}, Message(kvc, bytes(purge), 3)
    begin = {"Id": 9, "AgeMs": -5, "Planes": 5, "Slots": 19, "Layout": 3, "Servers": 10, "TotalRows": 2}
    yield "KVC_SCHEDULE_BEGIN", {**begin}, Message(kvc, bytes(structures.KvcScheduleBegin(*begin.values())), 4)
    rows = structures.KvcScheduleRows(9, 1, 83)
    rows.row[82] = structures.KvcScheduleRow(1000, -3, 7)
    told = {"Id": 9, "FirstRow": 1, "RowCount": 83, "Row_83_TimeMs": 1000, "Row_83_Plane": -3, "Row_83_Slot": 7}
    yield "KVC_SCHEDULE_ROWS", {**told}, Message(kvc, bytes(rows), 5)
    commit = structures.KvcScheduleCommit(9, 0xDEADBEEF)
    yield "KVC_SCHEDULE_COMMIT", {"Id": 9, "RowsCrc": 0xDEADBEEF}, Message(kvc, bytes(commit), 6)
    yield "KVC_HANDOVER", {"Plane": 3, "Slot": 260}, Message(kvc, bytes(structures.KvcHandover(3, 260)), 7)


def test_all_commands_are_made_as_the_ground_makes_them() -> None:
    xtce, names = XtceCommands(XTCE), set()
    for name, values, message in expected_commands():
        names.add(name)
        assert with_checksum(xtce.encode(name, **values)) == message.encode(), name
        numbers = {
            snake(key).upper(): COMMANDS.states[name, key.upper()][value] if isinstance(value, str) else value
            for key, value in values.items()
        }
        assert with_checksum(COMMANDS.encode(name, **numbers)) == message.encode(), name
        assert COMMANDS.identify(message.encode()) == name
    assert names == xtce.names


def test_a_cut_is_as_long_as_the_mission_allows() -> None:
    assert COMMANDS.packets["ISL_SET_LINK"]["CUT_S"].most == 3600
    assert COMMANDS.states["ISL_SET_LINK", "LINK"] == {name.upper(): n for n, name in enumerate(LINKS)}


# ---- a real satellite ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("app", ["ISL", "KVC"])
def test_a_command_made_by_cosmos_definitions_is_carried_out(app: str, full_sky: LocalConstellation) -> None:
    mid, structure = HOUSEKEEPING[f"{app}_HK"]
    ask = with_checksum(COMMANDS.encode(f"{app}_SEND_HK"))
    with link(full_sky, PLACE) as satellite:
        before = TELEMETRY.decode(f"{app}_HK", satellite.housekeeping(ask, mid))
        satellite.send(with_checksum(COMMANDS.encode(f"{app}_NOOP")))
        for _ in range(20):  # one that was asked for before the command may come after it
            after = TELEMETRY.decode(f"{app}_HK", packet := satellite.housekeeping(ask, mid))
            if after["COMMAND_COUNTER"] != before["COMMAND_COUNTER"]:
                break
    assert after["COMMAND_COUNTER"] == (int(before["COMMAND_COUNTER"]) + 1) % 256
    assert after["COMMAND_ERROR_COUNTER"] == before["COMMAND_ERROR_COUNTER"]
    own = structure.from_buffer_copy(Message.decode(packet).payload)
    assert dict(leaves(own)).items() <= {key.lower(): value for key, value in after.items()}.items()


def test_housekeeping_of_a_satellite_read_by_xtce(full_sky: LocalConstellation, xtce: XtcePacketDefinition) -> None:
    commands = XtceCommands(XTCE)
    with link(full_sky, PLACE) as satellite:
        links = satellite.housekeeping(with_checksum(commands.encode("ISL_SEND_HK")), structures.ISL_HK_TLM_MID)
        store = satellite.housekeeping(with_checksum(commands.encode("KVC_SEND_HK")), structures.KVC_HK_TLM_MID)
    isl, kvc = read_by_xtce(xtce, links), read_by_xtce(xtce, store)
    assert (isl["ISL_HK_Plane"], isl["ISL_HK_Slot"]) == PLACE
    assert (isl["ISL_HK_Link_EAST_Plane"], isl["ISL_HK_Link_EAST_Slot"]) == (4, 8)
    assert isl["ISL_HK_Link_GROUND_RxPackets"] > 0
    assert kvc["KVC_HK_Serving"] == 1
    assert kvc["KVC_HK_SlotBytes"] == full_sky.constellation.slot_bytes


# ---- packets over UDP ---------------------------------------------------------------------------------------------------

PAYLOADS = {
    icd.OP_PUT: b"chunk",
    icd.OP_GET: ChunkSet(3, 2, (True, False, True)).encode(),
    icd.OP_HAS: ChunkSet(0, 1, (True,) * 9).encode(),
    icd.OP_MIGRATE: migrate_payload(Satellite(2, 3)),
    icd.OP_PING: b"echo",
    icd.OP_RELAY: Message(structures.KVC_CMD_MID).encode(),
    icd.OP_HELLO: pack(">QHHHHIH", 2**63 + 7, 1, 0, 3, 10, 41, 0b0010),
    icd.OP_REKEY: bytes([1, 5, 4, 0]) + bytes(range(12 + 48)),
}


def check_header(parsed: dict[str, Any], packet: Packet) -> None:
    for name in icd.HEADER_FIELDS:
        if name in ("version", "length"):
            continue
        end, _, part = name.partition("_")
        value = getattr(getattr(packet, end), part) if end in ("src", "dst", "gateway", "home") else getattr(packet, name, 0)
        assert parsed[f"SKY_{name}"] == value, name
    assert parsed["CCSDS_APID"] == packet.apid
    assert parsed["CCSDS_Type"] == packet.is_request


@pytest.mark.parametrize("op", [op for op in vars(icd) if op.startswith("OP_")])
def test_requests_over_udp_are_read_by_xtce(op: str, xtce: XtcePacketDefinition) -> None:
    value = getattr(icd, op)
    served = {
        icd.OP_RELAY: [icd.APID_ISL],
        icd.OP_ASSOCIATE: [icd.APID_ISL],
        icd.OP_REKEY: [icd.APID_ISL],
        icd.OP_HELLO: [icd.APID_ISL],
        icd.OP_PING: [icd.APID_ISL, icd.APID_KVC],
    }
    for apid in served.get(value, [icd.APID_KVC]):
        packet = Packet(
            is_request=True, apid=apid, op=value, src=Satellite(0, 77), dst=PLACE, request_id=2**63 + 5, key=os.urandom(32),
            tenant=7, deadline_ms=500, chunk_id=3, chunk_len=5, payload=PAYLOADS.get(value, b""),
        )  # fmt: skip
        data = packet.encode()
        parsed = read_by_xtce(xtce, data)
        check_header(parsed, packet)
        assert parsed["PEC"] == int.from_bytes(data[-2:])
        if value in (icd.OP_GET, icd.OP_HAS):
            assert packet.payload.endswith(parsed["chunk_set_bitmap"])
        elif value == icd.OP_MIGRATE:
            assert (parsed["migrate_plane"], parsed["migrate_slot"]) == (2, 3)
        elif value == icd.OP_HELLO:
            assert (parsed["hello_digest"], parsed["hello_count"]) == (2**63 + 7, 1)
            assert packet.payload.endswith(parsed["hello_states"])
        elif value == icd.OP_REKEY:
            assert (parsed["rekey_command"], parsed["rekey_generation"], parsed["rekey_under"]) == (1, 5, 4)
            assert packet.payload.endswith(parsed["rekey_nonce"] + parsed["rekey_sealed"])
        elif packet.payload:
            assert parsed["SKY_payload"] == packet.payload


@pytest.mark.parametrize("op", [op for op in vars(icd) if op.startswith("OP_")])
@pytest.mark.parametrize("status", sorted(icd.STATUSES))
def test_every_response_has_one_container(op: str, status: int, xtce: XtcePacketDefinition) -> None:
    value = getattr(icd, op)
    apid = icd.APID_ISL if value in (icd.OP_RELAY, icd.OP_HELLO, icd.OP_ASSOCIATE, icd.OP_REKEY) else icd.APID_KVC
    payload = PAYLOADS.get(value, b"")
    if value == icd.OP_STATS and status == icd.STATUS_OK:
        payload = os.urandom(8 * icd.STATS_KVC_COUNT)
    elif value in (icd.OP_STATS, icd.OP_MIGRATE) or status not in (icd.STATUS_OK, icd.STATUS_NOT_FOUND):
        payload = b""
    packet = Packet(
        is_request=False, apid=apid, op=value, src=PLACE, dst=Satellite(0, 1), request_id=1, status=status, payload=payload,
        chunk_len=len(payload), time_s=5, time_subs=6,
    )  # fmt: skip
    data = packet.encode()
    parsed = read_by_xtce(xtce, data)
    check_header(parsed, packet)
    assert parsed["PEC"] == int.from_bytes(data[-2:])  # it is reached: nothing of the packet is left over
    assert (parsed["Time_Seconds"], parsed["Time_Subseconds"]) == (5, 6)


def test_counters_of_a_satellite_are_read_by_xtce(full_sky: LocalConstellation, xtce: XtcePacketDefinition) -> None:
    route = Route(PLACE, PLACE)
    with ControlPlane(full_sky.constellation) as control:
        answers = control.exchange([Ask(route, icd.OP_STATS, apid) for apid in (icd.APID_ISL, icd.APID_KVC)], 5)
    told = {answer.raw.apid: answer.payload for answer in answers if answer is not None}
    isl, kvc = (
        read_by_xtce(
            xtce,
            Packet(is_request=False, apid=apid, op=icd.OP_STATS, src=PLACE, dst=PLACE, request_id=1, payload=payload).encode(),
        )
        for apid, payload in told.items()
    )
    assert (isl["ISL_STATS_east_plane"], isl["ISL_STATS_east_slot"]) == (4, 8)
    assert isl["ISL_STATS_links"] == len(LINKS)
    assert kvc["KVC_STATS_store_bytes"] % full_sky.constellation.slot_bytes == 0 < kvc["KVC_STATS_store_bytes"]
