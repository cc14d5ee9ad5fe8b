"""A plugin of OpenC3 COSMOS (5 and 6): commands and telemetry of the Software Bus, and one UDP interface a satellite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bus_model import LENGTH_LESS, Field, Packet, upper_snake
from gen_xtce import COMMAND, COMMAND_SECONDARY, PRIMARY, TELEMETRY, TELEMETRY_SECONDARY

TARGET = "SKYMEMORY"
UNIT_NAMES = {"ms": "milliseconds", "us": "microseconds", "s": "seconds", "B": "bytes"}


def _type(one: Field) -> str:
    return "BLOCK" if one.signed is None else "INT" if one.signed else "UINT"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'


def _commands(packet: Packet) -> Iterator[str]:
    yield f"COMMAND <%= target_name %> {packet.name} BIG_ENDIAN {_quoted(packet.doc)}"
    if packet.hazard:
        yield f"  HAZARDOUS {_quoted(packet.hazard)}"
    fixed = {
        "CCSDS_Version": 0, "CCSDS_Type": COMMAND, "CCSDS_SecondaryHeader": 1, "CCSDS_APID": packet.apid,
        "CCSDS_SequenceFlags": 3, "CCSDS_Length": packet.bytes - LENGTH_LESS, "FunctionCode": packet.function_code,
    }  # fmt: skip
    for one in (*PRIMARY, *COMMAND_SECONDARY):
        word = "APPEND_ID_PARAMETER" if one.name in ("CCSDS_APID", "FunctionCode") else "APPEND_PARAMETER"
        value = fixed.get(one.name)
        least, most, default = (0, (1 << one.bits) - 1, 0) if value is None else (value, value, value)
        yield f"  {word} {upper_snake(one.name)} {one.bits} UINT {least} {most} {default} {_quoted(one.doc)} BIG_ENDIAN"


def _parameter(one: Field, order: str) -> Iterator[str]:
    head = f"  APPEND_PARAMETER {upper_snake(one.name)} {one.bits} {_type(one)}"
    if one.signed is None:
        yield f"{head} 0x{'00' * (one.bits // 8)} {_quoted(one.doc)} BIG_ENDIAN"
        return
    default = next(iter(one.labels.values()), max(one.least, 0))
    yield f"{head} {one.least} {one.most} {default} {_quoted(one.doc)} {order}"
    yield from _details(one)


def _details(one: Field) -> Iterator[str]:
    for label, value in one.labels.items():
        yield f"    STATE {label} {value}"
    if one.unit:
        yield f"    UNITS {UNIT_NAMES[one.unit]} {one.unit}"


def commands(packets: Sequence[Packet], note: str, *, big_endian: bool = False) -> str:
    """Return the text of cmd.txt."""
    order = "BIG_ENDIAN" if big_endian else "LITTLE_ENDIAN"
    lines = [f"# {note}"]
    for packet in packets:
        if packet.function_code is not None:
            lines += ["", *_commands(packet)]
            for one in packet.fields:
                lines += _parameter(one, order)
    return "\n".join([*lines, ""])


def telemetry(packets: Sequence[Packet], note: str, *, big_endian: bool = False) -> str:
    """Return the text of tlm.txt."""
    order = "BIG_ENDIAN" if big_endian else "LITTLE_ENDIAN"
    lines = [f"# {note}"]
    for packet in packets:
        if packet.function_code is not None:
            continue
        lines += ["", f"TELEMETRY <%= target_name %> {packet.name} BIG_ENDIAN {_quoted(packet.doc)}"]
        known = {"CCSDS_Type": TELEMETRY, "CCSDS_APID": packet.apid}
        for one in (*PRIMARY, *TELEMETRY_SECONDARY):
            word, value = ("APPEND_ID_ITEM", f" {known[one.name]}") if one.name in known else ("APPEND_ITEM", "")
            lines.append(f"  {word} {upper_snake(one.name)} {one.bits} {_type(one)}{value} {_quoted(one.doc)} BIG_ENDIAN")
        for one in packet.fields:
            lines.append(f"  APPEND_ITEM {upper_snake(one.name)} {one.bits} {_type(one)} {_quoted(one.doc)} {order}")
            lines += _details(one)
    return "\n".join([*lines, ""])


def target(note: str) -> str:
    """Return the text of target.txt."""
    ignored = [upper_snake(one.name) for one in (*PRIMARY, *COMMAND_SECONDARY)]
    items = [upper_snake(one.name) for one in (*PRIMARY, *TELEMETRY_SECONDARY)]
    lines = [f"# {note}", "LANGUAGE python"]
    lines += [f"IGNORE_PARAMETER {name}" for name in ignored] + [f"IGNORE_ITEM {name}" for name in items]
    return "\n".join([*lines, ""])


PLUGIN = """\
# {note}
# One target a satellite: install the plugin once for each, with a name and ports of its own.
VARIABLE target_name SKY_3_10
VARIABLE host 127.0.0.1
VARIABLE command_port 1234
VARIABLE telemetry_port 1235

TARGET {target} <%= target_name %>

# One packet is one datagram: no length protocol. On a byte stream (TCP, serial) the packet's own length field delimits packets:
#   INTERFACE <%= target_name %>_INT openc3/interfaces/tcpip_client_interface.py <%= host %> <%= port %> <%= port %> 10.0 nil
#     PROTOCOL READ openc3/interfaces/protocols/length_protocol.py 32 16 7 1 BIG_ENDIAN
INTERFACE <%= target_name %>_INT openc3/interfaces/udp_interface.py <%= host %> <%= command_port %> <%= telemetry_port %>
  MAP_TARGET <%= target_name %>
  PROTOCOL WRITE command_checksum_protocol.py
"""


def plugin(note: str) -> str:
    """Return the text of plugin.txt."""
    return PLUGIN.format(note=note, target=TARGET)
