"""Figure 16 beside the twin's measurements of the same cases as packets of the flight code.

A point of figure 16 is one way and the processing of chunks. A get also needs the way of the request, a put that of the
acknowledgement: both take at least one more way to the server that is the last.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from skymemory.common.progress import Progress
from skymemory.simulate.latencies import CHUNK_BYTES, LIGHT_M_PER_S, PAPER, Parameter, Row, Sweep
from skymemory.sky.placement.layouts import LayoutName
from skymemory.twin.paper_case import Measured, PaperCase, measure


class MeasuredRow(NamedTuple):
    """A point of figure 16, and the twin's measurement."""

    layout: LayoutName
    parameter: Parameter
    value: float
    max_s: float
    min_s: float
    mean_s: float
    std_s: float
    se_s: float
    measured_put_s: float
    """Seconds until the last server has acknowledged its last chunk."""
    measured_get_s: float
    """Seconds until the last chunk has come."""


def case_of(row: Row, sweep: Sweep = PAPER) -> PaperCase:
    """Return the case that a point of figure 16 stands for."""
    values = sweep.held(row.parameter) | {row.parameter: row.value}
    return PaperCase(
        torus=sweep.torus,
        centre=sweep.centre,
        layout=row.layout,
        servers=int(values["SERVERS"]),
        block_bytes=int(values["KVC_BYTES"]),
        chunk_bytes=CHUNK_BYTES,
        processing_us=round(1e6 * values["CHUNK_PROCESSING_TIME"]),
        altitude_km=values["ALTITUDE"] / 1000,
        light_km_per_s=LIGHT_M_PER_S / 1000,
    )


def measured(rows: Sequence[Row], sweep: Sweep = PAPER, progress: Progress | None = None) -> Iterator[MeasuredRow]:
    """Run the case of each row as packets; rows with the same case share one run.

    Args:
        progress: Function that is called with (rows measured, all).

    Raises:
        TwinError: A block did not come back as it was put.
    """
    once = cache(measure)
    for count, row in enumerate(rows, start=1):
        found: Measured = once(case_of(row, sweep))
        if progress is not None:
            progress(count, len(rows))
        yield MeasuredRow(*row, found.put_s, found.get_s)
