"""The page in a real browser, before a real agent and a real constellation that follows a schedule."""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from skymemory.agent.client import AgentClient
from skymemory.agent.watch.routes import PAGE
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.replay import playing_now, upload
from skymemory.testbed.run_record import RunRecord
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.browser import chromium, missing, visit
from support.waiting import PATIENCE_S

HOUR_MS = 3_600_000
BLOCK = 60_000
SPEED = 60.0
"""the window moves every ten seconds"""
PAGE_BYTES_MAX = 1_000_000
CHECKS = (Path(__file__).parent / "accessible.js").read_text(encoding="utf-8")
MOVED = re.compile(r"handover: \d+ servers? moves?")
DRAWN = """(canvas, colour) => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) found += colour.every((part, of) => Math.abs(data[at + of] - part) < 12);
    return found;
}"""
"""pixels of a canvas that have a colour, nearly"""
expect.set_options(timeout=1000 * PATIENCE_S)


@dataclass
class Watched:
    """What the page shows, and where it is."""

    local: LocalConstellation
    agent: AgentProcess
    engine: AgentClient

    @property
    def url(self) -> str:
        return self.agent.addresses["http"]

    def use(self, blocks: int = 8) -> None:
        """Puts and gets, and one get that misses."""
        keys = [os.urandom(32) for _ in range(blocks)]
        for key in keys:
            lease = self.engine.lease(BLOCK, PATIENCE_S)
            assert lease is not None
            with lease:
                lease.view[:] = os.urandom(BLOCK)
                assert [one.status for one in self.engine.put([(key, lease)]).result(PATIENCE_S)] == ["done"]
        for key in [*keys, os.urandom(32)]:
            lease = self.engine.lease(BLOCK, PATIENCE_S)
            assert lease is not None
            with lease:
                self.engine.get([(key, lease)]).result(PATIENCE_S)


@pytest.fixture(scope="module", autouse=True)
def page_is_built() -> None:
    if not (PAGE / "index.html").is_file():
        missing("the package was built without npm: it has no page")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """5 x 9 satellites that follow half a day over Berlin, their agent, and an engine."""
    folder = tmp_path_factory.mktemp("agent")
    sky = Constellation().replace(
        constellation={"planes": 5, "slots": 9}, cache={"centre": [3, 5], "servers": 6, "uplink": "nearest"}
    )
    sky = sky.replace(network={"port": free_port(sky)})
    orbits = Walker(5, 9, 550.0, 86.4, True, 1)
    schedule = Schedule.compute(orbits, "walker star:5x9", Site(52.5, 13.4), 10.0, 1_795_000_000_000, 12 * HOUR_MS)
    schedule.save(source := folder / "berlin.csv")
    with LocalConstellation(sky) as local:
        tell_up(folder, local)
        playing = playing_now(sky, schedule, 0, 12 * HOUR_MS, SPEED, None)
        RunRecord(folder).sky(sky).playing.save(playing, source)
        with ControlPlane(sky) as control:
            upload(control, playing)
        with AgentProcess(folder) as agent:
            agent.wait_ready()
            with closing(agent.client(block_bytes=BLOCK)) as engine:
                assert engine.wait_connected(PATIENCE_S)
                yield Watched(local, agent, engine)


def cells(page: Page) -> list[str]:
    """What is said of each satellite in one frame."""
    found = page.eval_on_selector_all("[role=gridcell]", "all => all.map(one => one.getAttribute('aria-label') ?? '')")
    return [str(one) for one in found]


