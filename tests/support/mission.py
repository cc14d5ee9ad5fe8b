"""Both ends of a satellite's link to mission control, and independent readers of mission control's definitions.

The readers know exactly what the generators write, and refuse all else; they share nothing with the generators.
"""

import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path
from xml.etree import ElementTree

from skymemory.fsw.relay import Relay
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite

ROOT = Path(__file__).parents[2]
XTCE = ROOT / "mission" / "xtce" / "skymemory.xml"
TARGET = ROOT / "mission" / "cosmos" / "targets" / "SKYMEMORY"
NS = "{http://www.omg.org/spec/XTCE/20180204}"
ANSWER_S = 10.0


class Link:
    """Mission control's end: a socket that sends commands and receives telemetry."""

    def __init__(self, telemetry: socket.socket, port: int) -> None:
        self._socket = telemetry
        self._commands = ("127.0.0.1", port)

    def send(self, packet: bytes) -> None:
        self._socket.sendto(packet, self._commands)

    def receive(self) -> bytes:
        return self._socket.recv(65536)

    def housekeeping(self, request: bytes, mid: int) -> bytes:
        """Ask with a command until telemetry `mid` comes, again and again: its lease may not have begun."""
        self._socket.settimeout(0.5)
        for _ in range(20):
            self.send(request)
            try:
                while (packet := self.receive())[:2] != mid.to_bytes(2):
                    pass
            except TimeoutError:
                continue
            self._socket.settimeout(ANSWER_S)
            return packet
        raise AssertionError(f"no telemetry 0x{mid:04X}")


@contextmanager
def link(sky: LocalConstellation, place: Satellite) -> Iterator[Link]:
    """Open a relay to one satellite, with mission control behind it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as telemetry:
        telemetry.bind(("127.0.0.1", 0))
        telemetry.settimeout(ANSWER_S)
        failures: list[str] = []
        route = Route(place, place)
        with Relay(sky.constellation, route, ("127.0.0.1", 0), telemetry.getsockname(), failures.append) as relay:
            yield Link(telemetry, relay.port)
        assert failures == []


def with_checksum(packet: bytes) -> bytes:
    """Return the command with cFS's checksum."""
    without = packet[:7] + b"\0" + packet[8:]
    return packet[:7] + bytes([reduce(xor, without, 0xFF)]) + packet[8:]


@dataclass(frozen=True)
class Item:
    """A field of a COSMOS packet."""

    bits: int
    kind: str
    little: bool
    identity: int | None = None
    default: int | bytes | None = None
    least: int = 0
    most: int = 0


