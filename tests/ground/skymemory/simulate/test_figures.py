"""The pictures: they are drawn, say what they show, and are the same file for the same data."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from skymemory.simulate.drawing import look, save
from skymemory.simulate.figures import (
    plane_contours,
    plane_data,
    plane_latency_ms,
    plane_ribbons,
    satellites_for,
    strategies_figure,
)
from skymemory.simulate.layout_figures import LAYOUT_FIGURES, grid_rows, layout_grids, layouts_figure
from skymemory.simulate.table import rows

pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")


def words(path: Path) -> str:
    """All text of an SVG file."""
    return " ".join(" ".join(ET.parse(path).getroot().itertext()).split())


def test_latency_in_a_plane() -> None:
    """A square of satellites has sides of sqrt(2) radii."""
    assert plane_latency_ms(4, 629) == pytest.approx(7000 * 2**0.5 / 299.8)
    assert len(plane_data(1)) == 9 * 47
    assert plane_data(2)[0] == (10, 160, plane_latency_ms(10, 160))


@pytest.mark.parametrize("altitude_km", [160, 550, 2000])
def test_fewest_satellites_for_a_latency(altitude_km: float) -> None:
    fewest = satellites_for(2.0, altitude_km)
    assert plane_latency_ms(fewest, altitude_km) <= 2.0 < plane_latency_ms(fewest - 1, altitude_km)


def test_figures_1_and_2(tmp_path: Path) -> None:
    with look():
        texts = [words(save(figure, tmp_path / "a.svg")) for figure in (plane_ribbons(), plane_contours())]
    for text in texts:
        assert "satellites in a plane, M" in text
        assert "altitude h, km" in text
        assert "latency of one hop, ms" in text
        assert "2.7 ms at 160 km and 3.5 ms at 2,000 km" in text


def test_figure_16(tmp_path: Path) -> None:
    with look():
        text = words(save(strategies_figure(rows(), published=False), tmp_path / "a.svg"))
    for part in ("KV cache, MiB", "servers", "processing time of a chunk, ms", "altitude, km", "largest time of a server, s"):
        assert part in text
    assert "0.495 0.500 0.505" in text  # numbers are shortened where they are places, not where they are read
    for part in ("rotation-aware", "hop-aware (on board)", "rotation- and hop-aware", "87 % off", "at most 20 ms", "corrected"):
        assert part in text


@pytest.mark.parametrize("number", LAYOUT_FIGURES)
def test_figures_13_to_15(number: int, tmp_path: Path) -> None:
    grids = layout_grids(LAYOUT_FIGURES[number], published=False)
    table = list(grid_rows(grids))
    assert [row[0] for row in table] == [9] * 9 + [25] * 25 + [49] * 49 + [81] * 81
    if number != 13:
        assert table[0] == (9, 1, 8, 8, 0)
    with look():
        paths = [save(layouts_figure(number, grids, published=False), tmp_path / name) for name in ("a.svg", "b.svg", "c.png")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size < 128_000
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert f"Figure {number}" in words(paths[0])
