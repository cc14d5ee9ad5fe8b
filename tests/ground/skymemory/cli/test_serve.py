"""`skymem serve`: what is told before a model is loaded. The rest is in serve/test_serve.py."""

import os
import socket

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main


def skymem(*words: object) -> Result:
    return CliRunner().invoke(main, ["serve", *map(str, words)], prog_name="skymem")


def test_help_names_the_environment() -> None:
    text = skymem("--help").output
    for name in (
        "HOST",
        "PORT",
        "MODEL_NAME",
        "API_KEY",
        "MAX_QUEUE",
        "MAX_MODEL_LEN",
        "DTYPE",
        "DEVICE",
        "LINK_STRATEGY",
        "CONSTELLATION",
    ):
        assert f"SKYMEM_SERVE_{name}" in text


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_is_told_before_the_model_is_looked_for(host: str) -> None:
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        port = taken.getsockname()[1]
        result = skymem("/nowhere", "--host", host, "--port", port)
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {f'[{host}]' if ':' in host else host}:{port}: Address already in use")
    assert result.output.count("\n") == 1
    assert ":" in host or f"(pid {os.getpid()}" in result.output


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--host", "no.such.host.invalid"), 1, "no.such.host.invalid:8000: "),
        (("--port", "70000"), 2, "70000"),
        (("--dtype", "int8"), 2, "bfloat16"),
        (("--max-queue", "-1"), 2, "--max-queue"),
        (("--constellation", "/nowhere.toml"), 2, "/nowhere.toml"),
        (("--link-strategy", "lego"), 2, "lego:1..1024"),
        (("--segment-separator", ""), 2, "--segment-separator"),
    ],
)
def test_wrong_options_are_told_in_one_line(words: tuple[str, ...], status: int, said: str) -> None:
    result = skymem("MODEL", *words)
    assert result.exit_code == status
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert said in result.output


def test_a_mistake_in_the_constellation_is_told_with_its_line(tmp_path) -> None:
    file = tmp_path / "constellation.toml"
    file.write_text("[constellation]\nplanes = 0\n")
    result = skymem("MODEL", "--constellation", file)
    assert result.exit_code == 2
    assert f"{file}:2" in result.output