class Cosmos:
    """cmd.txt or tlm.txt of the COSMOS target: packets, each with its items in order."""

    def __init__(self, text: str) -> None:
        self.packets: dict[str, dict[str, Item]] = {}
        self.hazardous: set[str] = set()
        self.states: dict[tuple[str, str], dict[str, int]] = {}
        name = item = ""
        for line in text.splitlines():
            word, *words = shlex.split(line, comments=True) or [""]
            if word in ("COMMAND", "TELEMETRY"):
                macro_open, macro, macro_close, name, order, _ = words
                assert (macro_open, macro, macro_close, order) == ("<%=", "target_name", "%>", "BIG_ENDIAN")
                assert name not in self.packets
                self.packets[name] = {}
            elif word == "HAZARDOUS":
                self.hazardous.add(name)
            elif word == "STATE":
                self.states.setdefault((name, item), {})[words[0]] = int(words[1])
            elif word.startswith("APPEND_"):
                item = words[0]
                assert item not in self.packets[name], f"{name} {item} is there twice"
                self.packets[name][item] = self._item(word, words)
            else:
                assert word in ("", "UNITS"), line

    @staticmethod
    def _item(word: str, words: list[str]) -> Item:
        _, bits, kind, *values, _doc, order = words
        assert order in ("BIG_ENDIAN", "LITTLE_ENDIAN")
        assert kind in ("UINT", "INT", "BLOCK")
        head = int(bits), kind, order == "LITTLE_ENDIAN"
        if word == "APPEND_ITEM":
            assert values == []
            return Item(*head)
        if word == "APPEND_ID_ITEM":
            return Item(*head, identity=int(values[0]))
        if kind == "BLOCK":
            return Item(*head, default=bytes.fromhex(values[0].removeprefix("0x")))
        least, most, default = map(int, values)
        assert least <= default <= most
        assert word in ("APPEND_PARAMETER", "APPEND_ID_PARAMETER")
        return Item(*head, default if word == "APPEND_ID_PARAMETER" else None, default, least, most)

    def identify(self, packet: bytes) -> str:
        """Return the name of the one packet with this identity."""
        found = [
            name
            for name, items in self.packets.items()
            if all(v == items[i].identity for i, v in _split(packet, items) if items[i].identity is not None)
        ]
        assert len(found) == 1, found
        return found[0]

    def decode(self, name: str, packet: bytes) -> dict[str, int | bytes]:
        items = self.packets[name]
        assert 8 * len(packet) == sum(item.bits for item in items.values())
        return dict(_split(packet, items))

    def encode(self, name: str, **values: int | bytes) -> bytes:
        """Return a command with its defaults, except for `values`."""
        number, bits = 0, 0
        items = self.packets[name]
        assert values.keys() <= items.keys()
        for key, item in items.items():
            value = values.get(key, item.default)
            assert value is not None
            if isinstance(value, bytes):
                raw = value
            else:
                assert item.least <= value <= item.most, key
                raw = (value % (1 << item.bits)).to_bytes((item.bits + 7) // 8, "little" if item.little else "big")
            number, bits = number << item.bits | int.from_bytes(raw), bits + item.bits
        return number.to_bytes(bits // 8)


def _split(packet: bytes, items: dict[str, Item]) -> Iterator[tuple[str, int | bytes]]:
    number, at = int.from_bytes(packet), 0
    for key, item in items.items():
        at += item.bits
        value = number >> 8 * len(packet) - at & (1 << item.bits) - 1 if at <= 8 * len(packet) else 0
        raw = value.to_bytes((item.bits + 7) // 8)
        if item.kind == "BLOCK":
            yield key, raw
        else:
            yield key, int.from_bytes(raw, "little" if item.little else "big", signed=item.kind == "INT")


class XtceCommands:
    """The MetaCommands of an XTCE document."""

    def __init__(self, path: Path) -> None:
        meta = ElementTree.parse(path).getroot().find(f"{NS}CommandMetaData")
        assert meta is not None
        self._types = {node.get("name"): node for node in meta.iterfind(f"{NS}ArgumentTypeSet/*")}
        self._metas = {str(node.get("name")): node for node in meta.iterfind(f"{NS}MetaCommandSet/{NS}MetaCommand")}
        self.names = {name for name, node in self._metas.items() if node.get("abstract") == "false"}
        self.critical = {name for name in self.names if self._significance(name) == "critical"}

    def _significance(self, name: str) -> str | None:
        found = self._metas[name].find(f"{NS}DefaultSignificance")
        return None if found is None else found.get("consequenceLevel")

    def encode(self, name: str, **values: int | str | bytes) -> bytes:
        """Return a command with its initial values, except for `values`; that of an enumeration is its label."""
        number, bits = 0, 0
        for size, raw in self._entries(name, dict(values)):
            number, bits = number << size | raw, bits + size
        return number.to_bytes(bits // 8)

    def _entries(self, name: str, values: dict[str, int | str | bytes]) -> Iterator[tuple[int, int]]:
        node = self._metas[name]
        base = node.find(f"{NS}BaseMetaCommand")
        if base is not None:
            for one in base.iterfind(f"{NS}ArgumentAssignmentList/{NS}ArgumentAssignment"):
                values[str(one.get("argumentName"))] = int(str(one.get("argumentValue")))
            above = node.find(f"{NS}CommandContainer/{NS}BaseContainer")
            assert above is not None
            assert above.get("containerRef") == base.get("metaCommandRef")
            yield from self._entries(str(base.get("metaCommandRef")), values)
        arguments = {one.get("name"): one for one in node.iterfind(f"{NS}ArgumentList/{NS}Argument")}
        for entry in node.iterfind(f"{NS}CommandContainer/{NS}EntryList/{NS}ArgumentRefEntry"):
            argument = arguments[entry.get("argumentRef")]
            key = str(argument.get("name"))
            yield self._raw(self._types[argument.get("argumentTypeRef")], values.get(key, str(argument.get("initialValue"))))

    @staticmethod
    def _raw(kind: ElementTree.Element, value: int | str | bytes) -> tuple[int, int]:
        if kind.tag == f"{NS}BinaryArgumentType":
            fixed = kind.findtext(f"{NS}BinaryDataEncoding/{NS}SizeInBits/{NS}FixedValue")
            data = bytes.fromhex(value) if isinstance(value, str) else value
            assert isinstance(data, bytes)
            assert len(data) * 8 == int(str(fixed))
            return len(data) * 8, int.from_bytes(data)
        encoding = kind.find(f"{NS}IntegerDataEncoding")
        assert encoding is not None
        bits = int(str(encoding.get("sizeInBits")))
        if kind.tag == f"{NS}EnumeratedArgumentType":
            labels = {e.get("label"): e.get("value") for e in kind.iterfind(f"{NS}EnumerationList/{NS}Enumeration")}
            value = int(str(labels[str(value)]))
        number = int(value) % (1 << bits)
        little = encoding.get("byteOrder") == "leastSignificantByteFirst"
        return bits, int.from_bytes(number.to_bytes((bits + 7) // 8, "little")) if little else number


def snake(name: str) -> str:
    """Return link_north_tx_packets for Link_NORTH_TxPackets."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
