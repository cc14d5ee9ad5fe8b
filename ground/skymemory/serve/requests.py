"""Requests of clients, checked. The server refuses what it cannot do, and ignores nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, model_validator
from pydantic_core import from_json

from skymemory.serve.errors import ApiError

CHOICES_MAX = 128
"""Most answers to one request."""
PARTS_MAX = 4096
"""Most parts of all messages of a chat; a message whose content is text has one."""
FIELDS_MAX = 64
"""Most fields of an object: none has so many, and pydantic would tell of each that is too many."""
_STOPS_MAX = 16
_STOP_CHARACTERS_MAX = 256
_SALT_CHARACTERS_MAX = 1024
_INT64_MAX = (1 << 63) - 1

_SEGMENT_CHARACTERS_MAX = 256
_NO_EFFECT = frozenset(("user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "cache_control"))
"""Parameters that do not change the answer."""
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "frequency_penalty": (0,),
    "function_call": ("none",),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "parallel_tool_calls": (True, False),
    "presence_penalty": (0,),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
}
"""Parameters that are not supported, with the values that ask for nothing."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


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
        contents = [one.get("content") if isinstance(one, dict) else None for one in value]
        count = sum(max(1, len(content)) if isinstance(content, list) else 1 for content in contents)
        if count > PARTS_MAX:
            raise ValueError(f"{count:,} parts of messages; allowed are {PARTS_MAX:,}")
    return value


def _content(value: Any) -> Any:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


class Strict(BaseModel):
    """Object of a request: no other types, and no other fields."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if len(given) > FIELDS_MAX:
            raise ValueError(f"{len(given):,} fields; allowed are {FIELDS_MAX}")
        return {name: value for name, value in given.items() if value is not None}


class StreamOptions(Strict):
    """Parameter `stream_options`."""

    include_usage: bool = False


class TextPart(Strict):
    """A part of a message's content that is text."""

    type: Literal["text"]
    text: str
    segment: bool = False
    """True if the text is to become a segment."""
    cache_control: Any = None
    """Anthropic's wish to cache what ends here. It has no effect, as all is cached."""

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
    id: Annotated[str, Field(min_length=1, max_length=_SEGMENT_CHARACTERS_MAX)]
    cache_control: Any = None
    is_segment: ClassVar[bool] = True
    shown: ClassVar[str] = ""


Part: TypeAlias = TextPart | CachedContentPart


class _AnyPart(Strict):
    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "cached_content"]


def _part(value: Any) -> Part:
    """Check a part by its type."""
    kind = _AnyPart.model_validate(value).type
    return CachedContentPart.model_validate(value) if kind == "cached_content" else TextPart.model_validate(value)


class ChatMessage(Strict):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[list[Annotated[Part, PlainValidator(_part)]], BeforeValidator(_content)]
    name: str | None = None
    cache_control: Any = None
    """As in a part."""

    @model_validator(mode="before")
    @classmethod
    def _empty_is_not_given(cls, given: Any) -> Any:
        """Drop empty lists: clients send back the message that they got, with lists of what was not in it."""
        return {name: value for name, value in given.items() if value != []} if isinstance(given, dict) else given

    def for_template(self, shown: Callable[[Part], str]) -> dict[str, str]:
        """Return the message as chat templates take it; they know no developers.

        Args:
            shown: Returns the text of a part.
        """
        role = "system" if self.role == "developer" else self.role
        named = {} if self.name is None else {"name": self.name}
        return {"role": role, "content": "\n".join(map(shown, self.content)), **named}


class _Generation(Strict):
    """The parameters of both kinds of requests."""

    model: str
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=CHOICES_MAX)] = 1
    stop: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=_STOP_CHARACTERS_MAX)]],
        Field(max_length=_STOPS_MAX),
        BeforeValidator(_listed),
    ] = []
    seed: Annotated[int, Field(ge=-_INT64_MAX, le=_INT64_MAX)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    cache_salt: Annotated[str, Field(min_length=1, max_length=_SALT_CHARACTERS_MAX)] | None = None
    """Word that goes into the names of the prompt's blocks: equal prompts with other salts share nothing."""

    @property
    def include_usage(self) -> bool:
        """True if a stream ends with a chunk of the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionRequest(_Generation):
    """`POST /v1/completions`."""

    prompt: Annotated[list[str | list[int]], PlainValidator(_prompts)]
    max_tokens: Annotated[int, Field(ge=1)] = 16
    echo: bool = False


class ChatRequest(_Generation):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], Field(min_length=1), BeforeValidator(_few_parts)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None


_R = TypeVar("_R", bound=Strict)


def parse(kind: type[_R], body: bytes) -> _R:
    """Parse a request from its JSON.

    Raises:
        ApiError: The request is wrong; the message names the parameter and what is allowed.
    """
    try:
        given = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(given, dict):
        raise ApiError("the body is not a JSON object", code="invalid_json")
    try:
        request = kind.model_validate(_supported(kind, given))
    except ValidationError as error:
        raise _told(error) from error
    if isinstance(request, _Generation) and request.stream_options is not None and not request.stream:
        raise ApiError("stream_options: allowed only with stream", param="stream_options")
    return request


def _supported(kind: type[Strict], given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that change the answer; refuse those that are not supported."""
    left = {}
    for name, value in given.items():
        if name in kind.model_fields:
            left[name] = value
        elif name not in _NO_EFFECT and value is not None and not _asks_nothing(name, value):
            raise ApiError(f"{name}: not supported by this server", param=name, code="unsupported_parameter")
    return left


def _asks_nothing(name: str, value: Any) -> bool:
    # False equals 0 in Python, but the API tells them apart.
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in _NEUTRAL.get(name, ()))


def _told(error: ValidationError) -> ApiError:
    """Return the first mistake. Excess and missing parameters come last, as they often follow from another mistake."""
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)
    first = min(mistakes, key=lambda mistake: {"extra_forbidden": 1, "missing": 2}.get(mistake["type"], 0))
    param = ""
    for part in first["loc"]:
        param += f"[{part}]" if isinstance(part, int) else f".{part}" if param else part
    words = {"missing": "is missing", "extra_forbidden": "not supported by this server"}
    message = words.get(first["type"], first["msg"].removeprefix("Value error, "))
    code = "unsupported_parameter" if first["type"] == "extra_forbidden" else None
    return ApiError(f"{param}: {message}", param=param, code=code)
