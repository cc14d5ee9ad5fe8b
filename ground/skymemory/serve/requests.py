"""Requests of clients, checked. `skymemory.serve.parameters` says what is served; here are its types and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from skymemory.serve.errors import ApiError
from skymemory.serve.json_body import JsonLimits, parse_json
from skymemory.serve.parameters import Place, UnknownNames, parameter, sort_out, why_refused

CHOICES_MAX = 128
"""Most answers to one request."""
PARTS_MAX = 4096
"""Most parts of all messages of a chat; a message whose content is text has one."""
FIELDS_MAX = 256
"""Most fields of an object: none has so many."""
_STOPS_MAX = 16
_STOP_CHARACTERS_MAX = 256
_SALT_CHARACTERS_MAX = 1024
_INT64_MAX = (1 << 63) - 1

_NAME_CHARACTERS_MAX = 256
_MODEL_CHARACTERS_MAX = 1024
_TOOL_CALLS_MAX = 128


def _few(most: int) -> Callable[[Any], Any]:
    """Return a check of the length of a list, before its entries are looked at. It raises ValueError."""

    def check(value: Any) -> Any:
        if isinstance(value, list) and len(value) > most:
            raise ValueError(f"{len(value):,} entries; allowed are {most:,}")
        return value

    return check


def _listed(value: Any) -> Any:
    return ([value] if value else []) if isinstance(value, str) else value


def _filled(value: Any) -> Any:
    return None if value == "" else value


def _prompts(value: Any) -> list[str | list[int]]:
    """Check prompts as text or token ids; raise ValueError."""
    given = [value] if isinstance(value, str) or is_tokens(value) else value
    if not isinstance(given, list) or not 1 <= len(given) <= CHOICES_MAX:
        given = [None]
    if all(isinstance(one, str) for one in given) or all(is_tokens(one) for one in given):
        return given
    raise ValueError(f"allowed are text, token ids, and lists of 1 to {CHOICES_MAX} of either")


def is_tokens(value: Any) -> bool:
    """Return True if a value may be the token ids of one prompt."""
    return isinstance(value, list) and len(value) > 0 and all(type(token) is int for token in value)


def _few_parts(value: Any) -> Any:
    """Check the number of parts of all messages before each of them is looked at; raise ValueError."""
    if isinstance(value, list):
        count = len(value)
        contents = [] if count > PARTS_MAX else [one.get("content") if isinstance(one, dict) else None for one in value]
        count += sum(len(content) - 1 for content in contents if isinstance(content, list) and content)
        if count > PARTS_MAX:
            raise ValueError(f"{count:,} parts of messages; allowed are {PARTS_MAX:,}")
    return value


def _content(value: Any) -> Any:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


class Strict(BaseModel):
    """Object of a request: no other types, and no other fields.

    If it has a place, its fields are sorted out first by what the server makes of each (`skymemory.serve.parameters`).
    `UnknownNames` that are given as pydantic's context take the names of unknown ones.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    place: ClassVar[Place | None] = None

    @model_validator(mode="before")
    @classmethod
    def _sorted_out(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, dict):
            return given
        if len(given) > FIELDS_MAX:
            raise ValueError(f"{len(given):,} fields; allowed are {FIELDS_MAX}")
        if cls.place is None:
            return {name: value for name, value in given.items() if value is not None}
        left, unknown = sort_out(cls.place, given)
        if isinstance(info.context, UnknownNames):
            inside = {Place.MESSAGE: "messages.", Place.PART: "messages.content.", Place.STREAM_OPTIONS: "stream_options."}
            for name in unknown:
                info.context.add(inside.get(cls.place, "") + name)
        return left


class StreamOptions(Strict):
    """Parameter `stream_options`."""

    place: ClassVar = Place.STREAM_OPTIONS
    include_usage: bool = False


class TextPart(Strict):
    """A part of a message's content that is text."""

    place: ClassVar = Place.PART
    type: Literal["text"]
    text: str
    segment: bool = False
    """True if the text is to become a segment."""

    @property
    def is_segment(self) -> bool:
        """True if it stands for a segment in a chat template."""
        return self.segment and self.text != ""

    @property
    def shown(self) -> str:
        """Text for the chat template."""
        return self.text


class CachedContentPart(Strict):
    """A part of a message's content that is a segment, by its id."""

    type: Literal["cached_content"]
    id: Annotated[str, Field(min_length=1, max_length=_NAME_CHARACTERS_MAX)]
    cache_control: Any = None
    """Anthropic's wish to cache what ends here. It has no effect, as all is cached."""
    is_segment: ClassVar[bool] = True
    shown: ClassVar[str] = ""


Part: TypeAlias = TextPart | CachedContentPart


class _AnyPart(Strict):
    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "cached_content"]


def _part(value: Any, info: ValidationInfo) -> Part:
    """Check a part by its type."""
    kind = _AnyPart.model_validate(value).type
    return (CachedContentPart if kind == "cached_content" else TextPart).model_validate(value, context=info.context)


