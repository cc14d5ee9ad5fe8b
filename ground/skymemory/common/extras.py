"""Optional libraries, which only some uses need."""


def how_to_install(library: str, extra: str) -> str:
    """Return the sentence that says how to install a missing library; SkyMemory is on no package index.

    Args:
        library: Library that could not be imported.
        extra: Optional dependency of pyproject.toml that brings the library.
    """
    return f"{library} is not installed; in the checkout of SkyMemory run: pip install '.[{extra}]'"
