"""Libraries that only some uses need."""


def how_to_install(library: str, extra: str) -> str:
    """Return the sentence for who lacks a library; SkyMemory is on no package index.

    Args:
        library: what could not be imported.
        extra: of pyproject.toml, that brings it.
    """
    return f"{library} is not installed; in the checkout of SkyMemory run: pip install '.[{extra}]'"
