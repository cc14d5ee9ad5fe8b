"""The electronic data sheets of the cFS apps say what their C headers say: every code, field, width, length, and the order.

The sheets are read as a mission's tools read them, the headers as text; what the compiler makes of them is a second witness.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from skymemory.fsw.link_names import LINKS, NEIGHBOURS
from support import c_layouts

APPS = Path(__file__).parents[2] / "fsw_apps"
SEDS = "{http://www.ccsds.org/schema/sois/seds}"
INTEGER_BITS = {f"{sign}int{bits}": bits for sign in ("u", "") for bits in (8, 16, 32, 64)}
HEADER_TYPES = {"CFE_HDR/CommandHeader": "CFE_MSG_CommandHeader_t", "CFE_HDR/TelemetryHeader": "CFE_MSG_TelemetryHeader_t"}
# Interfaces of each app that have a topic id.
TOPICS = ("CMD", "SEND_HK", "WAKEUP", "HK_TLM")


@dataclass(frozen=True)
class Member:
    """A field: an integer of `bits`, or the structure `kind` of the same app; `count` of them, 1 if no array."""

    name: str
    kind: str
    bits: int
    count: int
    signed: bool = False


def header(app: str, part: str, source: str = "default") -> str:
    """A header of an app, without comments: one that a mission may override, else one that it may not."""
    path = APPS / app / "config" / f"{source}_{app}_{part}.h"
    text = (path if path.exists() else APPS / app / "fsw" / "inc" / f"{app}_{part}.h").read_text()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def defines(text: str) -> dict[str, str]:
    """Macros with a value."""
    return {name: value.strip() for name, value in re.findall(r"^#define (\w+)[ \t]+(\S.*)$", text, re.MULTILINE)}


class Headers:
    """What the headers of an app say where no data sheets are used."""

    def __init__(self, app: str) -> None:
        self.prefix = f"{app.upper()}_"
        numbers = {name: value for name, value in defines(header(app, "interface_cfg")).items() if value[0].isdigit()}
        self.config = {name.removeprefix("DEFAULT_"): int(value, 0) for name, value in numbers.items()}
        values = re.findall(rf"\b{self.prefix}FunctionCode_(\w+)\s*=\s*(\d+)", header(app, "fcncode_values"))
        self.codes = {f"{self.prefix}{name}_CC": int(value) for name, value in values}
        self.topics = {name for name in defines(header(app, "topicids")) if not name.startswith("DEFAULT_")}
        self.tables = {
            value.strip('"') for name, value in defines(header(app, "tbldefs")).items() if name.endswith("_TABLE_NAME")
        }
        self.structures: dict[str, list[Member]] = {}
        self.messages: dict[str, list[Member]] = {}
        for part in ("msgdefs", "tbldefs", "tblstruct", "msgstruct"):
            for body, name in re.findall(r"typedef struct \w+\s*\{([^}]*)\}\s*(\w+)_t;", header(app, part)):
                kind = self.messages if part == "msgstruct" else self.structures
                kind[name.removeprefix(self.prefix)] = [self._member(line) for line in body.split(";") if line.strip()]

    def _member(self, declaration: str) -> Member:
        match = re.fullmatch(r"(\w+)\s+(\w+)(?:\[(\w+)\])?", declaration.strip())
        assert match, declaration
        kind, name, length = match.groups()
        count = 1 if length is None else self.config[length] if length in self.config else int(length, 0)
        if kind in INTEGER_BITS:
            return Member(name, "", INTEGER_BITS[kind], count, not kind.startswith("u"))
        return Member(name, kind.removesuffix("_t").removeprefix(self.prefix), 0, count)


class Sheet:
    """The data sheet of an app, with the mission's parameters as the headers have them."""

    def __init__(self, app: str, parameters: dict[str, int]) -> None:
        root = ElementTree.parse(APPS / app / "eds" / f"{app}.xml").getroot()
        packages = root.findall(f"{SEDS}Package")
        assert [package.get("name") for package in packages] == [app.upper()]
        self.app = app.upper()
        self.package = packages[0]
        self.parameters = parameters
        types = self.package.find(f"{SEDS}DataTypeSet")
        assert types is not None
        self.types = {str(node.get("name")): node for node in types}
        assert len(self.types) == len(types), "a type is defined twice"

    def number(self, text: str) -> int:
        """A number, or ${APP/PARAMETER} of the mission."""
        match = re.fullmatch(rf"\$\{{{self.app}/(\w+)\}}", text)
        return self.parameters[f"{self.app}_{match[1]}"] if match else int(text, 0)

    def labels(self, name: str) -> list[str]:
        """Labels of an enumeration, which must count from 0."""
        entries = self.types[name].findall(f"{SEDS}EnumerationList/{SEDS}Enumeration")
        assert [int(str(entry.get("value"))) for entry in entries] == list(range(len(entries)))
        return [str(entry.get("label")) for entry in entries]

    def member(self, name: str, kind: str, count: int = 1) -> Member:
        """A field of a type of the sheet, down to integers and structures."""
        if kind.startswith("BASE_TYPES/"):
            integer = kind.removeprefix("BASE_TYPES/")
            return Member(name, "", INTEGER_BITS[integer], count, not integer.startswith("u"))
        node = self.types[kind]
        if node.tag == f"{SEDS}ArrayDataType":
            assert count == 1, "an array of arrays"
            dimensions = node.findall(f"{SEDS}DimensionList/{SEDS}Dimension")
            assert len(dimensions) == 1
            index, size = dimensions[0].get("indexTypeRef"), dimensions[0].get("size")
            length = len(self.labels(index)) if index else self.number(str(size))
            return self.member(name, str(node.get("dataTypeRef")), length)
        if node.tag == f"{SEDS}ContainerDataType":
            return Member(name, kind, 0, count)
        encoding = node.find(f"{SEDS}IntegerDataEncoding")
        assert encoding is not None
        assert encoding.get("encoding") == "unsigned"
        assert encoding.get("byteOrder") == "${CFE_MISSION/DATA_BYTE_ORDER}", "not in the byte order of the other fields"
        return Member(name, "", int(str(encoding.get("sizeInBits"))), count)

    def members(self, name: str) -> list[Member]:
        """The fields of a structure, without those of its base."""
        entries = self.types[name].find(f"{SEDS}EntryList")
        assert entries is None or all(entry.tag == f"{SEDS}Entry" for entry in entries), "padding has no name in C"
        return [self.member(str(entry.get("name")), str(entry.get("type"))) for entry in entries or ()]

    def base(self, name: str) -> str | None:
        """The header that a message begins with; None for other structures."""
        above = self.types[name].get("baseType")
        return None if above is None else HEADER_TYPES.get(above) or self.base(above)

    def containers(self) -> list[str]:
        return [name for name, node in self.types.items() if node.tag == f"{SEDS}ContainerDataType"]

    def interfaces(self) -> dict[str, tuple[str, str]]:
        """Interface of the component Application -> (its type, the data that it carries)."""
        component = self.package.find(f"{SEDS}ComponentSet/{SEDS}Component[@name='Application']")
        assert component is not None
        found = {}
        for node in component.findall(f"{SEDS}RequiredInterfaceSet/{SEDS}Interface"):
            mapped = node.find(f"{SEDS}GenericTypeMapSet/{SEDS}GenericTypeMap")
            assert mapped is not None
            found[str(node.get("name"))] = (str(node.get("type")), str(mapped.get("type")))
        return found

    def place(self, name: str) -> tuple[int, dict[str, int]]:
        """Alignment of a structure, and the offset of every field under natural alignment; the size is at ""."""
        at, widest, offsets = 0, 1, {}
        for member in self.members(name):
            align, size = member.bits // 8, member.bits // 8
            if member.kind:
                align, inner = self.place(member.kind)
                size = inner[""]
            assert at % align == 0, f"{name}.{member.name} is not aligned: the compiler would put bytes before it"
            offsets[member.name] = at
            at, widest = at + size * member.count, max(widest, align)
        assert at % widest == 0, f"the compiler would put bytes behind {name}"
        return widest, {**offsets, "": at}


