"""The files of the core, and of the ground beside it, use each other in one direction: what is below does not know what is above.

A file uses another by including its private header, or by calling a function that it defines. All C is in layers, each of which
includes headers of those below it only.
"""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SKY = Path(__file__).parents[2] / "fsw_apps" / "sky"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^#include "(\w+)\.h"', re.MULTILINE)
DEFINITION = re.compile(r"^(?!static\b)\w[\w *]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
DECLARATION = re.compile(r"^(#define \w+\(|\w[\w *]*?\b\w+\([^;{}]*\);)", re.MULTILINE)
CALL = re.compile(r"\b(SKY_\w+)\(")

ROOT = SKY.parents[1]
LAYERS = {
    "core": ("fsw_apps/sky/fsw", {"core"}),
    "ground": ("fsw_apps/sky/ground", {"core", "ground"}),
    "crypto": ("fsw_apps/sky/crypto", {"core", "crypto"}),
    "isl": ("fsw_apps/isl/fsw", {"core", "crypto", "cFE", "isl"}),
    "kvc": ("fsw_apps/kvc/fsw", {"core", "cFE", "kvc"}),
    "exec": ("testbed/exec", {"cFE", "exec"}),
    "satellite": ("testbed/skysat", {"core", "cFE", "isl", "kvc", "exec", "satellite"}),
    "twin": ("testbed/twin", {"core", "ground", "crypto", "twin"}),
    "native": ("ground/native", {"core", "ground", "crypto", "native"}),
}
"""Folder of each layer of C, and the layers whose headers it may include. cFE is what testbed/exec stands in for."""
CFE = re.compile(r"(cfe\w*|common_types|osapi|osconfig)\.h")
EXCEPTIONS = {
    ("core", "cfe.h"),  # the cFS library around the core: sky_lib.c
    ("core", "common_types.h"),
    ("ground", "sky_placement_priv.h"),  # a window is a part of placement, which only the ground asks about as a whole
}
"""Layer and header of what is included against the order, or though it is private."""


def uses(folder: Path) -> dict[str, set[str]]:
    """Return the other files that each file of a folder uses; a source and its header are one file."""
    texts: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.[ch]")):
        texts.setdefault(path.stem, []).append(COMMENT.sub("", path.read_text()))
    bodies = {name: "\n".join(parts) for name, parts in texts.items()}
    definers: dict[str, set[str]] = {}  # more than one where each is for another processor
    for name, body in bodies.items():
        for function in DEFINITION.findall(body):
            definers.setdefault(function, set()).add(name)
    found = {}
    for name, body in bodies.items():
        included = {header for header in INCLUDE.findall(body) if (folder / f"{header}.h").exists()}
        functions = set(CALL.findall(DECLARATION.sub("", body))) - set(DEFINITION.findall(body))
        called = [definers.get(function, set()) for function in functions]
        found[name] = included.union(*called) - {name}
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return files that use each other in a circle, the first of them again at the end; none if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize(
    ("folder", "above", "below"),
    [
        ("fsw", "sky_service_scrub", {"sky_service_core", "sky_service_survey"}),
        ("ground", "sky_host_lanes", {"sky_host_exchange", "sky_host_pieces"}),
    ],
)
def test_no_files_use_each_other_in_a_circle(folder: str, above: str, below: set[str]) -> None:
    graph = uses(SKY / folder / "src")
    assert graph[above] >= below, "nothing was read"
    assert not circle(graph)


def test_features_of_the_service_do_not_know_the_service() -> None:
    """A function that gets the core and its own structure cannot reach for a feature above it."""
    on_top = {"sky_service", "sky_service_answer", "sky_service_stats"}
    knowing = {path.stem for path in (SKY / "fsw" / "src").glob("*.[ch]") if "SKY_Service_t" in COMMENT.sub("", path.read_text())}
    assert knowing == on_top


@pytest.mark.parametrize(
    "files",
    [
        {"a.h": "", "b.h": "", "a.c": '#include "a.h"\n#include "b.h"\n', "b.c": '#include "a.h"\n'},
        {"a.h": '#include "b.h"\n', "b.h": '#include "c.h"\n', "c.c": '#include "c.h"\n#include "a.h"\n', "c.h": ""},
        {"both.h": "", "a.c": "int SKY_A(void)\n{\n    return SKY_B();\n}\n", "b.c": "int SKY_B(void)\n{\n    SKY_A();\n}\n"},
    ],
    ids=["headers of each other", "three in a circle", "calls behind a shared header"],
)
def test_a_circle_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert len(circle(uses(tmp_path))) >= 3


def test_what_is_used_in_one_direction_is_no_circle(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("")
    (tmp_path / "c.c").write_text("int SKY_A(int of, int all);\n")  # declares it and does not call it
    (tmp_path / "a.c").write_text('#include "a.h"\n\nint SKY_A(int of,\n          int all)\n{\n    return of + all;\n}\n')
    (tmp_path / "b.c").write_text(
        '#include "a.h" /* not c.h */\n\nstatic int b(void)\n{\n    return SKY_A(1, 2); /* SKY_C() */\n}\n'
    )
    assert uses(tmp_path) == {"a": set(), "b": {"a"}, "c": set()}
    assert circle(uses(tmp_path)) == []


def included(layer: str) -> set[tuple[Path, str]]:
    """Return the headers that the files of a layer include, each with the file that includes it."""
    files = (ROOT / LAYERS[layer][0]).rglob("*.[ch]")
    return {(path, f"{header}.h") for path in files for header in INCLUDE.findall(COMMENT.sub("", path.read_text()))}


def owners() -> dict[str, tuple[str, Path]]:
    """Return the layer and the path of each header, by its name."""
    found: dict[str, tuple[str, Path]] = {}
    for layer, (folder, _) in LAYERS.items():
        for path in (ROOT / folder).rglob("*.h"):
            assert path.name not in found, f"{path.name} is in two places"
            found[path.name] = ("cFE" if CFE.fullmatch(path.name) else layer, path)
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_includes_only_those_below_it(layer: str) -> None:
    where, allowed = owners(), LAYERS[layer][1]
    known = {(path, header) for path, header in included(layer) if header in where}
    assert known, "nothing was read"
    against = {(path.name, header) for path, header in known if where[header][0] not in allowed}
    assert not {(name, header) for name, header in against if (layer, header) not in EXCEPTIONS}


@pytest.mark.parametrize("layer", LAYERS)
def test_private_headers_stay_in_their_folder(layer: str) -> None:
    """A header that stands in a `src` folder is private."""
    where = owners()
    known = {(path, header) for path, header in included(layer) if header in where and (layer, header) not in EXCEPTIONS}
    private = {(path, header) for path, header in known if where[header][1].parent.name == "src"}
    assert not {(path.name, header) for path, header in private if path.parent != where[header][1].parent}


def test_headers_include_each_other_in_no_circle() -> None:
    where = owners()
    graph = {
        name: {header for header in map("{}.h".format, INCLUDE.findall(COMMENT.sub("", path.read_text()))) if header in where}
        for name, (_, path) in where.items()
    }
    assert not circle(graph)


def test_exceptions_are_needed() -> None:
    where = owners()
    for layer, header in EXCEPTIONS:
        assert header in {name for _, name in included(layer)}
        assert where[header][0] not in LAYERS[layer][1] or where[header][1].parent.name == "src"


def test_only_the_library_of_the_core_includes_cfe() -> None:
    assert {path.stem for path, header in included("core") if CFE.fullmatch(header)} <= {"sky_lib", "sky_lib_assert"}
