"""A real browser for tests of the page: Debian's Chromium, headless, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, sync_playwright

FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"]
"""Flags for containers, and against anything that Chromium fetches of its own."""
CHANGED = "net::ERR_NETWORK_CHANGED"
ABORTED = "net::ERR_ABORTED"


@dataclass
class Visit:
    """An open page, and its offences."""

    page: Page
    faults: list[str] = field(default_factory=list)
    """Errors and warnings of the console, exceptions, failed requests."""
    hosts: set[str] = field(default_factory=set)
    """Hosts that were asked for anything."""
    pending: set[str] = field(default_factory=set)
    """Requests without an answer yet."""

    network_changed: bool = False
    """True if somebody on this machine has added or removed a network, as Docker does. Chromium then ends every request, those to
    loopback as well, and a user would load the page again."""

    loaded_again: bool = False

    def failed(self, request: Request) -> None:
        """Note a failed request of the page."""
        if request.failure == CHANGED:
            self.network_changed = self.loaded_again = True
        elif request.failure == ABORTED and self.loaded_again:  # it was on its way when the page was loaded again
            pass
        else:
            self.faults.append(f"{request.url}: {request.failure}")

    def said(self, message: ConsoleMessage) -> None:
        """Note a line of the console."""
        if message.type in ("error", "warning") and CHANGED not in message.text:
            self.faults.append(message.text)

    def is_clean(self) -> None:
        """Assert that there was no fault, and that nothing left this machine."""
        assert self.faults == []
        assert self.hosts == {"127.0.0.1"}


def missing(what: str) -> None:
    """Skip a test because a program is missing; where CI is set that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        missing("no chromium: the page is not looked at")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visit(browser: Browser, url: str, *, faults_allowed: bool = False, **settings: Any) -> Iterator[Visit]:
    """Open a page in a profile of its own; at the end it must be clean.

    Args:
        settings: Settings of the profile: `viewport`, `color_scheme`, `reduced_motion`.
        faults_allowed: True for a page whose server goes away.
    """
    context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
    context.set_default_timeout(60_000)
    page = context.new_page()
    seen = Visit(page)
    page.on("console", seen.said)
    page.on("pageerror", lambda error: seen.faults.append(str(error)))
    page.on("requestfailed", seen.failed)
    page.on("request", lambda request: seen.hosts.add(urlsplit(request.url).hostname or ""))
    page.on("request", lambda request: seen.pending.add(request.url))
    page.on("requestfinished", lambda request: seen.pending.discard(request.url))
    page.on("websocket", lambda socket: seen.hosts.add(urlsplit(socket.url).hostname or ""))
    try:
        while True:
            seen.network_changed = False
            try:
                page.goto(url)
            except Error as error:
                if CHANGED not in error.message:
                    raise
            if not seen.network_changed:
                break
        yield seen
        if not faults_allowed:
            seen.is_clean()
    except BaseException:
        print(f"{url}: faults {seen.faults}; no answer to {seen.pending}")
        raise
    finally:
        context.close()
