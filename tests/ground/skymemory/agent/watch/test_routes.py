"""What is served, to whom, and what is refused."""

import csv
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.pages import Serve, run
from support.waiting import wait_until_async

StartSky = Callable[..., LocalConstellation]


def test_without_a_constellation_it_says_why_and_what_to_do(serve: Serve) -> None:
    async def scenario() -> None:
        async with serve() as (client, sampler, _):
            await wait_until_async(lambda: has_frame(sampler))
            told = await (await client.get("/api/now")).json()
            assert (told["state"], told["sky"], told["frame"]) == ("none", None, None)
            assert told["cure"] == "Nothing is up; `skymem up` starts one."
            assert await (await client.get("/api/history")).json() == {"time_ms": []}
            assert await (await client.get("/api/frames")).json() == {"frames": []}
            assert await (await client.get("/api/history.csv")).text() == "time_utc,time_ms\r\n"

    run(scenario())


def has_frame(sampler: Any) -> bool:
    return "why" in json.loads(sampler.text()) or sampler.history is not None


def test_headers_keep_strangers_out_of_the_page(serve: Serve) -> None:
    async def scenario() -> None:
        async with serve() as (client, _, _):
            for path in ("/", "/api/now", "/api/history?from=x", "/main.js"):
                answer = await client.get(path)
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "Access-Control-Allow-Origin" not in answer.headers
            answer = await client.get("/api/now", headers={"Host": "rebound.example"})
            assert answer.status == 403
            assert "allowed are addresses such as 127.0.0.1" in await answer.text()
            answer = await client.get("/api/live", headers={"Origin": "http://evil.example"})
            assert answer.status == 403
            assert "allowed is the page of this agent" in await answer.text()

    run(scenario())


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("from=x", "from is 'x'; allowed are milliseconds of Unix time"),
        ("to=-1", "to is '-1'; allowed are milliseconds of Unix time"),
        ("step=1.5", "step is '1.5'; allowed are milliseconds of Unix time"),
        ("from=9007199254740992", "allowed are milliseconds of Unix time, whole numbers below 2^53"),
        ("from=" + "9" * 5000, "allowed are milliseconds of Unix time"),
        ("from=%D9%A1", "allowed are milliseconds of Unix time"),
        ("from=5&to=4", "from is 5, after to, 4; allowed is before"),
        ("form=5", "'form' is unknown; allowed are from, to and step"),
    ],
)
def test_queries_that_are_refused(serve: Serve, start_sky: StartSky, query: str, what: str) -> None:
    async def scenario() -> None:
        with SkyStore(start_sky().constellation) as store:
            async with serve(store) as (client, sampler, _):
                await wait_until_async(lambda: has_history(sampler))
                for path in ("/api/history", "/api/frames", "/api/history.csv"):
                    answer = await client.get(f"{path}?{query}")
                    assert answer.status == 400
                    assert what in (await answer.json())["error"]

    run(scenario())


def test_the_series_as_csv(serve: Serve, start_sky: StartSky) -> None:
    async def scenario() -> None:
        with SkyStore(start_sky().constellation) as store:
            async with serve(store) as (client, sampler, _):
                await wait_until_async(lambda: has_history(sampler))
                answer = await client.get("/api/history.csv")
                assert answer.headers["Content-Type"].startswith("text/csv")
                assert "skymemory.csv" in answer.headers["Content-Disposition"]
                rows = list(csv.DictReader((await answer.text()).splitlines()))
                told = await (await client.get("/api/history")).json()
                assert set(rows[0]) == {"time_utc", *told}
                first = rows[0]
                assert first["alive"] == "15"
                assert first["hit_ratio"] == ""  # nobody asked
                assert datetime.fromisoformat(first["time_utc"]).timestamp() * 1000 == pytest.approx(int(first["time_ms"]))

    run(scenario())


def has_history(sampler: Any) -> bool:
    return sampler.history is not None and sampler.history.span_ms is not None


def test_without_npm_it_says_so(serve: Serve, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(page=tmp_path) as (client, _, _):
            answer = await client.get("/")
            assert answer.status == 503
            assert "Install Node.js (18 or later) with npm" in await answer.text()
            assert (await client.get("/api/now")).status == 200

    run(scenario())


def test_only_the_pages_own_files_are_served(serve: Serve, tmp_path: Path) -> None:
    page = tmp_path / "page"
    (page / "grid").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (page / "index.html").write_text("<!doctype html>")
    (page / "grid" / "grid.js").write_text("export {};")
    (page / "package.json").write_text("{}")

    async def scenario() -> None:
        async with serve(page=page) as (client, _, _):
            answer = await client.get("/")
            assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
            answer = await client.get("/grid/grid.js")
            assert (answer.status, answer.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
            for path in ("/package.json", "/../secret.txt", "/grid/..%2f..%2fsecret.txt", "/%2e%2e/secret.txt", "/grid", "/x.js"):
                assert (await client.get(path)).status == 404
            again = await client.get("/grid/grid.js", headers={"If-None-Match": answer.headers["ETag"]})
            assert again.status == 304  # a page that did not change is not sent again

    run(scenario())
