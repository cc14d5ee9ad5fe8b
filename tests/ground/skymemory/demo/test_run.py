"""The demo on 95 real satellites."""

import math
from dataclasses import asdict

import pytest
from rich.console import Console

from skymemory.demo.run import DemoOptions, demo_table, run_demo
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.local import LocalConstellation

pytestmark = pytest.mark.model

KEYS = [
    "satellites",
    "planes",
    "slots",
    "blocks",
    "chunks",
    "bytes_up",
    "bytes_down",
    "prompt_tokens",
    "cached_tokens",
    "ttft_s_cold",
    "ttft_s_warm",
    "total_s_cold",
    "total_s_warm",
    "tokens_identical",
    "misses",
    "retries",
]


def test_the_demo(full_sky: LocalConstellation) -> None:
    stages: list[tuple[str, int, int]] = []
    options = DemoOptions()
    result = run_demo(options, full_sky.constellation, lambda *stage: stages.append(stage))
    assert list(asdict(result)) == KEYS
    assert (result.satellites, result.planes, result.slots) == (95, 5, 19)
    assert result.tokens_identical
    assert result.misses == 0
    assert result.prompt_tokens >= 2000
    assert result.blocks == result.prompt_tokens // 128
    assert result.cached_tokens == 128 * result.blocks
    assert result.bytes_up == result.bytes_down > 128 * result.blocks * 12 * 2 * 256 * 4
    chunks = result.chunks // result.blocks  # of a block; two of twelve are parity
    data_chunks = chunks - 2 * math.ceil(chunks / 12)
    assert chunks * result.blocks == result.chunks
    assert data_chunks * 6000 >= result.bytes_up / result.blocks > (data_chunks - 1) * 6000
    assert result.ttft_s_warm < result.ttft_s_cold
    assert result.total_s_warm < result.total_s_cold
    for stage, total in (("without cache", 30), ("blocks up", result.blocks), ("with cache", 30)):
        assert (stage, total, total) in stages

    again = run_demo(options, full_sky.constellation)
    assert again.bytes_up == result.bytes_up  # as for the first time
    assert again.tokens_identical

    console = Console(width=100, record=True)
    console.print(demo_table(result, options, full_sky.constellation))
    text = console.export_text()
    assert "95 (5 planes x 19 slots)" in text
    assert "identical" in text


def test_a_model_and_a_prompt_from_files(full_sky, make_llama, tokenizer, tmp_path) -> None:
    make_llama().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("The operator is responsible for three things. " * 60, encoding="utf-8")
    options = DemoOptions(model=str(tmp_path / "model"), prompt_file=prompt, codec="int8", new_tokens=5)
    result = run_demo(options, full_sky.constellation)
    assert result.blocks == result.prompt_tokens // 128 > 2
    assert result.misses == 0


def test_the_first_run_sends_nothing_and_the_second_asks_the_sky(full_sky, make_llama, tokenizer, tmp_path) -> None:
    make_llama().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Nobody has put this here before. " * 60, encoding="utf-8")
    servers = Whereabouts(full_sky.constellation).servers(0)
    routes = [Route(one, one) for one in servers]
    seen: dict[tuple[str, int], dict[str, int]] = {}
    with ControlPlane(full_sky.constellation) as control:

        def count(stage: str, done: int, total: int) -> None:
            stats = control.store_stats(routes, 10.0).values()
            seen[stage, done] = {name: sum(one[name] for one in stats) for name in ("requests", "puts", "gets")}

        options = DemoOptions(model=str(tmp_path / "model"), prompt_file=prompt, new_tokens=5)
        result = run_demo(options, full_sky.constellation, count)

    def grown(name: str, start: tuple[str, int], end: tuple[str, int]) -> int:
        return seen[end][name] - seen[start][name]

    loaded, cold_end, stored = ("model", 1), ("without cache", 5), ("blocks up", result.blocks)
    fetched = ("with cache", 0)  # what the manager did is done, the model has not begun
    # Our own questions, and a few that satellites ask each other
    assert 6 * len(servers) <= grown("requests", loaded, cold_end) < 7 * len(servers)
    assert grown("puts", cold_end, stored) > 0
    assert grown("puts", stored, fetched) == 0
    assert grown("gets", stored, fetched) > 0
    assert grown("requests", stored, fetched) - grown("gets", stored, fetched) > len(servers)  # HAS, beside our own questions


def test_a_prompt_of_less_than_a_block(full_sky, tmp_path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("A short one.", encoding="utf-8")
    result = run_demo(DemoOptions(prompt_file=prompt, new_tokens=2), full_sky.constellation)
    assert (result.blocks, result.chunks, result.bytes_up, result.cached_tokens) == (0, 0, 0, 0)
    assert result.tokens_identical
