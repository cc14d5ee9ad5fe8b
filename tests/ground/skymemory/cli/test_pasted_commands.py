"""The commands of README.md and docs/guide.md work after `make`, pasted as they stand.

What is left out stands in a list, with the reason. What takes long gets an option more, and what a reader is to fill in (FILE,
MODEL) is filled in.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import free_port
from support.document_code import commands
from support.ports import free_ports
from support.waiting import wait_until

ROOT = Path(__file__).parents[4]
PATIENCE_S = 500.0
LEFT_OUT = {
    r"make( |$)": "builds the project, which has happened before this test",
    r"vllm ": "needs vLLM",
    r"docker(-compose)? |skymem up --docker": "needs Docker; tests/docker pastes these",
    r"skymem \w+ .*--constellation docker/constellation\.toml": "needs the containers of that file",
    r"skymem pic check": "takes minutes; tests/ground/skymemory/cli/test_pic.py",
    r"skymem bench (gateway|links|parity|peers|pic|prefix)": "takes a minute and more; tests/ground/skymemory/bench",
    r"skymem bench ttft": "asks a server of the reader's; tests/ground/skymemory/bench/test_ttft.py",
}
"""Commands that are not run, and why."""
SHORTER = {
    r"skymem demo.*": r"\g<0> --tokens 2",
    r"skymem bench idle": r"\g<0> --seconds 0.5",
    r"skymem bench spread": r"\g<0> --values 1000 --stored 100",
    r"skymem bench stragglers": r"\g<0> --gets 8",
    r"skymem twin --seeds 1000": "skymem twin --seeds 2",
    r"(skymem twin berlin.csv.*?)( --hours 24)?$": r"\g<1> --hours 0.1",
}
"""Options that make a command short."""
FOREVER = r"skymem (agent|replay|status --watch) "
"""Commands that run until Ctrl-C."""
NEEDS = {r"redis-cli": ("redis-cli",), r"curl": ("curl",)}
"""Programs of the system that commands need."""
NO_SKY = r"skymem (up|demo|keys new|schedule|tables|twin|bench|layout|simulate|size|--)|\.|echo|export"
"""Commands that find no constellation up."""
KEYS = r"skymem keys (rotate|revoke|load|activate|forget)"


def all_commands() -> list[object]:
    return [
        pytest.param(text, id=f"{document.name}:{number}")
        for document in (ROOT / "README.md", ROOT / "docs" / "guide.md")
        for number, text in commands(document)
    ]


class Reader:
    """A reader with a folder and a state of their own, who pastes commands into a shell."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self.up: str | None = None
        """Constellation file that is up."""
        self.agent: subprocess.Popen[str] | None = None
        first, second = free_ports(2)
        self._filled_in = {
            r"\b6390\b": str(first),
            r"\b8090\b": str(second),
            r"\bDIRECTORY_OR_HUB_ID\b|\bMODEL\b|TinyLlama/\S+": str(model),
            r"\bPLANE SLOT\b": "3 10",
        }
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SKYMEM")},
            "SKYMEM_STATE": str(folder / "state"),
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HF_HUB_OFFLINE": "1",
        }
        text = (ROOT / "constellation.toml").read_text()
        port = re.compile(r"^(# *)?port = .*$", re.MULTILINE)
        assert port.search(text)
        for name in ("constellation.toml", "mine.toml", "secured.toml"):
            (folder / name).write_text(port.sub(f"port = {free_port(Constellation())}", text))
        secured = (folder / "secured.toml").read_text()
        (folder / "secured.toml").write_text(
            re.sub(r"^(# *)?keyring = .*$", 'keyring = "keys/mission.json"', secured, flags=re.MULTILINE)
        )
        for name in ("FILE", "notes.txt", "paper.txt"):
            (folder / name).write_text("The satellites of a plane follow each other at equal distances. " * 40)
        (folder / "faults.toml").write_text("")
        (folder / ".venv" / "bin").mkdir(parents=True)
        shutil.copy(Path(sys.executable).with_name("activate"), folder / ".venv" / "bin")

    def paste(self, text: str, status: int = 0) -> str:
        """Run a command, and return what it prints."""
        ran = subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == status, f"{text}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def prepare(self, text: str) -> None:
        """Bring about what the text around the command presumes: a sky that is up or not, a value, a folder that is new."""
        if re.match(r"skymem keys new keys($| +#| --planes)", text):
            shutil.rmtree(self.folder / "keys", ignore_errors=True)
        if re.match(KEYS, text):
            self._have("secured.toml")
        elif not re.match(NO_SKY, text):
            self._have("constellation.toml")
        elif re.match(r"skymem up", text):
            self._have(None)
        if re.match(r"skymem get notes", text):
            self.paste("skymem put notes notes.txt")
        if re.match(r"skymem (get|del) KEY", text):
            self.paste("skymem put KEY notes.txt")
        if re.match(r"skymem segment rm ID", text):
            self._filled_in[r"\bID\b"] = self.paste(self.filled_in("skymem segment add paper.txt --model MODEL")).strip()
        if re.match(r"redis-cli|curl", text) and self.agent is None:
            self._have("constellation.toml")
            self.agent = self.start("skymem agent --resp-port 6390 --http-port 8090")

    def _have(self, file: str | None) -> None:
        """Have the satellites of a constellation file up, or none."""
        if self.up == file:
            return
        self.paste("skymem down")
        if file == "secured.toml":
            shutil.rmtree(self.folder / "keys", ignore_errors=True)
            self.paste("skymem keys new keys && skymem keys new keys --host gpu-1")
        if file is not None:
            self.paste(f"skymem up --constellation {file}")
        if file == "secured.toml":
            self.paste("skymem keys rotate keys")
        self.up = file

    def filled_in(self, text: str) -> str:
        for pattern, value in self._filled_in.items():
            text = re.sub(pattern, value, text)
        return text

    def start(self, text: str) -> subprocess.Popen[str]:
        """Start what runs until Ctrl-C, and wait until it works."""
        child = subprocess.Popen(
            ["bash", "-c", f"exec {self.filled_in(text).rstrip('& ')}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert child.stdout is not None
        told = ""
        while not re.search(r"^serving$|rows in .* s, from|satellites answer", told, re.MULTILINE):
            line = child.stdout.readline()
            assert line, f"{text}\n{told}"
            told += line
        return child

    def end_agent(self) -> None:
        """End the agent that runs for other commands: a user has one at a time."""
        if self.agent is not None:
            end(self.agent)
            self.agent = None


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("reader"), model_folder)
    yield reader
    reader.end_agent()
    reader.paste("skymem down")


def end(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=PATIENCE_S)


@pytest.mark.model
@pytest.mark.parametrize("text", all_commands())
def test_a_pasted_command_works(reader: Reader, text: str) -> None:
    for pattern, reason in LEFT_OUT.items():
        if re.match(pattern, text):
            pytest.skip(reason)
    for pattern, programs in NEEDS.items():
        for program in programs if re.match(pattern, text) else ():
            if shutil.which(program) is None:
                assert not os.environ.get("CI"), f"CI leaves nothing out: {program} is not installed"
                pytest.skip(f"{program} is not installed")
    text = re.sub(r"\s+#.*$", "", text, flags=re.MULTILINE)
    reader.prepare(text)
    if re.match(FOREVER, text):
        reader.end_agent()
        end(reader.start(text))
        return
    for pattern, shorter in SHORTER.items():
        text = re.sub(f"^{pattern}", shorter, text)
    reader.paste(reader.filled_in(text))
    reader.up = after(text, reader.up)


def after(text: str, up: str | None) -> str | None:
    """Return the constellation file that is up after a command."""
    if re.match(r"skymem up", text):
        named = re.search(r"--constellation (\S+)", text)
        return named[1] if named else "constellation.toml"
    return None if re.match(r"skymem down", text) else up


def test_no_reason_is_left_over() -> None:
    texts = [param.values[0] for param in all_commands()]  # type: ignore[attr-defined]
    assert len(texts) > 50
    for pattern in (*LEFT_OUT, *SHORTER, *NEEDS):
        assert any(re.match(pattern, re.sub(r"\s+#.*$", "", str(text), flags=re.MULTILINE)) for text in texts), pattern


WAITS = [
    pytest.param(line.strip(), id=f"{document.name}:{number}")
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, line in enumerate(document.read_text().splitlines(), 1)
    if re.match(r"\s*(until|while) .*; do ", line)
]


@pytest.mark.parametrize("text", WAITS)
def test_a_wait_ends_with_what_it_waits_for(text: str, tmp_path: Path) -> None:
    """The program has died, and nobody listens at its port."""
    program = subprocess.Popen(["true"])
    program.wait()
    [port] = free_ports(1)
    text = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", text).replace("sleep 1", "sleep 0.01")
    text = text.replace("/tmp/tutorial", str(tmp_path))
    script = f"agent={program.pid}; serve={program.pid}; vllm={program.pid}; {text}"
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
        try:
            wait_until(lambda: shell.poll() is not None)
        finally:
            shell.kill()


def test_there_are_waits() -> None:
    assert len(WAITS) >= 4
