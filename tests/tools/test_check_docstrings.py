"""The check of docstrings that ruff does not see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from check_docstrings import excused, faults

ROOT = Path(__file__).parents[2]
GOOD = '''\
"""Facts about a block."""

LIMIT = 3
"""Attempts at most."""


class Block:
    """A block of a prompt."""

    size: int
    """Bytes, of which the last chunk
    may have fewer."""
    key: bytes
    """32 bytes."""

    def __init__(self, row):
        self.row = row
        """`row` as the schedule counts it."""

    def find(self, row, places):
        """Return the place of a row.

        Args:
            row: Row that holds now.
            places: Places to ask,
                in this order.

        Raises:
            LookupError, ValueError: The row has no place.
        """
'''


@pytest.mark.parametrize(
    ("good", "bad", "line", "fault"),
    [
        ("Attempts at most.", "attempts at most.", 4, "attribute docstring does not begin with a capital"),
        ("Attempts at most.", "Attempts at most", 4, "attribute docstring does not end with a full stop"),
        ("Attempts at most.", "How often it tries.", 4, "attribute docstring lacks its noun"),
        ("may have fewer.", "may have fewer", 11, "attribute docstring does not end"),
        ("`row` as the schedule counts it.", "of the schedule.", 18, "attribute docstring does not begin"),
        ("Facts about a block.", "What is known of a block.", 1, "docstring lacks its noun"),
        ("A block of a prompt.", "Which block it is.", 8, "docstring lacks its noun"),
        ("Return the place of a row.", "Where a row is.", 21, "docstring lacks its noun"),
        ("Row that holds now.", "that holds now.", 21, "entry does not begin"),
        ("in this order.", "in this order", 21, "entry does not end"),
        ("The row has no place.", "it has no place.", 21, "entry does not begin"),
    ],
)
def test_each_kind_of_fault_is_found_at_its_line(good: str, bad: str, line: int, fault: str) -> None:
    found = list(faults(GOOD.replace(good, bad)))
    assert [where for where, _ in found] == [line]
    assert found[0][1].startswith(fault)


def test_good_docstrings_and_other_strings_have_no_fault() -> None:
    assert not list(faults(GOOD))
    assert not list(faults('print("a")\n"no docstring, as nothing is assigned before"\n'))
    assert not list(faults('def f():\n    """Return a table:\n\n        name: no section, so this is no entry\n    """\n'))


def test_what_ruff_excuses_is_excused() -> None:
    project = '[tool.ruff.lint.per-file-ignores]\n"a/**" = ["D"]\n"b.py" = ["D", "E501"]\n"c/**" = ["E501"]\n'
    assert excused(project) == ["a/**", "b.py"]


def test_the_command_names_file_line_and_fault(tmp_path: Path) -> None:
    copy = tmp_path / "tools" / "check_docstrings.py"
    copy.parent.mkdir()
    copy.write_bytes((ROOT / "tools" / "check_docstrings.py").read_bytes())
    (tmp_path / "pyproject.toml").write_text('[tool.ruff.lint.per-file-ignores]\n"ground/old/**" = ["D"]\n')
    for folder in ("old", "new"):
        (tmp_path / "ground" / folder).mkdir(parents=True)
        (tmp_path / "ground" / folder / "module.py").write_text("LIMIT = 3\n'''attempts at most.'''\n")
    done = subprocess.run([sys.executable, copy], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ('ground/new/module.py:2: attribute docstring does not begin with a capital: "attempts at most."\n')
    (tmp_path / "ground" / "new" / "module.py").write_text("LIMIT = 3\n'''Attempts at most.'''\n")
    assert subprocess.run([sys.executable, copy], check=False).returncode == 0