@cache
def headers_of(app: str) -> Headers:
    return Headers(app)


@cache
def sheet_of(app: str) -> Sheet:
    return Sheet(app, headers_of(app).config)


def upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


both = pytest.mark.parametrize("app", ["isl", "kvc"])


@both
def test_structures_are_those_of_the_headers(app: str) -> None:
    sheet, headers = sheet_of(app), headers_of(app)
    assert {n for n in sheet.containers() if sheet.base(n) is None} == set(headers.structures)
    for name, fields in headers.structures.items():
        assert sheet.members(name) == fields, name


@both
def test_messages_are_those_of_the_headers(app: str) -> None:
    sheet, headers = sheet_of(app), headers_of(app)
    assert {n for n in sheet.containers() if sheet.base(n)} - {"CommandBase"} == set(headers.messages)
    for name, (first, *payload) in headers.messages.items():
        assert f"{first.kind}_t" == sheet.base(name), name
        assert sheet.members(name) == payload, name


@both
def test_function_codes(app: str) -> None:
    sheet, codes = sheet_of(app), {}
    for name in sheet.containers():
        constraints = sheet.types[name].findall(f"{SEDS}ConstraintSet/{SEDS}ValueConstraint")
        if sheet.types[name].get("baseType") == "CommandBase":
            assert [c.get("entry") for c in constraints] == ["Sec.FunctionCode"], name
            codes[f"{app.upper()}_{upper_snake(name.removesuffix('Cmd'))}_CC"] = int(str(constraints[0].get("value")))
        else:
            assert not constraints, name
    assert codes == headers_of(app).codes


