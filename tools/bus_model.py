"""Commands and telemetry of the cFS apps as flat packets, read from where they are defined.

Fields, function codes and texts come from the electronic data sheets (fsw_apps/*/eds/*.xml), which tests hold against the C
headers and the compiler's layouts. Topic ids come from the apps' headers, the rest from icd/skymemory.toml. Structures and arrays
become single fields: `Link[NORTH].TxPackets` is `Link_NORTH_TxPackets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
APPS = ("isl", "kvc")
APID_MASK = 0x7FF
"""Mask of a message id: cFE's default mapping puts the topic there."""
COMMAND_BYTES = 8
"""Size of CFE_MSG_CommandHeader_t."""
TELEMETRY_BYTES = 16
"""Size of CFE_MSG_TelemetryHeader_t."""
LENGTH_LESS = 7
"""Difference between a packet's size and its length field, which counts the bytes behind the primary header, less one."""
UNITS = {"Ms": "ms", "Us": "us", "S": "s", "Bytes": "B"}

SEDS = "{http://www.ccsds.org/schema/sois/seds}"
_SPARE = re.compile(r"(^|_)Spare(_\d+)?$")


@dataclass(frozen=True)
class Field:
    """An integer, or `bits` opaque bits if `signed` is None."""

    name: str
    bits: int
    signed: bool | None = False
    doc: str = ""
    labels: dict[str, int] = field(default_factory=dict)
    """Labels of an enumeration."""
    least: int = 0
    most: int = 0

    @property
    def unit(self) -> str:
        """Unit that the last word of the name says, empty if it says none."""
        word = re.split(r"(?<=[a-z0-9])(?=[A-Z])|_", self.name)[-1]
        return UNITS.get(word, "")

    @property
    def spare(self) -> bool:
        """True for a reserved field: 0, and of no interest."""
        return _SPARE.search(self.name) is not None


@dataclass(frozen=True)
class Packet:
    """A command (with a `function_code`) or telemetry of an app; `fields` follow the cFS header without a gap."""

    name: str
    apid: int
    doc: str
    fields: tuple[Field, ...]
    function_code: int | None = None
    hazard: str = ""
    """Reason why an operator is asked twice."""

    @property
    def bytes(self) -> int:
        """Bytes of the whole packet."""
        head = TELEMETRY_BYTES if self.function_code is None else COMMAND_BYTES
        return head + sum(one.bits for one in self.fields) // 8


