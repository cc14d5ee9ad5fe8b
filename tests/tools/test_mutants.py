"""Planted faults: each patch applies, the same commit plants the same ones, and the tool tells who found what.

The tool is run, as a program, in a small project: one function in C, its unit test, and a twin that calls the function.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from support.waiting import wait_until

ROOT: Final = Path(__file__).parents[2]
DEADLINE_S: Final = 60.0

CMAKE: Final = """
cmake_minimum_required(VERSION 3.20)
project(small LANGUAGES C)
enable_testing()
add_executable(test_twice twice.c test_twice.c)
add_test(NAME sky/test_twice COMMAND test_twice)
add_test(NAME twin/test_of_the_twin COMMAND false)
add_library(small_twin SHARED twice.c)
set_target_properties(small_twin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/testbed)
add_library(small_client SHARED twice.c)
set_target_properties(small_client PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/ground/native)
"""
CODE: Final = """int twice(int of);

int twice(int of)
{
    int sum = of;

    sum += of;
    return sum;
}
"""
TEST: Final = """int twice(int of);

int main(void)
{
    return twice(3) == 6 ? 0 : 1;
}
"""
SEEDS: Final = """
import ctypes
import os
from types import SimpleNamespace

ctypes.CDLL(os.environ["SKYMEM_NATIVE_DIR"] + "/libsmall_client.so")
LIBRARY = ctypes.CDLL(os.environ["SKYMEM_NATIVE_DIR"] + "/libsmall_twin.so")


def run_seed(seed):
    wrong = LIBRARY.twice(seed) != 2 * seed
    return SimpleNamespace(violated=int(wrong), first=[f"exact: twice {seed} is wrong"] if wrong else [])
"""


def edited(old: str, new: str) -> str:
    """Return the patch of an edit of twice.c, with what it breaks."""
    lines, number = CODE.splitlines(), CODE.splitlines().index(old) + 1
    before, after = lines[number - 2], lines[number]
    head = "diff --git a/twice.c b/twice.c\n--- a/twice.c\n+++ b/twice.c\n"
    return f"{new.strip()}\n\n{head}@@ -{number - 1},3 +{number - 1},3 @@\n {before}\n-{old}\n+{new}\n {after}\n"


FAULTS: Final = {
    "1-always": ("    sum += of;", "    sum += 0;"),
    "2-for-some": ("    sum += of;", "    sum += of == 5 ? 0 : of;"),
    "3-for-large": ("    sum += of;", "    sum += of > 1000 ? 0 : of;"),
    "4-abort": ("    sum += of;", "    sum += of == 2 ? *(volatile int *)0 : of;"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout of a small project with faults to plant."""
    root = tmp_path / "project"
    files = {"CMakeLists.txt": CMAKE, "twice.c": CODE, "test_twice.c": TEST, "ground/skymemory/twin/seeds.py": SEEDS}
    files |= dict.fromkeys(("ground/skymemory/__init__.py", "ground/skymemory/twin/__init__.py"), "")
    files |= {f"tests/mutants/{name}.patch": edited(*edit) for name, edit in FAULTS.items()}
    files |= {f"tools/{name}.py": (ROOT / f"tools/{name}.py").read_text() for name in ("mutants", "twin_seeds")}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    return root


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the tool, with a folder of its own for temporary files."""
    (project.parent / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, project / "tools/mutants.py", "--seeds", "9", "--jobs", "2", *arguments],
        env={**os.environ, "TMPDIR": str(project.parent / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(project: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the tool to its end."""
    with start(project, *arguments) as process:
        out, err = process.communicate(timeout=4 * DEADLINE_S)
    return process.returncode, out, err


