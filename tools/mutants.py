#!/usr/bin/env python3
"""Plant faults in the flight software, one at a time, and see who finds them: the unit tests in C, and the twin.

Each patch of tests/mutants is a fault. Its first lines say what it breaks. All work is done in a copy of the tree, in a temporary
folder. The exit status is 0 if the unit tests find every fault that was planted. When all are planted, the twin may miss four of
them at most: some are in code that it does not run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from select import select
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATCHES = Path("tests/mutants")
TWIN_MISSES_MAX = 4
SEEDS = 100
UNIT_STEPS = (("-R", "^(sky|native)/"), ("-E", "^(sky|native|twin|fuzz)/"))
"""Tests in C by steps: first those of the core, which need seconds and find most, then the others. The twin's own do not count.
"""
TEST_LIMIT_S = 60
BUILD_LIMIT_S = 1800
SEED_LIMIT_S = 30
"""Seconds of processor time after which a seed counts as hung; the longest takes a few."""
CONFIGURE = ("cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Mutant", "-DCMAKE_C_FLAGS_MUTANT=-O1")
"""Configuration of the build, which takes most of the time."""
BUILD = ("cmake", "--build", "build")


class MutantError(Exception):
    """A fault cannot be judged: its patch does not apply, or the tree fails without any fault."""


@dataclass(frozen=True)
class Mutant:
    """A fault, as a patch."""

    name: str
    path: Path
    breaks: str

    @classmethod
    def load(cls, path: Path) -> Mutant:
        """Read a patch.

        Raises:
            MutantError: The patch does not say what it breaks.
        """
        breaks, _, diff = path.read_text().partition("\ndiff --git ")
        if not diff or not breaks.strip():
            raise MutantError(f"{path.name}: does not begin with lines that say what it breaks, followed by a `git diff`")
        return cls(path.stem, path, " ".join(breaks.split()))


@dataclass
class Result:
    """Outcome of a fault."""

    name: str
    breaks: str
    unit: str | None = None
    """Unit test that found it."""
    twin: str | None = None
    """Violation that the twin reported for the first violated seed."""
    seconds: float = 0.0


# --- processes ---------------------------------------------------------------------------------------------------------------


@contextmanager
def started(command: Sequence[str], tree: Path, env: Mapping[str, str] = {}, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a group of its own, all of which ends with this block."""
    tools = os.path.dirname(os.path.abspath(sys.executable))
    around = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "NINJA_STATUS")}
    around |= {"PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}", **env}
    with subprocess.Popen(command, cwd=tree, env=around, text=True, process_group=0, **how) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def output_of(command: Sequence[str], tree: Path, limit_s: float) -> tuple[int, str]:
    """Run a command to its end. Return its status and its output.

    Raises:
        MutantError: The command took longer than its time.
    """
    with started(command, tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise MutantError(f"`{shlex.join(command)}` did not end within {limit_s:.0f} s") from None
        return process.returncode, said


def expect(command: Sequence[str], tree: Path, what: str, limit_s: float = BUILD_LIMIT_S) -> str:
    """Run a command that has to succeed. Return its output.

    Args:
        what: Meaning of a failure.

    Raises:
        MutantError: The command failed.
    """
    status, said = output_of(command, tree, limit_s)
    if status != 0:
        raise MutantError(f"{what}; `{shlex.join(command)}` says:\n{said[-4000:].rstrip()}")
    return said


# --- patches and the tree ----------------------------------------------------------------------------------------------------


def load_all(root: Path) -> list[Mutant]:
    """Read all patches, in their order.

    Raises:
        MutantError: There is no patch, or one does not say what it breaks.
    """
    mutants = [Mutant.load(path) for path in sorted((root / PATCHES).glob("*.patch"))]
    if not mutants:
        raise MutantError(f"{root / PATCHES} has no patches")
    return mutants


def chosen(mutants: Sequence[Mutant], names: Sequence[str], pick: int | None, commit: str) -> list[Mutant]:
    """Return the faults to plant: those named, or as many as `pick` says, the same ones for the same commit.

    Raises:
        MutantError: No fault has such a name.
    """
    for name in names:
        if not any(mutant.name == name for mutant in mutants):
            raise MutantError(f"no fault is called {name!r}; there are {', '.join(mutant.name for mutant in mutants)}")
    if names:
        return [mutant for mutant in mutants if mutant.name in names]
    if pick is None:
        return list(mutants)
    drawn = sorted(mutants, key=lambda mutant: sha256(f"{commit} {mutant.name}".encode()).digest())[:pick]
    return [mutant for mutant in mutants if mutant in drawn]


def copy_tree(root: Path, tree: Path) -> None:
    """Copy the files that git tracks or does not ignore, as they are now. Make the copy a repository, so that git patches it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = expect(command, root, f"{root} is no checkout of git")
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():  # a deleted file is none
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
    expect(["git", "init", "--quiet"], tree, "the copy cannot be made a repository")


def check_patches(mutants: Sequence[Mutant], tree: Path) -> None:
    """Check that every patch applies.

    Raises:
        MutantError: Some patches do not apply; the message names them.
    """
    failed = []
    for mutant in mutants:
        status, said = output_of(["git", "apply", "--check", str(mutant.path)], tree, TEST_LIMIT_S)
        if status != 0:
            failed.append(f"{mutant.name} does not apply any more:\n{said.rstrip()}")
    if failed:
        raise MutantError("\n".join([*failed, f"{PATCHES}/README.md says how to make a patch anew"]))


# --- who finds it ------------------------------------------------------------------------------------------------------------


def unit_tests(tree: Path, jobs: int) -> str | None:
    """Run the unit tests. Return the first that fails, or None.

    Raises:
        MutantError: The tests could not be run.
    """
    for which in UNIT_STEPS:
        command = ["ctest", "--test-dir", "build", *which, "--stop-on-failure", f"-j{jobs}", "--timeout", str(TEST_LIMIT_S)]
        status, said = output_of(command, tree, BUILD_LIMIT_S)
        if status != 0:
            failed = re.search(r"^ *\d+/\d+ +Test +#\d+: (\S+) \.*[^*\n]*\*\*\*(.*?) +[\d.]+ sec", said, re.MULTILINE)
            if failed is None:
                raise MutantError(f"`{shlex.join(command)}` says:\n{said[-4000:].rstrip()}")
            return f"{failed[1]} (hung)" if failed[2] == "Timeout" else failed[1]
    return None


@dataclass
class Worker:
    """A process that runs a share of the seeds: every n-th one."""

    process: subprocess.Popen[str]
    errors: Path
    seed: int | None = None
    """Seed that it runs now."""
    since_s: float = 0.0
    """Processor time of the process when that seed began."""
    found: tuple[int, str] | None = None
    is_over: bool = False
    rest: str = ""

    def look(self) -> None:
        """Take in its new output, and its end."""
        assert self.process.stdout is not None
        ended = self.process.poll()
        while select([self.process.stdout], [], [], 0)[0] and (said := os.read(self.process.stdout.fileno(), 65536).decode()):
            *lines, self.rest = (self.rest + said).split("\n")
            for line in lines:
                self._take(line)
        if ended is not None and not self.is_over:
            self.is_over = True
            if ended != 0 and self.found is None:
                self.found = (self.seed or 0, self._last_words(ended))
        elif not self.is_over and self._processor_s() - self.since_s > SEED_LIMIT_S:
            self.is_over = True
            self.found = (self.seed or 0, f"hung: no end after {SEED_LIMIT_S} s")
            self.process.kill()

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        seed, _, text = rest.partition(" ")
        if word == "run":
            self.seed, self.since_s = int(seed), self._processor_s()
        elif word == "violated":
            self.found = (int(seed), text)

    def _processor_s(self) -> float:
        """Return the processor time of the process: on a busy machine the clock on the wall says little about a seed."""
        try:
            spent = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            return self.since_s
        return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")

    def _last_words(self, status: int) -> str:
        said = self.errors.read_text(errors="replace").strip().splitlines()
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"ended by {how}: {said[-1]}" if said else f"ended by {how}"

    def is_past(self, seed: int) -> bool:
        """Return True if it can find nothing before this seed any more."""
        return self.is_over or self.found is not None or (self.seed is not None and self.seed > seed)


def libraries(tree: Path) -> Path:
    """Make a folder with all shared libraries of the build, in which the package looks for them. Return it."""
    folder = tree / "build/libraries"
    folder.mkdir(exist_ok=True)
    for library in (tree / "build").rglob("*.so"):
        if library.parent != folder and not (folder / library.name).exists():
            (folder / library.name).symlink_to(library)
    return folder


def twin(tree: Path, jobs: int, seeds: int) -> str | None:
    """Run seeds of the tree's twin. Return its report of the first that is violated, or None."""
    env = {"PYTHONPATH": str(tree / "ground"), "SKYMEM_NATIVE_DIR": str(libraries(tree))}
    step = min(jobs, seeds)
    with ExitStack() as stack:
        workers = []
        for first in range(1, step + 1):
            errors = tree / f"build/seeds-{first}.err"
            command = [sys.executable, str(tree / "tools/twin_seeds.py"), str(first), str(step), str(seeds)]
            file = stack.enter_context(errors.open("w"))
            process = stack.enter_context(started(command, tree, env, stdout=subprocess.PIPE, stderr=file))
            workers.append(Worker(process, errors))
        while True:
            for worker in workers:
                worker.look()
            found = min((worker.found for worker in workers if worker.found is not None), default=None)
            if found is not None and all(worker.is_past(found[0]) for worker in workers):
                return f"seed {found[0]}: {found[1]}"
            if found is None and all(worker.is_over for worker in workers):
                return None
            time.sleep(0.02)


def judge(mutant: Mutant, tree: Path, jobs: int, seeds: int, tell: Callable[[str], None]) -> Result:
    """Plant a fault, see who finds it, and take it out again. One that does not compile is found by nobody."""
    began_s = time.monotonic()
    result = Result(mutant.name, mutant.breaks)
    expect(["git", "apply", str(mutant.path)], tree, f"{mutant.name} does not apply")
    tell(f"{mutant.name}: build")
    try:
        expect([*BUILD, f"-j{jobs}"], tree, f"{mutant.name} does not compile")
        tell(f"{mutant.name}: unit tests")
        result.unit = unit_tests(tree, jobs)
        tell(f"{mutant.name}: unit tests: {result.unit or 'NOT FOUND'}; twin")
        result.twin = twin(tree, jobs, seeds)
    except MutantError as error:
        tell(str(error))
    expect(["git", "apply", "--reverse", str(mutant.path)], tree, f"{mutant.name} cannot be taken out again")
    result.seconds = time.monotonic() - began_s
    tell(f"{mutant.name}: twin: {result.twin or 'NOT FOUND'}; {result.seconds:.0f} s")
    return result


def check_sound(tree: Path, jobs: int, seeds: int, tell: Callable[[str], None]) -> None:
    """Check that nothing fails without a fault: otherwise every fault would look found.

    Raises:
        MutantError: A test fails.
    """
    tell("no fault: unit tests")
    if (test := unit_tests(tree, jobs)) is not None:
        raise MutantError(f"without any fault {test} fails")
    tell("no fault: twin")
    if (said := twin(tree, jobs, seeds)) is not None:
        raise MutantError(f"without any fault the twin says: {said}")


# --- what is said ------------------------------------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> str:
    """Return the results as a table of Markdown."""
    rows = [["fault", "what it breaks", "unit test", "twin", "seconds"]]
    for one in results:
        rows.append([one.name, one.breaks, one.unit or "NOT FOUND", one.twin or "NOT FOUND", f"{one.seconds:.0f}"])
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def verdict(results: Sequence[Result], are_all: bool) -> tuple[bool, str]:
    """Return whether enough faults were found, and a line that names the missed ones."""
    unit = [one.name for one in results if one.unit is None]
    missed = [one.name for one in results if one.twin is None]
    count = len(results)
    said = f"of {count} faults the unit tests find {count - len(unit)} and the twin {count - len(missed)}"
    said += f"; the unit tests miss {', '.join(unit)}" if unit else ""
    said += f"; the twin misses {', '.join(missed)}" if missed else ""
    return not unit and (not are_all or len(missed) <= TWIN_MISSES_MAX), said


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line as options; a wrong one ends the process with status 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", default=[], metavar="NAME", help="plant these")
    which.add_argument("--pick", type=int, metavar="N", help="plant so many, chosen by --by")
    parser.add_argument("--by", default="", metavar="COMMIT", help="the same commit chooses the same faults")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="of the twin; default %(default)s")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="default: one for each core")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args(arguments)
    for name in ("pick", "seeds", "jobs"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}; allowed is 1 and more")
    if (options.pick is None) != (options.by == ""):
        parser.error("--pick and --by go together")
    return options


