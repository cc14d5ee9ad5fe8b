"""Colours of marks that mean different things are told apart, also by people who do not see all colours."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

STYLE = (Path(__file__).resolve().parents[3] / "ground" / "web" / "style" / "base.css").read_text(encoding="utf-8")
THEMES = dict(zip(("light", "dark"), re.findall(r"^:root[^{]*\{(.*?)^\}", STYLE, re.DOTALL | re.MULTILINE), strict=True))
SIGHT = {
    "all colours": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
"""What is seen of linear sRGB (Machado, Oliveira and Fernandes 2009, severity 1)."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) / [[0.9505], [1.0], [1.089]]
LEAST = 25.0
"""CIELAB distance: several times what is just told apart side by side."""


def linear(theme: str, name: str) -> NDArray[np.float64]:
    found = re.search(rf"--{name}: #([0-9a-f]{{6}});", THEMES[theme])
    assert found is not None
    parts = np.array([int(found[1][at : at + 2], 16) for at in (0, 2, 4)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour: NDArray[np.float64]) -> NDArray[np.float64]:
    parts = XYZ @ np.clip(colour, 0, 1)
    root = np.where(parts > 0.008856, np.cbrt(parts), 7.787 * parts + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("loss", ["lost", "bad"])
def test_a_handover_has_another_colour_than_a_loss(theme: str, loss: str, sight: str) -> None:
    move, lost = (lab(SIGHT[sight] @ linear(theme, name)) for name in ("arc", loss))
    assert np.linalg.norm(move - lost) > LEAST


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_handover_stands_out_from_the_panel(theme: str) -> None:
    bright, dim = sorted((float(XYZ[1] @ linear(theme, name)) for name in ("arc", "panel")), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) > 4.5