def results(project: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    status, out, err = run(project, "--json", *arguments)
    return status, {one["name"]: one for one in json.loads(out)}, err


def test_every_patch_of_ours_applies_and_says_what_it_breaks(tmp_path: Path) -> None:
    from mutants import check_patches, copy_tree, load_all

    mutants = load_all(ROOT)
    assert len(mutants) == 42
    copy_tree(ROOT, tmp_path)
    check_patches(mutants, tmp_path)
    assert all(len(mutant.breaks) > 40 for mutant in mutants)


def test_unit_test_and_twin_are_told_apart(project: Path) -> None:
    status, found, said = results(project, "--only", "1-always", "2-for-some", "3-for-large", "4-abort")
    assert status == 1
    assert found["1-always"]["unit"] == "sky/test_twice"
    assert found["1-always"]["twin"] == "seed 1: exact: twice 1 is wrong"
    assert found["2-for-some"]["unit"] is None
    assert found["2-for-some"]["twin"] == "seed 5: exact: twice 5 is wrong"
    assert (found["3-for-large"]["unit"], found["3-for-large"]["twin"]) == (None, None)
    assert found["4-abort"]["twin"] == "seed 2: ended by SIGSEGV"
    assert "the unit tests miss 2-for-some, 3-for-large, 4-abort; the twin misses 3-for-large" in said
    assert "twin/test_of_the_twin" not in said, "the twin's own tests are no unit tests"
    assert not list((project.parent / "tmp").iterdir())
    assert (project / "twice.c").read_text() == CODE


def test_what_the_unit_tests_find_is_enough_for_a_few(project: Path) -> None:
    status, out, said = run(project, "--only", "1-always")
    assert status == 0
    assert out.splitlines()[0] == "| fault | what it breaks | unit test | twin | seconds |"
    assert out.splitlines()[2].startswith("| 1-always | sum += 0; | sky/test_twice | seed 1: exact: twice 1 is wrong | ")
    assert said.splitlines()[-1] == "of 1 faults the unit tests find 1 and the twin 1"


def test_a_patch_that_no_longer_applies_is_named(project: Path) -> None:
    (project / "tests/mutants/3-for-large.patch").write_text(edited(*FAULTS["3-for-large"]).replace("-    sum +=", "-    sum -="))
    status, _, said = run(project, "--only", "1-always")
    assert status == 1
    assert "3-for-large does not apply any more" in said
    assert "1-always: build" not in said, "it is told before anything is built"


def test_a_patch_without_words_is_refused(project: Path) -> None:
    path = project / "tests/mutants/3-for-large.patch"
    path.write_text(path.read_text().partition("\n\n")[2])
    status, _, said = run(project, "--only", "1-always")
    assert status == 1
    assert "3-for-large.patch: does not begin with lines that say what it breaks" in said


def test_a_fault_that_does_not_compile_is_not_found_by_anybody(project: Path) -> None:
    (project / "tests/mutants/3-for-large.patch").write_text(edited("    sum += of;", "    sum += nothing;"))
    status, found, said = results(project, "--only", "3-for-large", "1-always")
    assert status == 1
    assert "3-for-large does not compile" in said
    assert (found["3-for-large"]["unit"], found["3-for-large"]["twin"]) == (None, None)
    assert found["1-always"]["unit"] == "sky/test_twice", "the others are planted all the same"


def test_a_unit_test_that_aborts_has_found_the_fault(project: Path) -> None:
    aborts = TEST.replace("int twice", "#include <stdlib.h>\n\nint twice", 1).replace("? 0 : 1;", "? 0 : (abort(), 1);")
    (project / "test_twice.c").write_text(aborts)
    status, found, _ = results(project, "--only", "1-always")
    assert status == 0
    assert found["1-always"]["unit"] == "sky/test_twice"


def test_a_tree_that_fails_without_a_fault_is_told(project: Path) -> None:
    (project / "test_twice.c").write_text(TEST.replace("6", "7"))
    status, out, said = run(project)
    assert (status, out) == (1, "")
    assert "without any fault sky/test_twice fails" in said


def test_files_that_git_does_not_know_yet_are_planted_in_too(project: Path) -> None:
    (project / "test_twice.c").write_text(TEST.replace("twice(3) == 6", "twice(3) == 6 && twice(5) == 10"))
    (project / "tests/mutants/9-new.patch").write_text(edited(*FAULTS["2-for-some"]))
    status, found, _ = results(project, "--only", "9-new")
    assert status == 0
    assert found["9-new"]["unit"] == "sky/test_twice"


def test_a_seed_that_hangs_is_found(project: Path) -> None:
    tool = project / "tools/mutants.py"
    assert "SEED_LIMIT_S = 30\n" in tool.read_text()
    tool.write_text(tool.read_text().replace("SEED_LIMIT_S = 30\n", "SEED_LIMIT_S = 2\n"))
    hangs = edited("    sum += of;", "    for (sum += of; of == 4; sum += *(volatile int *)&of) {}")
    (project / "tests/mutants/9-hangs.patch").write_text(hangs)
    _, found, _ = results(project, "--only", "9-hangs")
    assert found["9-hangs"]["twin"] == "seed 4: hung: no end after 2 s"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(project: Path, number: signal.Signals) -> None:
    seeds = project / "ground/skymemory/twin/seeds.py"
    seeds.write_text("import os, time\ndef run_seed(seed):\n    os.write(2, b'here'); time.sleep(600)\n")
    with start(project, "--only", "1-always") as process:
        assert process.stderr is not None
        deadline_s = time.monotonic() + DEADLINE_S
        while "unit tests: sky/test_twice; twin" not in process.stderr.readline():
            assert time.monotonic() < deadline_s
        folder = next((project.parent / "tmp").iterdir())
        files = folder / "build"
        wait_until(lambda: any(path.read_text() == "here" for path in files.glob("seeds-*.err")), patience_s=DEADLINE_S)
        process.send_signal(number)
        assert process.wait(timeout=DEADLINE_S) == 128 + number
    assert not list((project.parent / "tmp").iterdir())
    assert not _processes_in(folder)


def _processes_in(folder: Path) -> list[str]:
    """Return the command lines of processes that work in a folder."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return [line for line in lines if str(folder) in line]


def test_a_commit_always_plants_the_same() -> None:
    from mutants import chosen, load_all

    mutants = load_all(ROOT)
    commits = [f"{number:040x}" for number in range(60)]
    drawn = [[mutant.name for mutant in chosen(mutants, [], 3, commit)] for commit in commits]
    assert drawn == [[mutant.name for mutant in chosen(list(reversed(mutants)), [], 3, commit)][::-1] for commit in commits]
    assert {len(names) for names in drawn} == {3}
    assert {name for names in drawn for name in names} == {mutant.name for mutant in mutants}, "each has its turn"


def test_all_faults_may_have_four_that_the_twin_does_not_run() -> None:
    from mutants import Result, verdict

    def told(unit: int, twin: int, are_all: bool) -> tuple[bool, str]:
        """What is said of 24 faults of which so many were found."""
        found = [Result(f"{n:02}", "", "a" if n < unit else None, "b" if n < twin else None) for n in range(24)]
        return verdict(found, are_all)

    assert told(24, 20, True)[0]
    assert told(24, 19, True) == (
        False,
        "of 24 faults the unit tests find 24 and the twin 19; the twin misses 19, 20, 21, 22, 23",
    )
    assert told(24, 0, False)[0]
    assert told(23, 24, True) == (False, "of 24 faults the unit tests find 23 and the twin 24; the unit tests miss 23")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--pick", "3"], "--pick and --by go together"),
        (["--seeds", "0"], "--seeds is 0; allowed is 1 and more"),
        (["--only", "1-always", "--pick", "1", "--by", "a"], "not allowed with argument"),
    ],
)
def test_options_that_make_no_sense_are_refused(project: Path, arguments: list[str], told: str) -> None:
    status, _, said = run(project, *arguments)
    assert status == 2
    assert told in said


def test_a_name_that_does_not_exist_is_told_with_those_that_do(project: Path) -> None:
    status, _, said = run(project, "--only", "5-nothing")
    assert status == 1
    assert "no fault is called '5-nothing'; there are 1-always, 2-for-some" in said
