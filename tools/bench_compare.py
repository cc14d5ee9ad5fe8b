#!/usr/bin/env python3
"""Compare the speed of an earlier commit with that of the present build, and fail if processor time has grown.

usage: make bench-compare [BASE=COMMIT] [ROUNDS=30] [BOUND=10]
       tools/bench_compare.py [--base COMMIT] [--commit COMMIT] [--rounds 30] [--bound 10] [--json]

Each build has its own environment, satellites and agent, side by side on this machine: then a base may speak another version of
the protocol, and a loss of speed on board is seen, too. The two take turns at each operation, and the first turn changes from
round to round, so that other load meets both alike. Figures are medians of all rounds. The exit status is 1 if the processor time
of an operation, of host and satellites together, has grown by more than the bound, in two measurements. The second is made only
if the first one says so.

Without --base the base is the commit that tools/bench_base names; whoever lands or releases sets it. If that commit cannot be had
or built, as in a shallow clone, one line says so, and the exit status is 0. If a named commit cannot be had, built or run, it is
125, which `git bisect run` skips. With --commit another commit is compared instead of the build that is installed: then
`git bisect run` finds what made operations slower.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
BASE_FILE: Final = ROOT / "tools" / "bench_base"
KEPT: Final = ROOT / ".cache" / "bench-compare"
"""Folder of bases that were built; each is kept, by its commit."""
MONOCYPHER: Final = ROOT / ".cache" / "monocypher"
"""Sources that each build needs beside the tree."""
SIDE: Final = ROOT / "tools" / "bench_side.py"
PARTS: Final = ("host", "satellites", "wall")
WARM_UP_ROUNDS: Final = 1
CANNOT: Final = 125
"""Exit status of what cannot be compared."""
BUILD_LIMIT_S: Final = 1800
END_LIMIT_S: Final = 30
KEPT_BYTES: Final = str(32 << 20)
MEMORY: Final = {"MALLOC_MMAP_THRESHOLD_": KEPT_BYTES, "MALLOC_TRIM_THRESHOLD_": KEPT_BYTES}
"""Variables that tell the C library to keep memory that is freed: else page faults are most of what varies."""


class BuildError(Exception):
    """A commit cannot be had or built."""


class BenchError(Exception):
    """A build does not run the operations."""


@dataclass(frozen=True)
class Build:
    """A build to measure."""

    name: str
    packages: Path
    """Folder of its Python package."""
    command: Path
    """Its command `skymem`."""


Sample = Mapping[str, float]
"""Milliseconds of one operation, by the names of `PARTS`."""


@dataclass(frozen=True)
class Row:
    """An operation: milliseconds of the base and the present build, by the names of `PARTS`, and `cpu` for all processor time."""

    operation: str
    base: Sample
    present: Sample

    @property
    def grown_percent(self) -> float:
        """By how much the processor time has grown."""
        return 100 * (self.present["cpu"] / self.base["cpu"] - 1)

    def told(self) -> dict[str, Any]:
        """Return what --json tells of it."""
        parts = {
            name: {part: round(ms, 4) for part, ms in one.items()}
            for name, one in (("base", self.base), ("present", self.present))
        }
        return {"operation": self.operation, **parts, "cpu_grown_percent": round(self.grown_percent, 1)}


# --- the base ----------------------------------------------------------------------------------------------------------------


def git(*words: str) -> str:
    """Return what git prints.

    Raises:
        BuildError: The command fails, or is not installed.
    """
    try:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"git {' '.join(words)}: {(getattr(error, 'stderr', '') or str(error)).strip()}") from None


def base_name(file: Path) -> str:
    """Return the commit or tag that the file of the default base names, in its first line that is no comment.

    Raises:
        BuildError: The file names none.
    """
    with suppress(OSError):
        for line in file.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                return line.strip()
    raise BuildError(f"{file.name} names no commit")


def built(commit: str, tell: Callable[[str], None]) -> Build:
    """Build the wheel of a commit, and unpack it in an environment of its own, before the dependencies of this one.

    Raises:
        BuildError: There is no such commit here, or it cannot be built.
    """
    try:
        found = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except BuildError:
        raise BuildError(f"{commit} is no commit of this repository; a shallow clone lacks old ones") from None
    there = KEPT / found
    if not there.is_dir():
        tell(f"building {commit}; this takes a minute or two")
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT, prefix="making-") as folder:
            tree, packages = Path(folder) / "tree", Path(folder) / "packages"
            tree.mkdir()
            archive = Path(folder) / "tree.tar"
            git("archive", "--output", str(archive), found)
            shutil.unpack_archive(archive, tree, filter="data")
            if MONOCYPHER.is_dir():  # else the build fetches it
                shutil.copytree(MONOCYPHER, tree / MONOCYPHER.relative_to(ROOT))
            install(tree, packages)
            with suppress(OSError):  # another run has made it meanwhile
                packages.rename(there)
    return Build(commit, there, there / "bin" / "skymem")


def install(tree: Path, packages: Path) -> None:
    """Build the wheel of a tree with the tools of this environment, and unpack it into a folder.

    Raises:
        BuildError: It cannot be built.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    tools = os.path.dirname(sys.executable)
    around = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    around |= {"PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    command = [*pip, "--target", str(packages), str(tree)]
    try:
        done = subprocess.run(command, env=around, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise BuildError(f"its build took longer than {BUILD_LIMIT_S} s") from None
    if done.returncode != 0:
        words = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()] or ["pip says nothing"]
        raise BuildError(f"it cannot be built: {words[-1].strip()}")


def present() -> Build:
    """Return the build that is installed beside this interpreter."""
    return Build("present", Path(sysconfig.get_path("platlib")), Path(sys.executable).parent / "skymem")


# --- measuring ---------------------------------------------------------------------------------------------------------------


class Side:
    """A process that runs operations with one build."""

    def __init__(self, build: Build, errors: Path) -> None:
        """Start the process."""
        self.build, self._errors = build, errors
        around = {**os.environ, **MEMORY, "PYTHONPATH": str(build.packages)}
        with errors.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(SIDE), str(build.packages), str(build.command)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=around,
            )  # fmt: skip

    def answer(self) -> Any:
        """Return the next answer.

        Raises:
            BenchError: The process ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            words = self._errors.read_text(errors="replace").strip().splitlines() or ["it says nothing"]
            raise BenchError(f"{self.build.name} ended: {words[-1]}")
        return json.loads(line)

    def measure(self, operation: str) -> Sample:
        """Run an operation.

        Raises:
            BenchError: It failed.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # then there is no answer
            self._process.stdin.write(f"{operation}\n")
            self._process.stdin.flush()
        measured: Sample = self.answer()
        return measured

    def end(self) -> None:
        """End the process, with its satellites and its agent."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@contextmanager
def sides(builds: Sequence[Build]) -> Iterator[list[Side]]:
    """Start a side for each build, one after the other; they end with the context."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started = []
        for number, build in enumerate(builds):
            side = Side(build, folder / f"{number}.log")
            stack.callback(side.end)
            started.append(side)
        yield started


