"""`skymem size`, from the outside."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main

CONFIG = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "torch_dtype": "bfloat16",
}
SKY = "[constellation]\nplanes = 3\nslots = 6\n[cache]\ncentre = [2, 3]\n[satellite]\nstore_mib = 16\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "llama-8b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


@pytest.fixture
def sky(tmp_path: Path) -> Path:
    file = tmp_path / "sky.toml"
    file.write_text(SKY)
    return file


def skymem(*words: object) -> Result:
    return CliRunner().invoke(main, ["size", *map(str, words)])


def test_the_report(model: Path, sky: Path) -> None:
    result = skymem(model, "--constellation", sky, "--tokens", 20_000)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "32 layers, 8 KV heads of 128, bfloat16, codec raw: 131,072 bytes a token",
        "a block of 128 tokens has 16.78 MB",
        "12 servers, 2 of parity, with store_mib 16 hold 1,152 tokens",
        "20,000 tokens need store_mib 272 on each satellite",
    ]
    plain = sky.with_name("plain.toml")
    plain.write_text(SKY.replace("[cache]", "[cache]\nservers = 10\nparity = 0"))
    assert "10 servers with store_mib 16 hold 1,152 tokens" in skymem(model, "--constellation", plain).output
    more = skymem(model, "--constellation", sky, "--tokens", 50_000)
    assert more.output.splitlines()[-1] == (
        "50,000 tokens need store_mib 674 on each satellite; allowed are up to 512: at least 16 servers of 512 hold them"
    )
    most = skymem(model, "--constellation", sky, "--tokens", 1_000_000)
    assert most.output.splitlines()[-1].endswith("allowed are up to 512: there cannot be enough servers")


@pytest.mark.parametrize("codec", ["raw", "int8", "int4", "int4g16", "int4g32"])
def test_as_json(model: Path, sky: Path, codec: str) -> None:
    result = skymem(model / "config.json", "--constellation", sky, "--codec", codec, "--json")
    told = json.loads(result.output)
    assert (told["layers"], told["codec"], told["servers"], told["parity"]) == (32, codec, 12, 2)
    assert told["tokens"] == {"raw": 9, "int8": 18, "int4": 34, "int4g16": 24, "int4g32": 29}[codec] * 128


def test_block_and_codec_are_those_of_the_file(model: Path, sky: Path) -> None:
    sky.write_text(SKY.replace("[cache]", '[cache]\nblock_tokens = 64\ncodec = "int8"'))
    told = json.loads(skymem(model, "--constellation", sky, "--json").output)
    assert (told["block_tokens"], told["codec"]) == (64, "int8")
    told = json.loads(skymem(model, "--constellation", sky, "--block-tokens", 32, "--codec", "raw", "--json").output)
    assert (told["block_tokens"], told["codec"]) == (32, "raw")
    sky.write_text(SKY.replace("[cache]", '[cache]\ncodec = "hqq"'))
    refused = skymem(model, "--constellation", sky)
    assert refused.exit_code == 2
    assert 'cache.codec is "hqq"' in refused.output


def test_what_cannot_be_sized(model: Path, tmp_path: Path) -> None:
    (model / "config.json").write_text(json.dumps(CONFIG | {"mamba_d_state": 16}))
    result = skymem(model)
    assert result.exit_code == 2
    assert "recurrent layers" in result.output
    (model / "config.json").write_text("no")
    assert "is no JSON" in skymem(model).output
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no config.json; give a model's folder or its config.json" in skymem(empty).output
    assert skymem(tmp_path / "nowhere").exit_code == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Qwen/Qwen9-0.5B", "the hub is not asked: download the model's config.json"),
        ("no name!", "the hub is not asked: download the model's config.json"),
        ("./nowhere", "there is no such folder"),
    ],
)
def test_a_model_that_is_not_known_here_is_one_line(name: str, said: str) -> None:
    result = skymem(name)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1


def test_a_name_on_the_hub_whose_config_this_machine_has(model: Path, sky: Path, tmp_path: Path) -> None:
    """As the hub's libraries keep what they have loaded, in the folder that $HF_HOME names."""
    kept = tmp_path / "hub" / "models--some--llama"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("0123")
    (kept / "snapshots").mkdir()
    model.rename(kept / "snapshots" / "0123")
    program = [sys.executable, "-c", "from skymemory.cli import main; main()", "size", "some/llama", "--constellation", sky]
    told = subprocess.run(program, env={**os.environ, "HF_HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("32 layers, 8 KV heads of 128")
