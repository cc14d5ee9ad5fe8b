"""Linked segments keep the answers of the trained model where they should, and lose them where nothing helps.

The bounds are wide, for a small sample; docs/pic.md has the figures of `tools/link_quality.py`.
"""

from __future__ import annotations

import pytest

from link_quality import Quality
from seams import KINDS
from seams_quality import SHAPES

pytestmark = pytest.mark.model


def test_what_strategies_keep_of_the_answers() -> None:
    strategies = ("exact", "naive", "random:30", "blend:15", "blend:30", "facts@1", "blend:15@3", "variants/naive", "codec/int4")
    cells, deviations = Quality().measure(SHAPES[0], strategies, prompts=20, seed=4, deviation_prompts=20)
    full = cells["exact"]
    lost = {name: cell.drop(full)[0] for name, cell in cells.items()}
    assert full.share() >= 0.98
    assert cells["naive"].share(("local",)) >= 0.95  # what a segment tells alone stays
    assert lost["naive"] >= 0.4
    assert lost["random:30"] >= 0.3
    assert lost["blend:15"] <= 0.25  # 17 % of the rows are needed
    assert lost["blend:30"] <= 0.03
    assert lost["facts@1"] <= 0.03  # a sixth of the rows, if they are the right ones
    assert lost["blend:15@3"] <= 0.05
    assert lost["variants/naive"] <= 0.03  # what was computed behind its document knows it
    assert abs(lost["codec/int4"]) <= 0.05
    assert cells["facts@1"].recomputed == pytest.approx(0.172, abs=0.001)
    assert all(len(cell.right[kind]) == 20 for cell in cells.values() for kind in KINDS)
    # Layers up to the switch layer are exact, and neighbours above rank tokens alike
    attention = cells["blend:15@3"].attention
    assert attention is not None
    assert float(attention[:4].max()) < 1e-3 < float(attention[4:].min())
    assert float((deviations.ranks / deviations.batches)[1:].min()) > 0.6
