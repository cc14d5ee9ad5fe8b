"""Where compiled libraries are looked for."""

import pytest

from skymemory.common import compiled


def test_a_missing_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.NATIVE_DIR_VARIABLE, "/nonexistent")
    with pytest.raises(FileNotFoundError, match=r"/nonexistent/libskymem_client\.so is missing.*pip install"):
        compiled.library_path("libskymem_client.so")
