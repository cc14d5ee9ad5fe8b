"""Limits and periods of the page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Limits and periods of the page that an agent shows."""

    watched_s: float = 2.0
    """Time between two frames while somebody watches."""
    alone_s: float = 10.0
    """Time between two frames while nobody watches."""
    asked_s: float = 15.0
    """Time for which a client that asked over HTTP counts as watching."""
    browsers_max: int = 64
    """Most browsers at the WebSocket."""
    send_s: float = 10.0
    """Time after which a browser that has not taken a state is dropped."""