@both
def test_dispatch_takes_every_message_of_the_sheet_at_its_length(app: str) -> None:
    prefix = app.upper()
    source = (APPS / app / "fsw" / "src" / f"{app}_dispatch.c").read_text()
    rows = [list(row) for row in re.findall(r"\{(\w+), (\w+), (\w+), sizeof\((\w+)\)\},", source)]
    expected = []
    for code in headers_of(app).codes:
        name = "".join(word.capitalize() for word in code.removeprefix(f"{prefix}_").removesuffix("_CC").split("_"))
        expected.append([f"{prefix}_MESSAGE_CMD", code, f"{prefix}_{name}Cmd", f"{prefix}_{name}Cmd_t"])
    for topic, name in (("SEND_HK", "SendHkCmd"), ("WAKEUP", "WakeupCmd")):
        expected.append([f"{prefix}_MESSAGE_{topic}", "0", f"{prefix}_{name}", f"{prefix}_{name}_t"])
    assert rows == expected
    assert [f"[{prefix}_MESSAGE_{topic}]={prefix}_{topic}_MID" for topic in ("CMD", "SEND_HK", "WAKEUP")] == re.findall(
        r"\[\w+\]=\w+_MID", source.replace(" ", "")
    )


@both
def test_interfaces_are_the_topics_and_the_tables(app: str) -> None:
    sheet, headers = sheet_of(app), headers_of(app)
    assert headers.topics == {f"CFE_MISSION_{app.upper()}_{topic}_TOPICID" for topic in TOPICS}
    assert sheet.interfaces() == {
        "CMD": ("CFE_SB/Telecommand", "CommandBase"),
        "SEND_HK": ("CFE_SB/Telecommand", "SendHkCmd"),
        "WAKEUP": ("CFE_SB/Telecommand", "WakeupCmd"),
        "HK_TLM": ("CFE_SB/Telemetry", "HkTlm"),
        **{table: ("CFE_TBL/Table", f"{table.rstrip('0123456789')}Table") for table in headers.tables},
    }
    maps = {str(m.get("interface")): str(m.get("variableRef")) for m in sheet.package.iter(f"{SEDS}ParameterMap")}
    values = {str(v.get("name")): v.get("initialValue") for v in sheet.package.iter(f"{SEDS}Variable")}
    assert {interface: values[name] for interface, name in maps.items()} == {
        topic: f"${{CFE_MISSION/{app.upper()}_{topic}_TOPICID}}" for topic in TOPICS
    }