def until(page: Page, true: Callable[[], object]) -> None:
    """Wait for something that follows from frames to come."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s
        page.wait_for_timeout(50)


def held(page: Page) -> int:
    """Chunks on all satellites, as the grid has them."""
    return sum(int(match[1]) for label in cells(page) if (match := re.search(r"; (\d+) chunks", label)))


def test_the_grid_fills_and_the_past_comes_back(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("status")).to_have_text("live")
        expect(page.get_by_role("gridcell")).to_have_count(45)
        assert held(page) == 0
        watched.use()
        until(page, lambda: held(page) >= 8 * BLOCK / 6000)
        assert sum("; server " in label for label in cells(page)) == 6
        assert sum("centre of the window" in label for label in cells(page)) == 1
        expect(page.locator("#headline")).to_contain_text(re.compile(r"hit rate\d"))
        expect(page.locator("#headline")).to_contain_text(re.compile(r"typical get\d[\d.]* (µs|ms|s)"))
        expect(page.locator(".plot .line").first).to_have_attribute("d", re.compile("^M"))

        # Before anything was put, and back
        slider = page.get_by_role("slider", name="Time")
        slider.focus()
        page.keyboard.press("Home")
        expect(page.get_by_role("status")).to_have_text("replay")
        until(page, lambda: held(page) == 0)
        assert "ago" in (slider.get_attribute("aria-valuetext") or "")
        before = slider.input_value()
        page.keyboard.press("ArrowRight")
        until(page, lambda: int(slider.input_value()) == int(before) + 2000)
        page.get_by_role("button", name="Live").click()
        expect(page.get_by_role("status")).to_have_text("live")
        until(page, lambda: held(page) > 0)

        # And by itself: played from its beginning it comes to what was put, and to now
        slider.focus()
        page.keyboard.press("Home")
        until(page, lambda: held(page) == 0)
        page.get_by_label("Speed of replay").select_option("60×")
        page.get_by_role("button", name="Play").click()
        until(page, lambda: held(page) > 0)
        expect(page.get_by_role("status")).to_have_text("live")


def test_a_handover_is_drawn_on_grid_and_globe(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        watched.use()
        words = r"position \d+ of \d+ of the schedule · replayed 60× as fast · in \d+:\d\d the window moves to \[\d, \d\]"
        expect(page.locator("#schedule")).to_contain_text(re.compile(words))
        expect(page.locator("#grid-note")).to_have_text(MOVED)
        assert page.locator(".arcs .arc").count() >= 1
        expect(page.locator("#globe-note")).to_have_text(re.compile(r"2026-11-18 \d\d:\d\d:\d\d UTC"))
        canvas = page.locator("#globe canvas")
        arc = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--arc')")
        red, green, blue = (int(arc.strip()[at : at + 2], 16) for at in (1, 3, 5))
        until(page, lambda: page.locator(".arcs .arc").count() and canvas.evaluate(DRAWN, [red, green, blue]) > 20)


def test_bars_of_handovers_end_where_these_end_after_a_load(browser: Browser, watched: Watched) -> None:
    """The agent's own answer, with a handover in every third frame."""

    def answer(route: Route) -> None:
        told = route.fetch()
        data = told.json()
        data["moving"] = [int(at % 3 == 1) for at in range(len(data["moving"]))]
        route.fulfill(response=told, json=data)

    with visit(browser, watched.url) as seen:
        expect(seen.page.get_by_role("status")).to_have_text("live")
        history = f"{watched.url}/api/history?from=0&to={10**14}"
        until(seen.page, lambda: len(seen.page.request.get(history).json()["moving"]) > 6)
        seen.page.route("**/api/history?*", answer)
        seen.page.reload()
        bars = seen.page.locator(".axis .moved")
        expect(bars.nth(1)).to_be_attached()
        ends = bars.evaluate_all("all => all.map(({ x, width }) => [x.baseVal.value, x.baseVal.value + width.baseVal.value])")
        assert all(end < start for (_, end), (start, _) in pairwise(ends)), ends


def test_a_lost_satellite_is_marked(browser: Browser, watched: Watched) -> None:
    lost = Satellite(5, 1)
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)
        watched.local.kill(lost)
        try:
            cell = page.get_by_role("gridcell", name="Satellite 5, 1; lost: does not answer")
            expect(cell).to_have_count(1)
            expect(cell.locator(".cross")).to_be_visible()  # not by colour alone
            expect(page.locator("#headline")).to_contain_text("44 of 45lost: [5, 1]")
        finally:
            watched.local.restart(lost)
        expect(page.locator("#headline")).to_contain_text("45 of 45")
        expect(page.locator(".is-lost")).to_have_count(0)


def test_lost_servers_are_named_above_the_numbers(
    browser: Browser, tmp_path: Path, start_sky: Callable[..., LocalConstellation]
) -> None:
    local, lost = start_sky(), [Satellite(2, 3), Satellite(2, 4)]
    tell_up(tmp_path, local)
    with AgentProcess(tmp_path) as agent, visit(browser, agent.addresses["http"]) as seen:
        notice = seen.page.locator("#notice")
        expect(seen.page.get_by_role("status")).to_have_text("live")
        expect(notice).to_be_hidden()
        for place in lost:
            local.kill(place)
        expect(notice).to_contain_text("DEGRADED: 2 of 9 servers are lost: [2, 3], [2, 4].")
        expect(notice).to_contain_text("All blocks can be fetched; no more may be lost.")
        for place in lost:
            local.restart(place)
        expect(notice).to_be_hidden()


