"""XTCE 1.2 (OMG; CCSDS 660.0-B-2) of the packets of satellites and ground: on the Software Bus, and over UDP.

One SpaceSystem, flat: every reader takes that, also those that know neither arrays nor aggregates. A packet is found by type,
APID and, over UDP, operation and status; no two containers share all of them. The owner of the link fills in the sequence count
and checksum of a command, and the PEC: XTCE can say where they are, not how to compute them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from bus_model import COMMAND_BYTES, LENGTH_LESS, Field, Packet

NAMESPACE = "http://www.omg.org/spec/XTCE/20180204"
SCHEMA = "https://www.omg.org/spec/XTCE/20180204/SpaceSystem.xsd"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
_LABELS = {"op": "op", "status": "status", "security": "security", "code_scheme": "code"}
"""Tables of the ICD that name the values of a header field."""
LINKS = ("north", "east", "south", "west", "ground")
"""Order of the link records in STATS of isl."""
RESTS = {
    "chunk_set": ("bitmap", "bit 0 is 0x80 of the first byte"),
    "hello": ("states", "`hello_count` records of `link_state`"),
    "rekey": ("sealed", "wrapped keys: cipher text and tag of 16 bytes, or nothing"),
}
"""Payloads with a rest behind their fixed part: the name of the rest, and its content."""
TELEMETRY, COMMAND = 0, 1
"""Types of a packet."""

PRIMARY = (
    Field("CCSDS_Version", 3, doc="0"),
    Field("CCSDS_Type", 1, doc="0 telemetry or response, 1 command or request"),
    Field("CCSDS_SecondaryHeader", 1, doc="1: it is there, as always"),
    Field("CCSDS_APID", 11, doc="the application"),
    Field("CCSDS_SequenceFlags", 2, doc="3 whole, 1 first, 0 middle, 2 last part of a chunk"),
    Field("CCSDS_SequenceCount", 14),
    Field("CCSDS_Length", 16, doc="bytes behind the primary header, less one"),
)
TELEMETRY_SECONDARY = (
    Field("Time_Seconds", 32, doc="since the epoch of cFE's time (CFE_MISSION_TIME_EPOCH), 1980-01-06 by default"),
    Field("Time_Subseconds", 16, doc="1/65536 s"),
    Field("Time_Spare", 32, None),
)
COMMAND_SECONDARY = (
    Field("FunctionCode", 8, doc="over UDP the operation"),
    Field("Checksum", 8, doc="XOR from 0xFF over the packet (over UDP: without its PEC) gives 0"),
)


class Types:
    """A set of parameter or argument types, each made once, when it is first needed."""

    def __init__(self, kind: str, parent: Element, big_endian: bool) -> None:
        """Make an empty set.

        Args:
            kind: Parameter or Argument.
            big_endian: Byte order of payloads on the bus.
        """
        self._kind = kind
        self._set = SubElement(parent, f"{kind}TypeSet")
        self._big_endian = big_endian
        self._made: set[str] = set()

    def of(self, one: Field, *, wire: bool = False) -> str:
        """Return the name of a field's type; with `wire` it is big-endian whatever the processor is."""
        little = not (wire or self._big_endian) and one.bits > 8 and one.signed is not None
        narrowed = one.labels or one.most not in (0, (1 << one.bits) - 1, (1 << (one.bits - 1)) - 1)
        sign = "bytes" if one.signed is None else "int" if one.signed else "uint"
        size = one.bits // 8 if one.signed is None else one.bits
        name = one.name if narrowed else f"{sign}{size}" + ("_le" if little else "") + (f"_{one.unit}" if one.unit else "")
        if name not in self._made:
            self._made.add(name)
            self._make(name, one, little)
        return name

    def payload(self, name: str, intercept_bits: int) -> str:
        """Make a type of bytes whose number is the header's length plus so many bits."""
        node = SubElement(self._set, f"Binary{self._kind}Type", name=name)
        SubElement(node, "UnitSet")
        value = SubElement(SubElement(SubElement(node, "BinaryDataEncoding"), "SizeInBits"), "DynamicValue")
        SubElement(value, "ParameterInstanceRef", parameterRef="SKY_length", useCalibratedValue="false")
        SubElement(value, "LinearAdjustment", slope="8", intercept=str(intercept_bits))
        return name

    def tag(self, name: str, bits: int) -> str:
        """Make a type of so many bits in packets with a security suite, and of none in others."""
        node = SubElement(self._set, f"Binary{self._kind}Type", name=name)
        SubElement(node, "UnitSet")
        lookups = SubElement(SubElement(SubElement(node, "BinaryDataEncoding"), "SizeInBits"), "DiscreteLookupList")
        for value, operator in ((0, "=="), (bits, "!=")):
            lookup = SubElement(lookups, "DiscreteLookup", value=str(value))
            SubElement(
                lookup,
                "Comparison",
                parameterRef="SKY_security",
                value="0",
                comparisonOperator=operator,
                useCalibratedValue="false",
            )
        return name

    def _make(self, name: str, one: Field, little: bool) -> None:
        if one.signed is None:
            node = SubElement(self._set, f"Binary{self._kind}Type", name=name)
            SubElement(node, "UnitSet")
            size = SubElement(SubElement(node, "BinaryDataEncoding"), "SizeInBits")
            SubElement(size, "FixedValue").text = str(one.bits)
            return
        kind = "Enumerated" if one.labels else "Integer"
        more = {} if one.labels else {"signed": str(one.signed).lower(), "sizeInBits": str(max(one.bits, 8))}
        node = SubElement(self._set, f"{kind}{self._kind}Type", {"name": name, **more})
        units = SubElement(node, "UnitSet")
        if one.unit:
            SubElement(units, "Unit").text = one.unit
        order = {"byteOrder": "leastSignificantByteFirst"} if little else {}
        encoding = "twosComplement" if one.signed else "unsigned"
        SubElement(node, "IntegerDataEncoding", {"sizeInBits": str(one.bits), "encoding": encoding, **order})
        if one.labels:
            labels = SubElement(node, "EnumerationList")
            for label, value in one.labels.items():
                SubElement(labels, "Enumeration", value=str(value), label=label)
        elif name == one.name:  # a range narrower than its bits
            valid = SubElement(node, "ValidRangeSet" if self._kind == "Argument" else "ValidRange")
            SubElement(valid, "ValidRange", minInclusive=str(one.least), maxInclusive=str(one.most))


