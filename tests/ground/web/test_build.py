"""How the page comes into the wheel, and what happens where npm cannot do its part."""

import re
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[3] / "ground" / "web"
IMPORT = re.compile(r'import (?:\{([^}]*)\}|\* as \w+) from "(\.[^"]+)"')


def cmake(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cmake", *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("npm", ["/bin/false", "/nowhere/npm"])
def test_where_npm_fails_there_is_no_page_and_in_ci_no_wheel(tmp_path: Path, npm: str) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "d3.js").write_text("of an earlier build")
    done = cmake(tmp_path, "-D", f"NPM={npm}", "-D", "CI=", "-P", str(WEB / "fetch.cmake"))
    assert done.returncode == 0
    assert "npm ci failed, so the agent will have no page" in " ".join(done.stderr.split())
    assert not (tmp_path / "vendor" / "d3.js").exists()
    done = cmake(tmp_path, "-D", f"NPM={npm}", "-D", "CI=true", "-P", str(WEB / "fetch.cmake"))
    assert done.returncode != 0
    assert "npm ci failed" in done.stderr


def test_all_of_the_page_is_installed_or_nothing(tmp_path: Path) -> None:
    work, prefix = tmp_path / "work", tmp_path / "prefix"
    script = tmp_path / "install.cmake"
    script.write_text(
        f'set(work "{work}")\nset(source "{WEB}")\nset(page page)\n'
        f'set(CMAKE_INSTALL_PREFIX "{prefix}")\ninclude("{WEB / "install.cmake"}")\n'
    )
    assert cmake(tmp_path, "-P", str(script)).returncode == 0
    assert not prefix.exists()
    (work / "vendor").mkdir(parents=True)
    (work / "vendor" / "d3.js").write_text("export {};")
    assert cmake(tmp_path, "-P", str(script)).returncode == 0
    installed = {str(file.relative_to(prefix / "page")) for file in prefix.rglob("*") if file.is_file()}
    assert {"index.html", "main.js", "vendor/d3.js", "style/base.css", "icon.svg"} <= installed
    assert not {"build.js", "vendor.js", "package.json", "CMakeLists.txt"} & installed


def test_every_import_is_there() -> None:
    """A module that is not there is an empty page; and nothing is taken from others that nobody uses."""
    vendor = (WEB / "vendor.js").read_text(encoding="utf-8")
    exported = {name for names in re.findall(r"export (?:{([^}]*)}|const \w+)", vendor) for name in re.findall(r"\w+", names)}
    used = set()
    for module in modules():
        for names, path in IMPORT.findall(module.read_text(encoding="utf-8")):
            if path.endswith("vendor/d3.js"):
                used |= set(re.findall(r"\w+", names))
            else:
                assert (module.parent / path).is_file(), f"{module}: {path}"
    assert used == exported | {"coastlines"}


def modules() -> list[Path]:
    return [file for file in WEB.rglob("*.js") if not {"node_modules", "vendor"} & set(file.parts)]


def test_modules_are_small_and_the_lock_names_no_registry() -> None:
    assert len(modules()) > 20
    assert all(len(file.read_text(encoding="utf-8").splitlines()) < 300 for file in modules())
    lock = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock
    assert "://" not in lock
    assert '"integrity": "sha512-' in lock
