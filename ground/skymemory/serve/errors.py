"""Errors as clients of OpenAI's API know them."""

from __future__ import annotations

from typing import Any, Final

_RETRY_ENDING_S: Final = 5


class ApiError(Exception):
    """A request that is refused or failed: one object `error`, and an HTTP status."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def busy(message: str, code: str, retry_after_s: int, status: int) -> ApiError:
    """Return the error of a server that cannot take the request now; clients ask again after `retry_after_s` seconds."""
    headers = {"Retry-After": str(retry_after_s)}
    return ApiError(message, status=status, kind="server_busy", code=code, headers=headers)


def ending() -> ApiError:
    """Return the error of a server that is about to end."""
    return busy("the server is about to end", "shutting_down", _RETRY_ENDING_S, 503)


def failed() -> ApiError:
    """Return the error of a failure that is not the client's fault; the log says more."""
    return ApiError("the server failed to answer; its log says why", status=500, kind="server_error", code="internal_error")
