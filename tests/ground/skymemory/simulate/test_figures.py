"""The pictures: they are drawn, say what they show, and are the same file for the same data."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from skymemory.simulate.drawing import Page, look, save
from skymemory.simulate.latencies import PAPER, Sweep, rows
from skymemory.simulate.latency_figures import layouts_times_figure, plane_contours, plane_data, plane_latency_ms, plane_ribbons
from skymemory.simulate.layout_figures import LAYOUT_FIGURES, grid_figure, grid_rows, layout_grids, layouts_figure
from skymemory.simulate.layout_grid import Grid
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")


def words(path: Path) -> str:
    """All text of an SVG file."""
    return " ".join(" ".join(ET.parse(path).getroot().itertext()).split())


def test_latency_in_a_plane() -> None:
    """A square of satellites has sides of sqrt(2) radii."""
    assert plane_latency_ms(4, 629) == pytest.approx(7000 * 2**0.5 / 299.8)
    assert len(plane_data(1)) == 9 * 47
    assert plane_data(2)[0] == (10, 160, plane_latency_ms(10, 160))


def test_figures_1_and_2(tmp_path: Path) -> None:
    with look():
        texts = [words(save(figure, tmp_path / "a.svg")) for figure in (plane_ribbons(Page()), plane_contours(Page()))]
    for text in texts:
        assert "satellites in a plane, M" in text
        assert "altitude h, km" in text
        assert "latency of one hop, ms" in text
        assert "Equation (1) over the speed of light" in text


def test_figure_16(tmp_path: Path) -> None:
    with look():
        text = words(save(layouts_times_figure(rows(), PAPER, Page(), published=False), tmp_path / "a.svg"))
    for part in ("KV cache, MiB", "servers", "processing time of a chunk, ms", "altitude, km", "largest time of a server, s"):
        assert part in text
    assert "0.495 0.500 0.505" in text  # numbers are shortened where they are places, not where they are read
    for part in ("rotation-aware", "hop-aware (on board)", "rotation- and hop-aware", "15 planes x 15 slots", "corrected"):
        assert part in text


@pytest.mark.parametrize("number", LAYOUT_FIGURES)
def test_figures_13_to_15(number: int, tmp_path: Path) -> None:
    grids = layout_grids(LAYOUT_FIGURES[number], published=False)
    table = list(grid_rows(grids))
    assert [row[0] for row in table] == [9] * 9 + [25] * 25 + [49] * 49 + [81] * 81
    if number != 13:
        assert table[0] == (9, 1, 8, 8, 0)
    with look():
        names = ("a.svg", "b.svg", "c.png")
        paths = [save(layouts_figure(number, grids, Page(), published=False), tmp_path / name) for name in names]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size < 128_000
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert f"Figure {number}" in words(paths[0])


def size_pt(path: Path) -> tuple[float, float]:
    """Width and height of an SVG file."""
    root = ET.parse(path).getroot()
    return float(root.attrib["width"].removesuffix("pt")), float(root.attrib["height"].removesuffix("pt"))


def test_a_page_decides_the_width_and_leaves_the_title_to_the_caption(tmp_path: Path) -> None:
    sky = Sweep(Torus(5, 19), Satellite(3, 4), 10, 550)
    draw = {
        "ribbons": plane_ribbons,
        "contours": plane_contours,
        "times": lambda page: layouts_times_figure(rows(sky), sky, page, published=False),
        "layouts": lambda page: layouts_figure(15, layout_grids("rotation_hop", sky, published=False), page, published=False),
        "grid": lambda page: grid_figure(Grid.of("hop", sky.centre, 10, sky.torus), page),
    }
    for name, figure in draw.items():
        with look():
            plain = save(figure(Page()), tmp_path / "plain.svg")
            narrow = save(figure(Page(bare=True, width_in=3.5)), tmp_path / "narrow.svg")
        assert size_pt(narrow)[0] == pytest.approx(252, abs=0.1), name
        assert size_pt(plain)[0] > 500
        assert "Figure" in words(plain) or name == "grid"
        assert "Figure" not in words(narrow)
        assert "5 planes x 19 slots" not in words(narrow)


def test_a_server_without_a_satellite_leaves_a_gap_and_is_told(tmp_path: Path) -> None:
    sky = Sweep(Torus(5, 19), Satellite(3, 4), 10, 550)
    with look():
        times = words(save(layouts_times_figure(rows(sky, published=True), sky, Page(), published=True), tmp_path / "a.svg"))
        grids = layout_grids("rotation_hop", sky, published=True)
        layouts = words(save(layouts_figure(15, grids, Page(), published=True), tmp_path / "b.svg"))
    assert "Gaps: a server is on no satellite." in times
    for part in ("9 servers (3 x 3)", "10 servers, 1 on no satellite", "49 servers (7 x 7), 49 on no satellite"):
        assert part in layouts


def test_pdf_files_are_equal_and_have_fonts_that_journals_take(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf"):
        with look():
            save(plane_contours(Page()), tmp_path / name)
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert pdf == (tmp_path / "b.pdf").read_bytes()
    assert b"/Type3" not in pdf
