"""Report of `/readyz`: whether blocks can be fetched, and whether all of them can."""

from typing import Any

from skymemory.agent.shared_sky import SharedSky
from skymemory.sky.window_state import State


def readiness(sky: SharedSky) -> dict[str, Any]:
    """Return the report for JSON. Only `ready` is False while nothing can be fetched; `degraded` says that servers are lost."""
    why = sky.unready
    report: dict[str, Any] = {"ready": why is None}
    if why is not None:
        report["reason"] = why
    if mistake := sky.keyring_mistake:
        report["keyring"] = mistake
    store, watch = sky.store, sky.window
    if store is not None:
        report["planes"], report["slots"] = store.constellation.planes, store.constellation.slots
    if watch is not None and (window := watch.state) is not None and why is None:
        report["degraded"] = window.state is not State.WHOLE
        report["window"] = {"state": window.state, "words": window.words(), "lost": window.lost}
    if watch is not None and watch.version_words:
        report["versions"] = watch.version_words
    return report