def upper_snake(name: str) -> str:
    """Return SET_LINK_PAYLOAD for SetLink_Payload."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def read_values(folder: Path, app: str, part: str, own: Path | None = None) -> dict[str, int]:
    """Read the numbers that a configuration header of an app defines.

    Most have a name whose value comes from a macro, `#define ISL_CUT_S_MAX ISL_INTERFACE_CFGVAL(CUT_S_MAX)`. By default this
    macro puts DEFAULT_ISL_ before the name. The file of a mission puts something else there, and defines the result.

    Args:
        own: The mission's file with this macro, if there is one.
    """
    defaults = folder / "config" / f"default_{app}_{part.removesuffix('s')}_values.h"
    texts = [(folder / "fsw" / "inc" / f"{app}_{part}.h").read_text(), (own if own and own.is_file() else defaults).read_text()]
    text = "\n".join(texts)
    defined: dict[str, str] = dict(re.findall(r"^#define (\w+)[ \t]+(\w+)\s*(?:/\*.*)?$", text, re.MULTILINE))
    macros: dict[str, str] = dict(re.findall(r"^#define (\w+)\(x\)[ \t]+(\S+)", text, re.MULTILINE))
    plain = {name: value for name, value in defined.items() if value[0].isdigit() and not name.startswith("DEFAULT_")}
    found = {name: int(value, 0) for name, value in plain.items()}
    for name, macro, argument in re.findall(r"^#define (\w+)[ \t]+(\w+)\((\w+)\)", texts[0], re.MULTILINE):
        found[name] = int(defined[macros[macro].replace("##x##", argument).replace("##x", argument)], 0)
    return found


class Sheet:
    """The data sheet of one app, with the parameters of its default configuration."""

    def __init__(self, app: str, definitions: Path | None = None) -> None:
        """Read the data sheet. The headers of a mission, in the folder `definitions`, come before the app's defaults."""
        self.app = app.upper()
        folder = ROOT / "fsw_apps" / app
        sheet = ElementTree.parse(folder / "eds" / f"{app}.xml")  # noqa: S314 (our own file)
        package = sheet.getroot().find(f"{SEDS}Package")
        assert package is not None
        types = package.find(f"{SEDS}DataTypeSet")
        assert types is not None
        self.types = {str(node.get("name")): node for node in types}
        self._parameters: dict[str, int] = {}
        for part, values in (("interface_cfg", "interface_cfg_values"), ("topicids", "topicid_values")):
            self._parameters.update(read_values(folder, app, part, definitions / f"{app}_{values}.h" if definitions else None))

    def packets(self) -> Iterator[Packet]:
        """Yield all commands, then all telemetry."""
        for name, node in self.types.items():
            if name != "CommandBase" and (code := self._function_code(node)) is not None:
                topic = {"SendHkCmd": "SEND_HK", "WakeupCmd": "WAKEUP"}.get(name, "CMD")
                yield self._packet(node, upper_snake(name.removesuffix("Cmd")), topic, code)
        for node in self.types.values():
            if node.get("baseType") == "CFE_HDR/TelemetryHeader":
                yield self._packet(node, "HK", "HK_TLM", None)

    def _function_code(self, node: ElementTree.Element) -> int | None:
        if node.get("baseType") == "CommandBase":
            constraint = node.find(f"{SEDS}ConstraintSet/{SEDS}ValueConstraint")
            assert constraint is not None
            return int(str(constraint.get("value")))
        return 0 if node.get("baseType") == "CFE_HDR/CommandHeader" else None

    def _packet(self, node: ElementTree.Element, name: str, topic: str, code: int | None) -> Packet:
        payload = node.find(f"{SEDS}EntryList/{SEDS}Entry")
        fields = () if payload is None else tuple(self._flat("", str(payload.get("type")), ""))
        apid = self._parameters[f"CFE_MISSION_{self.app}_{topic}_TOPICID"] & APID_MASK
        return Packet(f"{self.app}_{name}", apid, str(node.get("shortDescription")), fields, code)

    def _flat(self, name: str, kind: str, doc: str) -> Iterator[Field]:
        if kind.startswith("BASE_TYPES/"):
            match = re.fullmatch(r"BASE_TYPES/(u?)int(\d+)", kind)
            assert match, kind
            yield _integer(name, int(match[2]), not match[1], doc)
            return
        node = self.types[kind]
        doc = doc or str(node.get("shortDescription", ""))
        if node.tag == f"{SEDS}ContainerDataType":
            for entry in node.iterfind(f"{SEDS}EntryList/{SEDS}Entry"):
                inner = f"{name}_{entry.get('name')}" if name else str(entry.get("name"))
                yield from self._flat(inner, str(entry.get("type")), str(entry.get("shortDescription", "")))
        elif node.tag == f"{SEDS}ArrayDataType":
            yield from self._array(name, node, doc)
        else:
            yield self._narrowed(name, node, doc)

    def _array(self, name: str, node: ElementTree.Element, doc: str) -> Iterator[Field]:
        kind = str(node.get("dataTypeRef"))
        dimension = node.find(f"{SEDS}DimensionList/{SEDS}Dimension")
        assert dimension is not None
        index = dimension.get("indexTypeRef")
        names = list(self._labels(self.types[index])) if index else list(range(1, self._number(str(dimension.get("size"))) + 1))
        if kind == "BASE_TYPES/uint8":
            yield Field(name, 8 * len(names), None, doc)
            return
        for one in names:
            yield from self._flat(f"{name}_{one}", kind, doc)

    def _narrowed(self, name: str, node: ElementTree.Element, doc: str) -> Field:
        """Return an enumeration, or an integer with a range."""
        encoding = node.find(f"{SEDS}IntegerDataEncoding")
        assert encoding is not None
        bits = int(str(encoding.get("sizeInBits")))
        if labels := self._labels(node):
            return Field(name, bits, False, doc, labels, min(labels.values()), max(labels.values()))
        limits = node.find(f"{SEDS}Range/{SEDS}MinMaxRange")
        assert limits is not None
        return Field(name, bits, False, doc, {}, self._number(str(limits.get("min"))), self._number(str(limits.get("max"))))

    def _labels(self, node: ElementTree.Element) -> dict[str, int]:
        entries = node.iterfind(f"{SEDS}EnumerationList/{SEDS}Enumeration")
        return {str(entry.get("label")): int(str(entry.get("value"))) for entry in entries}

    def _number(self, text: str) -> int:
        match = re.fullmatch(rf"\$\{{{self.app}/(\w+)\}}", text)
        return self._parameters[f"{self.app}_{match[1]}"] if match else int(text, 0)


def _integer(name: str, bits: int, signed: bool, doc: str) -> Field:
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return Field(name, bits, signed, doc, {}, least, most)


def bus_packets(icd: dict[str, Any], definitions: Path | None = None) -> list[Packet]:
    """Return every command and telemetry packet of the apps on the Software Bus."""
    hazards = dict(icd["hazard"])
    packets = []
    for app in APPS:
        for packet in Sheet(app, definitions).packets():
            packets.append(Packet(**{**vars(packet), "hazard": hazards.pop(packet.name, "")}))
    if hazards:
        raise SystemExit(f"icd/skymemory.toml: [hazard] names no command: {', '.join(hazards)}")
    return packets