class CalledFunction(Strict):
    """Function of a tool call."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, Field(min_length=1, max_length=_NAME_CHARACTERS_MAX)]
    arguments: str = ""
    """JSON, as the model wrote it."""


class ToolCall(Strict):
    """A call of a tool, in the history."""

    model_config = ConfigDict(extra="ignore")

    id: Annotated[str, Field(max_length=_NAME_CHARACTERS_MAX)] = ""
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(Strict):
    """A message of a chat."""

    place: ClassVar = Place.MESSAGE
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[list[Annotated[Part, PlainValidator(_part)]], BeforeValidator(_content)]
    name: Annotated[str, Field(max_length=_NAME_CHARACTERS_MAX)] | None = None
    tool_calls: Annotated[list[ToolCall], BeforeValidator(_few(_TOOL_CALLS_MAX))] = []
    tool_call_id: Annotated[str, Field(max_length=_NAME_CHARACTERS_MAX)] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    """The same, by vLLM's newer name."""

    @model_validator(mode="before")
    @classmethod
    def _as_sent_back(cls, given: Any) -> Any:
        """Take a message as clients got it: with empty lists of what was not in it, and without content if nothing was said."""
        if not isinstance(given, dict):
            return given
        left = {name: value for name, value in given.items() if value != [] or parameter(Place.MESSAGE, name) is None}
        if left.get("content") is None and left.get("role") in ("assistant", "function"):
            left["content"] = ""
        return left

    @property
    def thoughts(self) -> str | None:
        """The thoughts of the model before its answer."""
        return self.reasoning if self.reasoning_content is None else self.reasoning_content

    @property
    def characters(self) -> int:
        """Length of all that a chat template may show."""
        calls = sum(len(call.id) + len(call.function.name) + len(call.function.arguments) for call in self.tool_calls)
        names = len(self.name or "") + len(self.tool_call_id or "")
        return sum(len(part.shown) for part in self.content) + len(self.thoughts or "") + calls + names

    def for_template(self, shown: Callable[[Part], str]) -> dict[str, Any]:
        """Return the message as chat templates take it; they know no developers, and take arguments as objects.

        Args:
            shown: Returns the text of a part.
        """
        given: dict[str, Any] = {
            "role": "system" if self.role == "developer" else self.role,
            "content": "\n".join(map(shown, self.content)),
            "name": self.name,
            "tool_call_id": self.tool_call_id,
            "reasoning_content": self.thoughts,
        }
        if self.tool_calls:
            given["tool_calls"] = [
                {"id": one.id, "type": one.type, "function": {"name": one.function.name, "arguments": _arguments(one.function)}}
                for one in self.tool_calls
            ]
        return {name: value for name, value in given.items() if value is not None}


def _arguments(function: CalledFunction) -> Any:
    """Return the arguments of a call as an object; as they are, if they are none."""
    try:
        arguments = parse_json(function.arguments.encode())
    except ApiError:
        return function.arguments
    return arguments if isinstance(arguments, dict) else function.arguments


class _Generation(Strict):
    """The parameters of both kinds of requests."""

    model: Annotated[str, Field(max_length=_MODEL_CHARACTERS_MAX)]
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=CHOICES_MAX)] = 1
    stop: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=_STOP_CHARACTERS_MAX)]],
        BeforeValidator(_few(_STOPS_MAX)),
        BeforeValidator(_listed),
    ] = []
    seed: Annotated[int, Field(ge=-_INT64_MAX, le=_INT64_MAX)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    cache_salt: Annotated[Annotated[str, Field(max_length=_SALT_CHARACTERS_MAX)] | None, BeforeValidator(_filled)] = None
    """Word that goes into the names of the prompt's blocks: equal prompts with other salts share nothing."""

    @property
    def include_usage(self) -> bool:
        """True if a stream ends with a chunk of the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionRequest(_Generation):
    """`POST /v1/completions`."""

    place: ClassVar = Place.COMPLETIONS
    prompt: Annotated[list[str | list[int]], PlainValidator(_prompts)]
    max_tokens: Annotated[int, Field(ge=1)] = 16
    echo: bool = False


class ChatRequest(_Generation):
    """`POST /v1/chat/completions`."""

    place: ClassVar = Place.CHAT
    messages: Annotated[list[ChatMessage], Field(min_length=1), BeforeValidator(_few_parts)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None


_R = TypeVar("_R", bound=Strict)


def parse(kind: type[_R], body: bytes, limits: JsonLimits, unknown: UnknownNames | None = None) -> _R:
    """Parse a request from its JSON.

    Args:
        kind: Class of the request.
        body: The JSON.
        limits: Limits of the body.
        unknown: Takes the names of unknown parameters.

    Raises:
        ApiError: The request is wrong; the message names the parameter and what is allowed.
    """
    given = parse_json(body, limits)
    if not isinstance(given, dict):
        raise ApiError("the body is not a JSON object", code="invalid_json")
    try:
        request = kind.model_validate(given, context=unknown)
    except ValidationError as error:
        raise _told(kind, error) from error
    if isinstance(request, _Generation) and request.include_usage and not request.stream:
        raise ApiError("stream_options: allowed only with stream", param="stream_options")
    return request


def _told(kind: type[Strict], error: ValidationError) -> ApiError:
    """Return the first mistake. Excess and missing parameters come last, as they often follow from another mistake."""
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)
    first = min(mistakes, key=lambda mistake: {"extra_forbidden": 1, "missing": 2}.get(mistake["type"], 0))
    param = ""
    for part in first["loc"]:
        param += f"[{part}]" if isinstance(part, int) else f".{part}" if param else part
    message, code = first["msg"].removeprefix("Value error, "), None
    if first["type"] == "missing":
        message = "is missing"
    elif first["type"] == "extra_forbidden":
        message, code = _why_refused(kind, first["loc"]), "unsupported_parameter"
    return ApiError(f"{param}: {message}", param=param, code=code)


def _why_refused(kind: type[Strict], where: tuple[int | str, ...]) -> str:
    """Return why a field is refused. Fields of our own objects, which the table does not have, are refused without more words."""
    names = tuple(part for part in where if isinstance(part, str))
    places = {("messages",): Place.MESSAGE, ("messages", "content"): Place.PART, ("stream_options",): Place.STREAM_OPTIONS}
    place = places.get(names[:-1], kind.place) if names[:-1] else kind.place
    return "not supported by this server" if place is None else why_refused(place, names[-1])
