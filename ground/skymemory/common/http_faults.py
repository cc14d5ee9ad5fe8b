"""Faults of HTTP clients in the log of aiohttp's connections."""

import logging

from aiohttp.http import HttpProcessingError


def is_ours(record: logging.LogRecord) -> bool:
    """Return False for a fault of the client: it is told, and could fill the log by it. For `logging.Logger.addFilter`."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)