def measure(base: Build, now: Build, rounds: int, progress: Callable[[int, int], None]) -> list[Row]:
    """Measure all operations that both builds have, in turns.

    Raises:
        BenchError: A build does not run them.
    """
    with sides((base, now)) as both:
        names = [side.answer() for side in both]
        operations = [name for name in names[1] if name in names[0]]
        samples: dict[str, tuple[list[Sample], list[Sample]]] = {name: ([], []) for name in operations}
        for number in range(WARM_UP_ROUNDS + rounds):
            for name in operations:
                for index in (0, 1) if number % 2 else (1, 0):
                    sample = both[index].measure(name)
                    if number >= WARM_UP_ROUNDS:
                        samples[name][index].append(sample)
            progress(number + 1, WARM_UP_ROUNDS + rounds)
    return [Row(name, medians(old), medians(new)) for name, (old, new) in samples.items()]


# --- judging -----------------------------------------------------------------------------------------------------------------


def medians(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the median of each part, and of the processor time of host and satellites together as `cpu`."""
    found = {part: median(sample[part] for sample in samples) for part in PARTS}
    return {"cpu": median(sample["host"] + sample["satellites"] for sample in samples), **found}


def slower(rows: Sequence[Row], bound_percent: float) -> set[str]:
    """Return the operations whose processor time has grown by more than the bound."""
    return {row.operation for row in rows if row.grown_percent > bound_percent}


def judged(measured: Callable[[], list[Row]], bound_percent: float, tell: Callable[[str], None]) -> tuple[list[Row], set[str]]:
    """Measure once, and a second time if something has become slower.

    Returns:
        The rows of the last measurement, and the operations that were slower in each.
    """
    rows = measured()
    found = slower(rows, bound_percent)
    if found:
        tell(f"slower: {', '.join(sorted(found))}; a second measurement")
        rows = measured()
        found &= slower(rows, bound_percent)
    return rows, found


def table(rows: Sequence[Row], base: str, now: str = "present") -> str:
    """Return a table of the rows as text."""
    head = ("ms an operation", "CPU", "", "", "of it host", "", "satellites", "", "wall", "")
    names = (base[:12], now[:12])
    lines = [head, ("", *names, "", *names * 3)]
    for row in rows:
        cells = [f"{row.base['cpu']:.3f}", f"{row.present['cpu']:.3f}", f"{row.grown_percent:+.1f} %"]
        cells += [f"{one[part]:.3f}" for part in PARTS for one in (row.base, row.present)]
        lines.append((row.operation, *cells))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    aligned = [
        [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in aligned)


# --- the program -------------------------------------------------------------------------------------------------------------


def tell(line: str) -> None:
    print(f"bench_compare: {line}", file=sys.stderr, flush=True)


def tell_progress(done: int, total: int) -> None:
    """Tell of rounds in one line of a terminal, or else of every tenth of them."""
    if sys.stderr.isatty():
        print(f"\rbench_compare: round {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done * 10 // total != (done - 1) * 10 // total:
        tell(f"round {done} of {total}")


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the speed of an earlier commit with that of the present build.")
    parser.add_argument(
        "--base", default="", help="commit or tag to compare with; the one that tools/bench_base names by default"
    )
    parser.add_argument("--commit", default="", help="commit to compare; the build that is installed by default")
    parser.add_argument("--rounds", type=int, default=30, help="measured rounds (default: 30)")
    parser.add_argument("--bound", type=float, default=10.0, help="percent by which processor time may grow (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    found = parser.parse_args(words)
    if found.rounds < 1:
        parser.error(f"--rounds is {found.rounds}; allowed are 1 and more")
    if not found.bound >= 0:
        parser.error(f"--bound is {found.bound:g}; allowed are 0 and more")
    return found


def main(words: Sequence[str], base_file: Path = BASE_FILE) -> int:
    options = arguments(words)
    try:
        base = built(options.base or base_name(base_file), tell)
    except BuildError as error:
        tell(f"nothing to compare with: {error}")
        return CANNOT if options.base or os.environ.get("CI") else 0  # CI leaves nothing out
    try:
        now = built(options.commit, tell) if options.commit else present()
        rows, found = judged(lambda: measure(base, now, options.rounds, tell_progress), options.bound, tell)
    except (BuildError, BenchError) as error:
        tell(f"cannot compare: {error}")
        return CANNOT
    if options.json:
        asked = {"base": base.name, "commit": now.name, "rounds": options.rounds, "bound_percent": options.bound}
        print(json.dumps(asked | {"slower": sorted(found), "rows": [row.told() for row in rows]}, indent=2))
    else:
        print(table(rows, base.name, now.name))
    if found:
        tell(f"FAILED: processor time grew by more than {options.bound:g} % in two measurements: {', '.join(sorted(found))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
