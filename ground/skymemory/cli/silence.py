"""Words about satellites that do not answer: silence is not absence."""

from skymemory.store.sky_store import SkyStore


def silence(store: SkyStore, *, is_unanswered: bool) -> str:
    """Return in words that satellites which may hold a value do not answer; '' if enough answer to know that it is absent."""
    if store.silent:
        return "no satellite answers"
    if not store.knows_absence:
        return f"{', '.join(map(str, sorted(store.lost)))} {'does' if len(store.lost) == 1 else 'do'} not answer"
    return "not enough satellites answer in time" if is_unanswered else ""