class Telemetry:
    """TelemetryMetaData: parameters and their containers."""

    def __init__(self, system: Element, big_endian: bool) -> None:
        meta = SubElement(system, "TelemetryMetaData")
        self.types = Types("Parameter", meta, big_endian)
        self._parameters = SubElement(meta, "ParameterSet")
        self._containers = SubElement(meta, "ContainerSet")
        self._made: set[str] = set()

    def container(
        self, name: str, doc: str, base: str | None, where: Iterable[tuple[str, int, str]], *, abstract: bool = False
    ) -> Element:
        """Make a container and return its list of entries.

        Args:
            where: (parameter, value, operator) that tell it from others.
        """
        node = SubElement(self._containers, "SequenceContainer", name=name, shortDescription=doc, abstract=str(abstract).lower())
        entries = SubElement(node, "EntryList")
        if base is not None:
            criteria = SubElement(SubElement(node, "BaseContainer", containerRef=base), "RestrictionCriteria")
            comparisons = SubElement(criteria, "ComparisonList")
            for parameter, value, operator in where:
                SubElement(
                    comparisons, "Comparison", parameterRef=parameter, value=str(value), comparisonOperator=operator,
                    useCalibratedValue="false",
                )  # fmt: skip
        return entries

    def fields(self, entries: Element, fields: Iterable[Field], prefix: str = "", *, wire: bool = False) -> None:
        """Add fields in their order."""
        for one in fields:
            self.parameter(entries, prefix + one.name, self.types.of(one, wire=wire), one.doc)

    def parameter(self, entries: Element, name: str, kind: str, doc: str) -> None:
        """Add one parameter, which is made when it is first used."""
        if name not in self._made:
            self._made.add(name)
            more = {"shortDescription": doc} if doc else {}
            SubElement(self._parameters, "Parameter", {"name": name, "parameterTypeRef": kind, **more})
        SubElement(entries, "ParameterRefEntry", parameterRef=name)


def bus_telemetry(telemetry: Telemetry, packets: Sequence[Packet]) -> None:
    """Add the housekeeping that the apps send on the Software Bus."""
    entries = telemetry.container("CCSDSPacket", "Space Packet, CCSDS 133.0-B-2", None, (), abstract=True)
    telemetry.fields(entries, PRIMARY, wire=True)
    where = [("CCSDS_Type", TELEMETRY, "=="), ("CCSDS_SecondaryHeader", 1, "==")]
    entries = telemetry.container("Telemetry", "cFS telemetry, or a response over UDP", "CCSDSPacket", where, abstract=True)
    telemetry.fields(entries, TELEMETRY_SECONDARY, wire=True)
    for packet in packets:
        if packet.function_code is None:
            entries = telemetry.container(packet.name, packet.doc, "Telemetry", [("CCSDS_APID", packet.apid, "==")])
            telemetry.fields(entries, packet.fields, f"{packet.name}_")


