"""`PARAMETERS`: the parameters of OpenAI's, vLLM's and llama.cpp's APIs, and what this server makes of each.

A parameter is served, or does not change answers, or is refused unless its value asks for nothing, as `null` always does. What is
not in the table is unknown: it is left out, and the client gets a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

UNKNOWN_NAMES_MAX: Final = 64
"""Most names of unknown parameters that are kept."""


class Place(Enum):
    """Object of a request that has parameters."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    MESSAGE = "a message"
    PART = "a part of a message"
    STREAM_OPTIONS = "stream_options"


class Use(Enum):
    """Treatment of a parameter."""

    SERVED = "served"
    IGNORED = "ignored, as it does not change the answer"
    REFUSED = "refused, unless its value asks for nothing"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the server knows."""

    name: str
    places: tuple[Place, ...]
    use: Use
    neutral: tuple[Any, ...] = ()
    """Values beside `null` that ask for nothing."""
    neutral_beside: tuple[str, Any] | None = None
    """Another parameter, with the value beside which this one asks for nothing."""

    def asks_nothing(self, value: Any, beside: Mapping[str, Any]) -> bool:
        """Return True if a value has no effect.

        Args:
            value: The value.
            beside: All parameters of the object.
        """
        if value is None:
            return True
        if self.neutral_beside is not None:
            name, other = self.neutral_beside
            if name in beside and _equal(beside[name], other):
                return True
        return any(_equal(value, one) for one in self.neutral)


_CHAT: Final = (Place.CHAT,)
_COMPLETIONS: Final = (Place.COMPLETIONS,)
_BOTH: Final = (Place.CHAT, Place.COMPLETIONS)
_MESSAGE: Final = (Place.MESSAGE,)
_PART: Final = (Place.PART,)
_STREAM_OPTIONS: Final = (Place.STREAM_OPTIONS,)


def _served(places: tuple[Place, ...], *names: str) -> list[Parameter]:
    return [Parameter(name, places, Use.SERVED) for name in names]


def _ignored(places: tuple[Place, ...], *names: str) -> list[Parameter]:
    return [Parameter(name, places, Use.IGNORED) for name in names]


def _refused(places: tuple[Place, ...], name: str, *neutral: Any, beside: tuple[str, Any] | None = None) -> Parameter:
    return Parameter(name, places, Use.REFUSED, neutral, beside)


PARAMETERS: Final[tuple[Parameter, ...]] = (
    # ---- served ----
    *_served(_BOTH, "model", "max_tokens", "temperature", "top_p", "n", "stop", "seed", "stream", "stream_options", "cache_salt"),
    *_served(_CHAT, "messages", "max_completion_tokens"),
    *_served(_COMPLETIONS, "prompt", "echo"),
    *_served(_STREAM_OPTIONS, "include_usage"),
    *_served(_MESSAGE, "role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning"),
    *_served(_PART, "type", "text", "segment"),
    # ---- what does not change the answer ----
    *_ignored(
        _BOTH, "user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"
    ),
    *_ignored(_BOTH, "cache_control", "parallel_tool_calls", "prediction", "request_id", "session_id"),
    *_ignored(_BOTH, "spaces_between_special_tokens", "return_mm_kwargs", "media_io_kwargs"),
    *_ignored(_BOTH, "cache_prompt", "n_keep", "n_cache_reuse", "id_slot", "min_keep"),
    # These say how a sampler works that another parameter switches on, and that one is refused.
    *_ignored(_BOTH, "repeat_last_n", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"),
    *_ignored(_BOTH, "dynatemp_exponent", "xtc_threshold", "mirostat_tau", "mirostat_eta", "truncation_side", "parse_tool_calls"),
    *_ignored(_BOTH, "guided_decoding_backend", "guided_whitespace_pattern"),
    *_ignored(_MESSAGE, "cache_control", "annotations"),
    *_ignored(_PART, "cache_control", "annotations"),
    # ---- OpenAI's that are refused ----
    _refused(_BOTH, "frequency_penalty", 0),
    _refused(_BOTH, "presence_penalty", 0),
    _refused(_BOTH, "logit_bias", {}, []),
    _refused(_BOTH, "logprobs", False),
    _refused(_BOTH, "top_logprobs", 0),
    _refused(_BOTH, "best_of", 1),
    _refused(_COMPLETIONS, "suffix", ""),
    _refused(_BOTH, "response_format", {"type": "text"}),
    _refused(_BOTH, "tools", [], beside=("tool_choice", "none")),
    _refused(_BOTH, "tool_choice", "none", "auto"),
    _refused(_BOTH, "functions", [], beside=("function_call", "none")),
    _refused(_BOTH, "function_call", "none", "auto"),
    _refused(_BOTH, "modalities", ["text"]),
    _refused(_BOTH, "audio"),
    _refused(_BOTH, "moderation"),
    _refused(_BOTH, "reasoning_effort", "none"),
    _refused(_BOTH, "verbosity", "medium"),
    _refused(_BOTH, "service_tier", "auto", "default"),
    _refused(_BOTH, "store", False),
    _refused(_BOTH, "web_search_options"),
    _refused(_STREAM_OPTIONS, "include_obfuscation", False),
    # ---- vLLM's that are refused ----
    _refused(_BOTH, "top_k", -1, 0),
    _refused(_BOTH, "min_p", 0),
    _refused(_BOTH, "repetition_penalty", 1),
    _refused(_BOTH, "length_penalty", 1),
    _refused(_BOTH, "use_beam_search", False),
    _refused(_BOTH, "stop_token_ids", []),
    _refused(_BOTH, "include_stop_str_in_output", False),
    _refused(_BOTH, "ignore_eos", False),
    _refused(_BOTH, "min_tokens", 0),
    _refused(_BOTH, "skip_special_tokens", True),
    _refused(_BOTH, "detokenize", True),
    _refused(_BOTH, "truncate_prompt_tokens"),
    _refused(_BOTH, "prompt_logprobs"),
    _refused(_BOTH, "logprob_token_ids", []),
    _refused(_BOTH, "allowed_token_ids", []),
    _refused(_BOTH, "bad_words", []),
    _refused(_BOTH, "logits_processors", []),
    _refused(_BOTH, "watermarking", False),
    _refused(_CHAT, "echo", False),
    _refused(_CHAT, "add_special_tokens", False),
    _refused(_COMPLETIONS, "add_special_tokens", True),
    _refused(_CHAT, "add_generation_prompt", True),
    _refused(_CHAT, "continue_final_message", False),
    _refused(_CHAT, "documents", []),
    _refused(_CHAT, "chat_template"),
    _refused(_CHAT, "chat_template_kwargs", {}),
    _refused(_CHAT, "mm_processor_kwargs", {}),
    _refused(_CHAT, "include_reasoning", True),
    _refused(_COMPLETIONS, "prompt_embeds"),
    _refused(_BOTH, "structured_outputs", {}),
    _refused(_BOTH, "structural_tag", ""),
    _refused(_BOTH, "guided_json", "", {}),
    _refused(_BOTH, "guided_regex", ""),
    _refused(_BOTH, "guided_choice", []),
    _refused(_BOTH, "guided_grammar", ""),
    _refused(_BOTH, "priority", 0),
    _refused(_BOTH, "return_tokens_as_token_ids", False),
    _refused(_BOTH, "return_token_ids", False),
    _refused(_BOTH, "return_token_offsets", False),
    _refused(_CHAT, "return_prompt_text", False),
    _refused(_BOTH, "routed_experts_prompt_start", 0),
    _refused(_BOTH, "kv_transfer_params", {}),
    _refused(_BOTH, "ec_transfer_params", {}),
    _refused(_BOTH, "vllm_xargs", {}),
    _refused(_BOTH, "repetition_detection", {}),
    _refused(_BOTH, "thinking_token_budget", -1),
    _refused(_BOTH, "stream_interval", 1),
    _refused(_STREAM_OPTIONS, "continuous_usage_stats", False),
    # ---- llama.cpp's that are refused ----
    _refused(_BOTH, "n_predict", -1),
    _refused(_BOTH, "n_indent", 0),
    _refused(_BOTH, "n_probs", 0),
    _refused(_BOTH, "post_sampling_probs", False),
    _refused(_BOTH, "typical_p", 1),
    _refused(_BOTH, "top_n_sigma", -1),
    _refused(_BOTH, "repeat_penalty", 1),
    _refused(_BOTH, "dynatemp_range", 0),
    _refused(_BOTH, "dry_multiplier", 0),
    _refused(_BOTH, "xtc_probability", 0),
    _refused(_BOTH, "mirostat", 0),
    _refused(_BOTH, "grammar", ""),
    _refused(_BOTH, "json_schema", {}),
    _refused(_BOTH, "samplers", []),
    _refused(_BOTH, "t_max_predict_ms", 0, -1),
    _refused(_BOTH, "return_tokens", False),
    _refused(_BOTH, "return_progress", False),
    _refused(_BOTH, "timings_per_token", False),
    _refused(_BOTH, "response_fields", []),
    _refused(_BOTH, "lora", []),
    _refused(_CHAT, "reasoning_format", "none", "auto"),
    _refused(_CHAT, "thinking_forced_open", False),
    # ---- of messages ----
    _refused(_MESSAGE, "refusal", ""),
    _refused(_MESSAGE, "audio"),
    _refused(_MESSAGE, "function_call"),
    _refused(_MESSAGE, "prefix", False),
    _refused(_MESSAGE, "partial", False),
)
"""The table. `serve/requests.py` has the types of what is served, and docs/serve.md shows it (`tools/gen_parameters.py`)."""

_OF_PLACE: Final = {(place, one.name): one for one in PARAMETERS for place in one.places}
_SIBLINGS: Final = {Place.CHAT: Place.COMPLETIONS, Place.COMPLETIONS: Place.CHAT}


def parameter(place: Place, name: str) -> Parameter | None:
    """Return a parameter of a place; None: it is unknown.

    One of the other endpoint is known as well. What is served there is refused here.
    """
    if (found := _OF_PLACE.get((place, name))) is not None:
        return found
    if place not in _SIBLINGS or (other := _OF_PLACE.get((_SIBLINGS[place], name))) is None:
        return None
    return Parameter(name, (place,), Use.REFUSED) if other.use is Use.SERVED else other


def why_refused(place: Place, name: str) -> str:
    """Return why a parameter is refused, and which values are not."""
    sibling = _SIBLINGS.get(place)
    if sibling is not None and (place, name) not in _OF_PLACE:
        other = _OF_PLACE.get((sibling, name))
        if other is not None and other.use is Use.SERVED:
            return f"not supported here; it belongs to {sibling.value}"
    known = parameter(place, name)
    if known is None or not known.neutral:
        return "not supported by this server"
    words = f"not supported by this server, except {' and '.join(map(in_json, known.neutral))}"
    if known.neutral_beside is not None:
        name, value = known.neutral_beside
        words += f", and beside {in_json(name)}: {in_json(value)}"
    return words


class UnknownNames:
    """Names of a request's unknown parameters: the first ones, as a warning has few. The others are only counted."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.others = 0
        """Number of the others. Those that come several times count each time."""

    @property
    def count(self) -> int:
        """Number of all."""
        return len(self.names) + self.others

    def add(self, name: str) -> None:
        """Take a name, which may have come before."""
        if name not in self.names:
            if len(self.names) < UNKNOWN_NAMES_MAX:
                self.names.add(name)
            else:
                self.others += 1


def sort_out(place: Place, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters of an object that are served or refuse the request, and the names of unknown ones.

    Args:
        place: The object.
        given: Its parameters.
    """
    left = {}
    unknown = []
    for name, value in given.items():
        known = parameter(place, name)
        if known is None:
            unknown.append(name)
        elif known.use is Use.SERVED:
            if value is not None:
                left[name] = value
        elif known.use is Use.REFUSED and not known.asks_nothing(value, given):
            left[name] = value
    return left, unknown


def in_json(value: Any) -> str:
    """Return a neutral value as JSON."""
    return msgspec.json.encode(value).decode()


def _equal(one: Any, other: Any) -> bool:
    # False equals 0 in Python, but the API tells them apart.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