def test_keys_go_over_the_torus_and_turn_the_globe(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)

        def focused() -> str:
            return str(page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"))

        def tab_to_the_centre() -> bool:
            """From the top of the page; False: it has moved on meanwhile."""
            page.mouse.click(1, 1)
            for _ in range(8):
                page.keyboard.press("Tab")
                if focused().startswith("Satellite"):
                    break
            return "centre of the window" in focused()

        until(page, tab_to_the_centre)
        page.keyboard.press("Home")
        plane = int(re.match(r"Satellite (\d), 1;", focused())[1])  # type: ignore[index]
        page.keyboard.press("ArrowLeft")
        assert focused().startswith(f"Satellite {plane}, 9;")
        for _ in range(5):
            page.keyboard.press("ArrowDown")
        assert focused().startswith(f"Satellite {plane}, 9;")
        page.keyboard.press("ArrowUp")
        expect(page.locator("#details-place")).to_have_text(f"plane {(plane - 2) % 5 + 1}, slot 9")
        assert page.evaluate("getComputedStyle(document.activeElement.querySelector('.halo')).visibility") == "visible"
        page.keyboard.press("Escape")
        expect(page.locator("#details-place")).to_contain_text("centre of the window")

        canvas = page.locator("#globe canvas")
        canvas.focus()
        assert focused().startswith("Globe with the site at 52.5° N, 13.4° E")
        picture = "canvas => canvas.toDataURL()"
        before = canvas.evaluate(picture)
        page.keyboard.press("ArrowLeft")
        assert canvas.evaluate(picture) != before


def test_cold_keys_are_in_the_hit_rate_and_not_in_the_delivery(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        watched.use()
        found = watched.engine.find([os.urandom(32) for _ in range(40)]).result(PATIENCE_S)
        assert found.blocks == 0
        tile = page.locator("#headline > div")
        words = r"^hit rate\d[\d.]* %\d+ of \d+ in all(; \d+ not fetched)?$"
        expect(tile.filter(has_text="hit rate")).to_have_text(re.compile(words))

        def share(name: str) -> float:
            match = re.match(rf"{name}([\d.]+) %", tile.filter(has_text=name).inner_text().replace("\n", ""))
            return float(match[1]) if match else 0.0

        until(page, lambda: 0 < share("hit rate") < 60)  # 8 of 49 came
        # Those that were found came, but for what a handover has lost meanwhile
        until(page, lambda: share("delivery") > share("hit rate"))
        expect(tile.filter(has_text="tokens saved")).to_have_text(re.compile(r"^tokens saved[1-9][\d.]*k?so far$"))


def test_it_says_how_many_tokens_of_each_model_the_sky_holds(browser: Browser, watched: Watched) -> None:
    odd = "<img src=x onerror=document.title='run'>"
    with visit(browser, watched.url) as seen, closing(watched.agent.client(model=odd, block_bytes=BLOCK)) as other:
        page = seen.page
        assert other.wait_connected(PATIENCE_S)
        line = page.locator("#models")
        expect(line).to_have_text(re.compile(r"holds up to [\d,]+ tokens of model \(float32\)"))
        expect(line.locator("span").first).to_have_text(
            re.compile(rf"^holds up to [\d,]+ tokens of {re.escape(odd)} \(float32\)$")
        )
        assert line.locator("img").count() == 0
        with ExitStack() as engines:
            for number in range(4):
                engine = engines.enter_context(closing(watched.agent.client(model=f"{number}" * 300, block_bytes=BLOCK)))
                assert engine.wait_connected(PATIENCE_S)
            expect(line.locator("span").last).to_have_text("and 2 more")
            expect(line.locator("span").first).to_contain_text("3" * 100 + "…")
            expect(line.locator("span")).to_have_count(5)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_says_whether_links_are_protected(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        expect(seen.page.locator("#security")).to_have_text("not secured: no keyring")


def test_the_last_get_tells_its_way(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        watched.use(2)
        expect(page.locator("#get-note")).to_have_text(re.compile(r"blocks?, .*B in [\d.]+ (µs|ms|s), \d+:\d\d ago"))
        rows = page.locator(".get-table tbody tr")
        expect(rows.first).to_be_visible()
        assert re.match(r"\[\d, \d\]\n?\s*(straight|\[\d, \d\], \d hops?)", rows.first.inner_text())
        rows.first.hover()
        name = rows.first.locator("th").inner_text()
        plane, slot = re.findall(r"\d+", name)
        expect(page.locator("#details-place")).to_have_text(f"plane {plane}, slot {slot}")


def test_events_are_logged_and_lead_to_their_moment(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        log = page.locator(".events-list li")
        handover = log.filter(has_text=re.compile(r"handoverthe window moves to \[\d, \d\]; \d servers? moves?"))
        expect(handover.first).to_be_visible()
        handover.first.get_by_role("button").click()
        expect(page.get_by_role("status")).to_have_text("replay")
        page.get_by_role("button", name="Live").click()


def test_servers_count_from_one(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)
        told = {int(match[1]) for label in cells(page) if (match := re.search(r"; server (\d+)", label))}
        assert told == {1, 2, 3, 4, 5, 6}
        shown = {int(text) for text in page.locator(".cell .server").all_text_contents() if text.strip()}
        assert shown == told


def test_a_link_reproduces_the_view(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)
        until(page, lambda: page.locator(".events-list li").count())  # there is a past
        page.get_by_role("gridcell").nth(10).click()
        page.mouse.move(1, 1)
        expect(page.locator("#details-place")).to_have_text("plane 2, slot 2, pinned")
        page.get_by_role("button", name="Zoom in").click()
        page.get_by_role("button", name="Names").click()
        page.get_by_label("Time shown", exact=True).select_option("1 h")
        slider = page.get_by_role("slider", name="Time")
        slider.focus()
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("status")).to_have_text("replay")
        until(page, lambda: all(part in page.url for part in ("at=", "span=1h", "sat=2.2", "globe=", "names=1")))
        page.wait_for_timeout(400)
        link = page.url
    with visit(browser, link) as seen:
        page = seen.page
        expect(page.get_by_role("status")).to_have_text("replay")
        expect(page.locator("#details-place")).to_have_text("plane 2, slot 2, pinned")
        expect(page.get_by_role("button", name="Names")).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_label("Time shown", exact=True)).to_have_value("1")
        until(page, lambda: "at=" in page.url and "globe=" in page.url)
        assert dict(part.split("=") for part in page.url.partition("#")[2].split("&")) == dict(
            part.split("=") for part in link.partition("#")[2].split("&")
        )


@pytest.mark.parametrize("link", ["#at=x&sat=99.99&globe=a,b,c&span=never", "#sat=0.0&at=-1&globe=1e9,1e9,1e9", "#=&&%%"])
def test_a_link_that_makes_no_sense_shows_the_page_all_the_same(browser: Browser, watched: Watched, link: str) -> None:
    with visit(browser, watched.url + link) as seen:
        expect(seen.page.get_by_role("status")).to_have_text("live")
        expect(seen.page.locator("#details-place")).to_contain_text("centre of the window")


def test_the_globe_zooms_and_shows_names_and_tracks(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url, reduced_motion="reduce") as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)
        canvas = page.locator("#globe canvas")
        track = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--track')").strip()
        colour = [int(track[at : at + 2], 16) for at in (1, 3, 5)]
        until(page, lambda: canvas.evaluate(DRAWN, colour) > 20)
        page.get_by_role("button", name="Track").click()
        until(page, lambda: canvas.evaluate(DRAWN, colour) < 20)
        picture = "canvas => canvas.toDataURL()"
        for press in ("Names", "Zoom in", "Zoom out", "Site"):
            before = canvas.evaluate(picture)
            page.get_by_role("button", name=press).click()
            if press in ("Names", "Zoom in"):
                assert canvas.evaluate(picture) != before
        canvas.focus()
        page.keyboard.press("+")
        until(page, lambda: "globe=" in page.url)
        page.keyboard.press("Home")
        until(page, lambda: "globe=" not in page.url)


def test_the_series_come_as_a_table(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("status")).to_have_text("live")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        path = download.value.path()
        assert download.value.suggested_filename == "skymemory.csv"
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("time_utc,time_ms,hit_ratio,delivery_ratio,")
        assert len(lines) > 1
        assert all(line.count(",") == lines[0].count(",") for line in lines)


def test_a_pointer_shows_details_and_drags(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        page.get_by_role("gridcell").nth(10).hover()
        expect(page.locator("#details-place")).to_have_text("plane 2, slot 2")
        expect(page.locator(".links-table tbody tr")).to_have_count(4)
        page.locator(".plot svg").nth(1).click(position={"x": 200, "y": 20})
        expect(page.get_by_role("status")).to_have_text("replay")
        page.get_by_role("button", name="Live").click()
        expect(page.get_by_role("status")).to_have_text("live")


def test_the_table_says_the_same(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url) as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)
        page.get_by_text("All satellites as a table").click()
        expect(page.locator(".all-table tbody tr")).to_have_count(45)
        assert page.locator(".all-table tbody tr").first.inner_text().startswith("[1, 1]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_it_is_accessible_and_fits(browser: Browser, watched: Watched, scheme: str, width: int) -> None:
    size = {"width": width, "height": 900}
    with visit(browser, watched.url, color_scheme=scheme, viewport=size, reduced_motion="reduce") as seen:
        page = seen.page
        expect(page.get_by_role("gridcell")).to_have_count(45)
        page.get_by_text("All satellites as a table").click()
        until(page, lambda: held(page) > 0 or watched.use())
        assert page.evaluate(CHECKS) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(9, 13, 20)"
        assert dark == (scheme == "dark")


def test_the_theme_is_chosen_and_kept(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url, color_scheme="light") as seen:
        page = seen.page
        ground = "getComputedStyle(document.body).backgroundColor"
        button = page.get_by_role("button", name=re.compile("^Theme"))
        expect(button).to_have_text("Theme: system")
        button.click()
        button.click()
        expect(button).to_have_text("Theme: dark")
        assert page.evaluate(ground) == "rgb(9, 13, 20)"
        # What is under way when a page is loaded anew fails
        expect(page.get_by_role("status")).to_have_text("live")
        until(page, lambda: page.evaluate("performance.getEntriesByType('resource').some(one => one.name.includes('/history'))"))
        page.reload()
        expect(button).to_have_text("Theme: dark")
        assert page.evaluate(ground) == "rgb(9, 13, 20)"


def test_nothing_moves_for_who_does_not_want_it(browser: Browser, watched: Watched) -> None:
    with visit(browser, watched.url, reduced_motion="reduce") as seen:
        page = seen.page
        watched.use(2)
        expect(page.locator("#grid-note")).to_have_text(MOVED)
        assert page.evaluate("document.getAnimations().length") == 0


def test_without_a_constellation_and_without_an_agent(
    browser: Browser, tmp_path: Path, start_sky: Callable[..., LocalConstellation]
) -> None:
    agent = AgentProcess(tmp_path)
    url = agent.addresses["http"]
    with visit(browser, url, faults_allowed=True) as seen:
        page = seen.page
        expect(page.get_by_role("status")).to_have_text("no constellation")
        expect(page.locator("#notice")).to_contain_text("skymem up starts one")
        assert seen.faults == []
        agent.stop()
        expect(page.get_by_role("status")).to_have_text(re.compile("no agent; trying again in"))
        with AgentProcess(tmp_path, "--http-port", url.rpartition(":")[2]):
            expect(page.get_by_role("status")).to_have_text("no constellation")
            expect(page.get_by_role("gridcell")).to_have_count(0)
            tell_up(tmp_path, start_sky())
            expect(page.get_by_role("gridcell")).to_have_count(15)
            expect(page.get_by_role("gridcell").first).to_be_visible()
            expect(page.get_by_role("status")).to_have_text("live")
            RunRecord(tmp_path).clear()
            expect(page.get_by_role("status")).to_have_text("no constellation")
    assert all("ERR_CONNECTION_REFUSED" in fault for fault in seen.faults)


def test_the_page_is_small(page_is_built: None) -> None:
    total = sum(file.stat().st_size for file in PAGE.rglob("*") if file.is_file())
    assert 0 < total < PAGE_BYTES_MAX, f"{total:,} bytes"
