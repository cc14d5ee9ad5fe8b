"""Files that carry the version, and the tool that writes it into them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_file_has_the_version_of_pyproject(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from set_version import updated

    assert updated(ROOT) == {}


def test_a_new_version_reaches_every_kind_of_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from set_version import updated, version

    names = ["CITATION.cff", "fsw_apps/sky/fsw/inc/sky_release.h", "docs/guide.md", "docker/compose.yaml", "docker/stack.yaml"]
    names.append("docker/kubernetes/skymemory.yaml")
    for name in [*names, "pyproject.toml"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{version()}"', 'version = "7.8.9rc1"'))

    texts = updated(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in texts) == sorted(names)
    for path, text in texts.items():
        assert "7.8.9rc1" in text, path
        assert f":{version()}" not in text, path
        assert text.replace("7.8.9rc1", version()) == path.read_text(), path
