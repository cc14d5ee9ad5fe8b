"""Files that are checked against a pydantic model. Each mistake is told with its file, its line and what is allowed.

The description of a model's field says what is allowed there.
"""

import difflib
import io
import json
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from skymemory.common.toml_lines import KeyPath, find_line

Mistake = tuple[KeyPath, str]
"""Key path of a value, and the text that says what is wrong with it."""


class CheckedModel(BaseModel):
    """A table of a file. Immutable; every key must be known and every value of its type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


def whole_numbers(default: Any, low: int, high: int, note: str = "") -> Any:
    """Return a field for whole numbers; without a value where `default` is an ellipsis."""
    return Field(default=default, ge=low, le=high, description=f"whole numbers from {low} to {high}{note}")


def numbers(default: Any, low: float, high: float) -> Any:
    """Return a field for numbers; without a value where `default` is an ellipsis."""
    return Field(default=default, ge=low, le=high, description=f"numbers from {low:g} to {high:g}", allow_inf_nan=False)


def contradiction(found: list[Mistake]) -> PydanticCustomError:
    """Return the error for values that are right by themselves and wrong together."""
    text = "; ".join(what for _, what in found)
    return PydanticCustomError("contradiction", "{text}", {"text": text, "found": found})


def rule(text: str) -> PydanticCustomError:
    """Return the error for a table that breaks a rule; the text follows the table's name."""
    return PydanticCustomError("rule", "{text}", {"text": text})


def read_toml(path: Path, refuse: type[Exception]) -> tuple[str, dict[str, Any]]:
    """Return a file's text and its values.

    Raises:
        refuse: The file cannot be read, or is not TOML.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise refuse(f"{path}: {error.strerror or error}") from error
    return parse_toml(path, content, refuse)


def parse_toml(path: Path, content: bytes, refuse: type[Exception]) -> tuple[str, dict[str, Any]]:
    """Return the text and the values of a file that was read.

    Raises:
        refuse: It is not TOML.
    """
    try:
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()  # with all kinds of line ends
    except UnicodeDecodeError as error:
        raise refuse(f"{path}: byte {error.start} is not UTF-8; TOML files are UTF-8") from error
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).partition(" (at ")
        words = place.rstrip(")").replace(",", "").split()
        line = words[1] if words[:1] == ["line"] else str(text.count("\n") + 1)
        column = f" (column {words[3]})" if words[2:3] == ["column"] else ""
        raise refuse(f"{path}:{line}: not valid TOML: {what[:1].lower()}{what[1:]}{column}") from error


def tell(path: Path, text: str, found: Iterable[Mistake]) -> str:
    """Return one line `file:line: mistake` for each mistake, in the file's order; those without a line come last."""
    lines = sorted(((find_line(text, key), what) for key, what in found), key=lambda one: one[0] or sys.maxsize)
    return "\n".join(f"{path}:{line}: {what}" if line else f"{path}: {what}" for line, what in lines)


def mistakes(error: ValidationError, model: type[BaseModel]) -> list[Mistake]:
    """Return the mistakes that pydantic found in the values of a model."""
    found: list[Mistake] = []
    for detail in error.errors(include_url=False):
        if detail["type"] == "contradiction":
            found.extend(detail["ctx"]["found"])
        else:
            found.append((detail["loc"], _mistake(detail, model)))
    return list(dict.fromkeys(found))


def shown(value: object) -> str:
    """Return a value as a file shows it, cut to a length that fits a line, without characters that a terminal does not take."""
    if value is None or isinstance(value, float):
        return "empty" if value is None else repr(value)
    try:
        return shortened(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return "a list of lists of lists"


def shortened(text: str) -> str:
    """Cut a text to a length that fits a line, without characters that a terminal does not take."""
    short = text if len(text) <= 60 else text[:57] + "..."
    return "".join(one if one.isprintable() else "?" for one in short)


def _mistake(detail: ErrorDetails, model: type[BaseModel]) -> str:
    path = detail["loc"]
    name = ".".join(part if part.isidentifier() else json.dumps(part) for part in path if isinstance(part, str))
    if detail["type"] == "rule":
        return f"{name} {detail['msg']}"
    for part in path[:-1]:
        model = _table(model, part)
    field = _field(model, path[-1])
    if detail["type"] == "extra_forbidden":
        known = [one.alias or key for key, one in model.model_fields.items()]
        outer = name.rpartition(".")[0]
        table = f"in {f'[[{outer}]]' if isinstance(path[-2], int) else f'[{outer}]'}" if outer else "as tables"
        close = difflib.get_close_matches(str(path[-1]), known, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return f"{name} is unknown{hint}; allowed {table} are {', '.join(known)}"
    allowed = field.description if field is not None and field.description is not None else "tables"
    return f"{name} is {'missing' if detail['type'] == 'missing' else shown(detail['input'])}; allowed are {allowed}"


def _field(model: type[BaseModel], key: str | int) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if key in (name, field.alias)), None)


def _table(model: type[BaseModel], key: str | int) -> type[BaseModel]:
    """Return the model of a table, or of each table of an array; an index leads no further."""
    field = _field(model, key)
    kinds = () if field is None else (field.annotation, *get_args(field.annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