class Wire:
    """Requests and responses over UDP (docs/icd.md) as containers, so that a recording of a link can be read."""

    def __init__(self, telemetry: Telemetry, icd: dict[str, Any]) -> None:
        self._telemetry = telemetry
        self._icd = icd
        self._header = [_wire_field(one, self._labels(one["name"])) for one in icd["header"]]
        telemetry.types.payload("payload", 0)
        telemetry.types.tag("tag", 8 * icd["tag_bytes"])
        for kind, (rest, _) in RESTS.items():
            telemetry.types.payload(rest, -8 * self._fixed(kind))

    def _labels(self, name: str) -> dict[str, int]:
        table = self._icd.get(_LABELS.get(name, ""), {})
        return {label: entry["value"] for label, entry in table.items()}

    def containers(self) -> None:
        """Add the containers of both directions and both applications."""
        where = [("CCSDS_Type", COMMAND, "=="), ("CCSDS_SecondaryHeader", 1, "==")]
        entries = self._telemetry.container("Request", "a request over UDP", "CCSDSPacket", where, abstract=True)
        self._telemetry.fields(entries, COMMAND_SECONDARY, wire=True)
        for app, apid in self._icd["apid"].items():
            for direction, base in (("request", "Request"), ("response", "Telemetry")):
                name = f"{app.upper()}_{direction.capitalize()}"
                where = [("CCSDS_APID", apid["value"], "==")]
                entries = self._telemetry.container(name, apid["doc"], base, where, abstract=True)
                self._telemetry.fields(entries, self._header, "SKY_", wire=True)
                for op, entry in self._icd["op"].items():
                    if app in entry["apids"]:
                        self._operation(app, name, op, entry, direction)

    def _operation(self, app: str, base: str, op: str, entry: dict[str, Any], direction: str) -> None:
        """Add a container for the operation's packets with content, and one for answers without it."""
        name, kind = f"{app.upper()}_{op.upper()}_{direction.capitalize()}", entry[direction]
        selected, ok = [("SKY_op", entry["value"], "==")], [("SKY_status", self._icd["status"]["ok"]["value"], "==")]
        if kind in ("none", "bytes") and op != "get":
            self._container(name, base, "bytes", app, selected)
            return
        whole = [("SKY_length", self._fixed(kind), ">=")] if kind in RESTS else {"migrate": [], "stats": ok, "bytes": ok}[kind]
        self._container(name, base, kind, app, [*selected, *whole])
        if op == "get" and direction == "response":
            missing = ("SKY_status", self._icd["status"]["not_found"]["value"])
            self._container(f"{name}_Missing", base, "chunk_set", app, [*selected, (*missing, "==")])
            self._container(f"{name}_Refused", base, "bytes", app, [*selected, (*missing, ">")])
        elif kind in RESTS:
            self._container(f"{name}_Refused", base, "bytes", app, [*selected, ("SKY_length", self._fixed(kind), "<")])
        elif kind == "stats":
            self._container(f"{name}_Refused", base, "bytes", app, [*selected, (ok[0][0], ok[0][1], "!=")])

    def _fixed(self, payload: str) -> int:
        return sum(one["bytes"] for one in self._icd["payload"][payload])

    def _container(self, name: str, base: str, kind: str, app: str, where: list[tuple[str, int, str]]) -> None:
        telemetry = self._telemetry
        entries = telemetry.container(name, f"operation {name.split('_')[1]}", base, where)
        if kind == "bytes":
            telemetry.parameter(entries, "SKY_payload", "payload", "of `SKY_length` bytes")
        elif kind == "stats":
            telemetry.fields(entries, self._counters(app), f"{app.upper()}_STATS_", wire=True)
        else:
            telemetry.fields(entries, [_wire_field(one, {}) for one in self._icd["payload"][kind]], f"{kind}_", wire=True)
        if kind in RESTS:
            rest, doc = RESTS[kind]
            telemetry.parameter(entries, f"{kind}_{rest}", rest, doc)
        telemetry.parameter(entries, "SKY_tag", "tag", "of 16 bytes with a security suite other than 0")
        telemetry.fields(entries, [Field("PEC", 16, doc="CRC-16/CCITT-FALSE over all bytes before it")], wire=True)

    def _counters(self, app: str) -> list[Field]:
        stats = self._icd["stats"]
        names = list(stats[app])
        if app == "isl":
            names += [f"{link}_{counter}" for link in LINKS for counter in stats["link"]]
        return [Field(name, 64) for name in names]


