"""Log of a long-running command on standard error: each line has a time and a level, as text or as JSON."""

import json
import logging
import sys
import time
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
"""Levels that a person can choose, the most talkative first."""
_QUIET: Final = ("asyncio", "aiohttp", "httpcore", "httpx", "urllib3", "filelock", "matplotlib")
"""Loggers of libraries that say much at the level `debug`, and nothing about the sky."""


class _Utc(logging.Formatter):
    """Times in UTC with milliseconds, as ISO 8601 has them."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # the name is logging's
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class _Json(_Utc):
    """One JSON object for each record: `time`, `level`, `logger`, `message`, and `trace` of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)


def start_log(level: str, *, as_json: bool) -> None:
    """Send what all modules log to standard error.

    Args:
        level: Least level that is shown, one of `LEVELS`.
        as_json: True for one JSON object in each line.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if as_json else _Utc("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))
