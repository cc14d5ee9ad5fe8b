"""Segments over emulated links: a small model, two rates."""

from pathlib import Path

import pytest
from rich.console import Console
from transformers import LlamaConfig

from skymemory.bench.pic import (
    PicLoad,
    bench_llama,
    pic_aims_table,
    pic_break_even_table,
    pic_points_table,
    run_pic_bench,
)
from skymemory.bench.pic_figure import PIC_COLUMNS, pic_figure, pic_rows
from skymemory.bench.pic_times import AUTO, FULL, PREFIX
from skymemory.demo.model import random_llama
from skymemory.simulate.drawing import Page, look, save
from skymemory.sky.constellation import Constellation

pytestmark = pytest.mark.model

ROUND_TRIP_MS = 60.0
LAYERS = 6


@pytest.fixture(scope="module")
def report_and_calls():
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=300,
        bos_token_id=0,
    )
    load = PicLoad((2.0, 100.0), (ROUND_TRIP_MS,), ("int8", "raw"), rounds=2, segment_tokens=32, block_tokens=16, tries=1)
    calls: list[tuple[int, int]] = []
    return run_pic_bench(Constellation(), load, config, progress=lambda done, total: calls.append((done, total))), calls


def test_each_link_and_codec_has_a_point(report_and_calls) -> None:
    report, calls = report_and_calls
    assert calls == [(done, 12) for done in range(1, 13)]  # three links, two codecs, two rounds
    links = [(point["rate_mbit_s"], point["round_trip_ms"], point["codec"]) for point in report["points"]]
    assert links == [(rate, ROUND_TRIP_MS if rate else 0, codec) for rate in (0, 100, 2) for codec in ("int8", "raw")]
    assert (report["layers"], report["tokens"], report["linked_tokens"]) == (LAYERS, 128, 96)
    assert report["segment_bytes"]["raw"] > 2 * report["segment_bytes"]["int8"]
    for point in report["points"]:
        names = list(point["ways"])
        assert names[:4] == [FULL, PREFIX, "serial lego:16", "serial blend:15"]
        assert names[-1] == AUTO
        assert {name.split(",")[0] for name in names[4:-1]} == {"lego:16", "blend:15"}
        assert all(1 <= len(way["runs_s"]) <= 2 and way["median_s"] > 0 for way in point["ways"].values())
        assert sum(point["auto_choices"].values()) == len(point["ways"][AUTO]["runs_s"])
        assert set(point["auto_choices"]) <= {FULL, *names[4:-1]}


def test_links_delay_and_slow_down_what_comes_over_them(report_and_calls) -> None:
    report, _ = report_and_calls
    for point in report["points"]:
        if not point["rate_mbit_s"]:
            continue
        size = report["segment_bytes"][point["codec"]]
        least_s = ROUND_TRIP_MS / 1000 + size * 8 / (point["rate_mbit_s"] * 1e6)
        loading = [way for name, way in point["ways"].items() if name.startswith("serial") or name.endswith("m = 0")]
        assert loading
        assert all(way["median_s"] > least_s for way in loading)
        assert point["ways"][PREFIX]["median_s"] > 2 * ROUND_TRIP_MS / 1000  # a look-up and a fetch
    slow = report["points"][-1]
    assert slow["codec"] == "raw"
    assert set(slow["auto_choices"]) == {FULL}  # loading takes half a second, computing milliseconds
    assert len(slow["ways"]["serial lego:16"]["runs_s"]) == 1  # hopeless ways are measured once


def test_tables_rows_and_a_picture(report_and_calls, tmp_path: Path) -> None:
    report, _ = report_and_calls
    console = Console(width=300, record=True, file=(tmp_path / "out.txt").open("w"))
    for table in (pic_points_table(report), pic_break_even_table(report), pic_aims_table(report)):
        console.print(table)
    text = console.export_text()
    assert "128 tokens, 96 of them in 3 segments" in text
    assert "no limit" in text
    assert "auto takes at most 1.05 x the best open choice" in text
    rows = list(pic_rows(report))
    assert len(rows) == sum(len(point["ways"]) for point in report["points"])
    assert all(len(row) == len(PIC_COLUMNS) for row in rows)
    for name in ("a.svg", "b.png"):
        with look():
            save(pic_figure(report, Page()), tmp_path / name)
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(word in drawn for word in ("int8, 60 ms", "raw, 60 ms", FULL, PREFIX, AUTO, "Mbit/s"))


def test_the_first_codec_has_all_round_trips_and_the_others_the_middle_one() -> None:
    links = PicLoad((5.0, 50.0), (5.0, 30.0, 100.0), ("int8", "raw")).links()
    assert [(str(link), codecs) for link, codecs in links] == [
        ("no limit", ["int8", "raw"]),
        ("50 Mbit/s, 5 ms", ["int8"]),
        ("50 Mbit/s, 30 ms", ["int8", "raw"]),
        ("50 Mbit/s, 100 ms", ["int8"]),
        ("5 Mbit/s, 5 ms", ["int8"]),
        ("5 Mbit/s, 30 ms", ["int8", "raw"]),
        ("5 Mbit/s, 100 ms", ["int8"]),
    ]


def test_the_model_has_about_150_m_parameters_in_12_layers_or_more() -> None:
    config = bench_llama()
    one = random_llama(LlamaConfig(**{**config.to_dict(), "num_hidden_layers": 1}), seed=1)
    layer = sum(weight.numel() for weight in one.model.layers.parameters())
    whole = sum(weight.numel() for weight in one.parameters()) + (config.num_hidden_layers - 1) * layer
    assert config.num_hidden_layers >= 12
    assert 140e6 < whole < 160e6