def _wire_field(entry: dict[str, Any], labels: dict[str, int]) -> Field:
    signed = None if entry["bytes"] > 8 else False
    return Field(entry["name"], 8 * entry["bytes"], signed, entry["doc"], labels)


def commands(system: Element, packets: Sequence[Packet], big_endian: bool) -> None:
    """Add CommandMetaData: the commands of the apps on the Software Bus, ready except for sequence count and checksum."""
    meta = SubElement(system, "CommandMetaData")
    types = Types("Argument", meta, big_endian)
    metas = SubElement(meta, "MetaCommandSet")
    head = (*PRIMARY, *COMMAND_SECONDARY)
    _, arguments, entries = _meta_command(metas, "CCSDSCommand", "a cFS command", None, {}, abstract=True)
    for one in head:
        _argument(arguments, entries, one.name, types.of(one, wire=True), one.doc, None)
    fixed = {"CCSDS_Version": 0, "CCSDS_Type": COMMAND, "CCSDS_SecondaryHeader": 1, "CCSDS_SequenceFlags": 3}
    left = {"CCSDS_SequenceCount": 0, "Checksum": 0}
    for packet in packets:
        if packet.function_code is None:
            continue
        own = {"CCSDS_APID": packet.apid, "CCSDS_Length": packet.bytes - LENGTH_LESS, "FunctionCode": packet.function_code}
        node, arguments, entries = _meta_command(metas, packet.name, packet.doc, "CCSDSCommand", {**fixed, **left, **own})
        for one in packet.fields:
            default = next(iter(one.labels)) if one.labels else "00" * (one.bits // 8) if one.signed is None else str(one.least)
            _argument(arguments, entries, one.name, types.of(one), one.doc, "0" if one.signed else default)
        if not packet.fields:
            node.remove(arguments)
        if packet.hazard:
            SubElement(node, "DefaultSignificance", reasonForWarning=packet.hazard, consequenceLevel="critical")


def _meta_command(
    metas: Element, name: str, doc: str, base: str | None, assigned: dict[str, int], *, abstract: bool = False
) -> tuple[Element, Element, Element]:
    """Make a MetaCommand; return it, its list of arguments and that of its container's entries."""
    node = SubElement(metas, "MetaCommand", name=name, shortDescription=doc, abstract=str(abstract).lower())
    if base is not None:
        values = SubElement(SubElement(node, "BaseMetaCommand", metaCommandRef=base), "ArgumentAssignmentList")
        for argument, value in assigned.items():
            SubElement(values, "ArgumentAssignment", argumentName=argument, argumentValue=str(value))
    arguments = SubElement(node, "ArgumentList")
    container = SubElement(node, "CommandContainer", name=name)
    entries = SubElement(container, "EntryList")
    if base is not None:
        SubElement(container, "BaseContainer", containerRef=base)
    return node, arguments, entries


def _argument(arguments: Element, entries: Element, name: str, kind: str, doc: str, default: str | None) -> None:
    more = {"shortDescription": doc} if doc else {}
    if default is not None:
        more["initialValue"] = default
    SubElement(arguments, "Argument", {"name": name, "argumentTypeRef": kind, **more})
    SubElement(entries, "ArgumentRefEntry", argumentRef=name)


def xtce(icd: dict[str, Any], packets: Sequence[Packet], note: str, *, big_endian: bool = False) -> str:
    """Return the document."""
    assert sum(one.bits for one in (*PRIMARY, *COMMAND_SECONDARY)) == 8 * COMMAND_BYTES
    system = Element(
        "SpaceSystem",
        {"name": "SkyMemory", "xmlns": NAMESPACE, "xmlns:xsi": XSI, "xsi:schemaLocation": f"{NAMESPACE} {SCHEMA}",
         "shortDescription": "Commands and telemetry of the cFS apps isl and kvc, and their packets over UDP"},
    )  # fmt: skip
    SubElement(system, "Header", version=str(icd["version"]), validationStatus="Working")
    telemetry = Telemetry(system, big_endian)
    bus_telemetry(telemetry, packets)
    Wire(telemetry, icd).containers()
    commands(system, packets, big_endian)
    ElementTree.indent(system, " ")
    body = ElementTree.tostring(system, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {note} -->\n{body}\n'