def run(options: argparse.Namespace, root: Path, tell: Callable[[str], None]) -> int:
    """Plant the faults that the options select. Return the exit status.

    Raises:
        MutantError: A fault cannot be judged.
    """
    mutants = load_all(root)
    planted = chosen(mutants, options.only, options.pick, options.by)
    are_all = len(planted) == len(mutants)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        copy_tree(root, tree)
        check_patches(mutants, tree)
        tell(f"all {len(mutants)} patches apply; build of the tree")
        expect(CONFIGURE, tree, "the tree cannot be configured")
        expect([*BUILD, f"-j{options.jobs}"], tree, "the tree does not compile")
        if are_all:  # CI has run the tests before
            check_sound(tree, options.jobs, options.seeds, tell)
        results = [judge(mutant, tree, options.jobs, options.seeds, tell) for mutant in planted]
    is_good, said = verdict(results, are_all)
    print(json.dumps([asdict(one) for one in results], indent=2) if options.json else table(results))
    print(said, file=sys.stderr)
    return 0 if is_good else 1


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. A signal ends all started processes and removes the copy."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    options = parsed(sys.argv[1:] if arguments is None else arguments)
    try:
        return run(options, ROOT, lambda text: print(text, file=sys.stderr, flush=True))
    except MutantError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