@both
def test_sheets_lay_fields_out_as_the_compiler_does(app: str) -> None:
    sheet, compiled = sheet_of(app), c_layouts.layouts(c_layouts.FSW)
    witnessed = 0
    for name in headers_of(app).structures:
        _, offsets = sheet.place(name)  # the headers promise that there is no padding: this holds them to it
        for field, offset in offsets.items():
            at, size = compiled[f"{sheet.app}_{name}_t", field]
            assert (at, size) == (0, offset) if field == "" else at == offset, f"{name}.{field}"
            witnessed += 1
    assert witnessed > 20


def test_links_have_the_names_that_the_ground_uses() -> None:
    sheet = sheet_of("isl")
    assert [label.lower() for label in sheet.labels("LinkId")] == list(LINKS)
    assert [label.lower() for label in sheet.labels("Direction")] == list(NEIGHBOURS)
    torus = (APPS / "sky" / "fsw" / "inc" / "sky_torus.h").read_text()
    in_core = {name: int(value) for name, value in re.findall(r"SKY_LINK_(\w+)\s*=\s*(\d+)", torus)}
    assert [in_core[label] for label in sheet.labels("LinkId")] == list(range(len(LINKS)))


def test_longest_cut_is_the_missions_parameter() -> None:
    cut = sheet_of("isl").types["CutTime"].find(f"{SEDS}Range/{SEDS}MinMaxRange")
    assert cut is not None
    assert cut.get("max") == "${ISL/CUT_S_MAX}"
    assert cut.get("rangeType") == "inclusiveMinInclusiveMax"


@both
def test_headers_for_missions_with_sheets_define_the_same_names(app: str) -> None:
    replaced = sorted((APPS / app / "config").glob("eds_*.h"))
    assert replaced
    for path in replaced:
        part = path.stem.removeprefix(f"eds_{app}_")
        ours, theirs = defines(header(app, part)), defines(header(app, part, "eds"))
        assert ours.keys() == theirs.keys(), path.name
        assert all(value == ours[name] for name, value in theirs.items()), path.name
        assert macros(header(app, part)).keys() == macros(header(app, part, "eds")).keys(), path.name


@both
def test_values_have_the_names_of_what_uses_them(app: str) -> None:
    """By the rules of a mission's build, which finds out late: each value by its own name, for C and for data sheets."""
    codes = headers_of(app).codes
    for part, values, ends in (
        ("fcncodes", "fcncode_values", "_CC"),
        ("topicids", "topicid_values", "_TOPICID"),
        ("interface_cfg", "interface_cfg_values", ""),
        ("internal_cfg", "internal_cfg_values", ""),
    ):
        (macro,) = macros(header(app, values))
        names = defines(header(app, part))
        used = {name: match[1] for name, value in names.items() if (match := re.fullmatch(rf"{macro}\((\w+)\)", value))}
        assert used, part
        for name, argument in used.items():
            assert name.endswith(f"_{argument}{ends}"), name
            assert name in codes or f"DEFAULT_{name}" in names, name


def macros(text: str) -> dict[str, str]:
    """Macros of one argument."""
    return dict(re.findall(r"^#define (\w+)\(x\)[ \t]+(\S.*)$", text, re.MULTILINE))
