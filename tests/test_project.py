"""What people find of the project: version, licence, citation, changelog, types, completion, reference."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from mkdocs.exceptions import PluginError

import skymemory

ROOT = Path(__file__).parents[1]
SKYMEM = Path(sys.executable).with_name("skymem")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_version_citation_and_changelog_agree() -> None:
    version = PROJECT["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    headings = re.findall(r"^## \[(.+?)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] == citation["version"] == distribution("skymemory").version == version
    assert all(re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", day) for _, day in headings)
    assert [day for _, day in headings].count("unreleased") <= 1
    told = subprocess.run([SKYMEM, "--version"], check=True, capture_output=True, text=True).stdout
    assert version in told


def test_the_licence_is_stated_alike_and_shipped() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    about = distribution("skymemory")
    assert about.metadata["License-Expression"] == citation["license"] == PROJECT["license"] == "Apache-2.0"
    shipped = [file for file in about.files or () if file.name == "LICENSE" and "dist-info" in str(file)]
    assert [file.locate().read_text() for file in shipped] == [(ROOT / "LICENSE").read_text()]
    assert about.metadata["Author"] == PROJECT["authors"][0]["name"] == citation["authors"][0]["name"]


def test_the_citation_names_the_paper() -> None:
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    assert paper["title"] == "SkyMemory: A LEO Edge Cache for Transformer Inference Optimization and Scale Out"
    assert [author["family-names"] for author in paper["authors"]] == ["Sandholm", "Mukherjee", "Cheng", "Huberman"]
    assert paper["url"] == PROJECT["urls"]["Paper"]


def test_a_type_checker_of_a_user_sees_the_types(tmp_path: Path) -> None:
    program = tmp_path / "user.py"
    program.write_text(
        "from pathlib import Path\n"
        "from skymemory import Constellation, Satellite\n"
        "reveal_type(Constellation.load(Path('a.toml')).planes)\n"
        "Satellite('one', 2)\n"
    )
    # Reading all of torch takes minutes, and nothing here is of its types
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*,transformers.*,numpy.*]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", program]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert 'Revealed type is "int"' in told.replace("builtins.", ""), told
    assert 'Argument 1 to "Satellite" has incompatible type "str"' in told


@pytest.mark.parametrize(("words", "wanted"), [("skymem sta", "status"), ("skymem bench pre", "prefix")])
def test_the_shell_completes_commands(words: str, wanted: str) -> None:
    script = _complete("bash_source", "")
    assert "_SKYMEM_COMPLETE=bash_complete" in script
    assert _complete("bash_complete", words).splitlines() == [f"plain,{wanted}"]


def _complete(kind: str, words: str) -> str:
    environment = {
        **os.environ,
        "_SKYMEM_COMPLETE": kind,
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    return subprocess.run([SKYMEM], env=environment, capture_output=True, text=True, check=False).stdout


def test_the_reference_has_every_public_name() -> None:
    listed = re.findall(r"^::: skymemory\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(skymemory.__all__)


def test_a_link_out_of_the_documents_must_lead_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from docs_hooks import on_page_markdown

    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide.md"))
    assert on_page_markdown("[the file](../constellation.toml), [x](twin.md)", page=page) == "the file, [x](twin.md)"
    with pytest.raises(PluginError, match=r"nothing\.toml"):
        on_page_markdown("[the file](../nothing.toml)", page=page)
