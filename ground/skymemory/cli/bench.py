"""`skymem bench`: measures gateway, idle, links, parity, peers, pic, prefix, spread, stragglers and ttft."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from skymemory.cli.common import (
    BadInput,
    Failure,
    constellation_option,
    json_option,
    load_constellation,
    print_json,
    print_table,
    progress_bar,
    progress_lines,
)
from skymemory.common.extras import how_to_install


@click.group()
def bench() -> None:
    """Measure. Each bench but `ttft` starts a constellation of its own, beside one that may be up, `stragglers` in the twin."""


@bench.command()
@constellation_option
@click.option("--scale", default=1.0, show_default=True, type=click.FloatRange(0.01, 100), help="Factor on all request counts.")
@json_option
def gateway(constellation_path: Path | None, scale: float, as_json: bool) -> None:
    """Run redis-benchmark on the agent's Redis gateway, beside redis-server."""
    from skymemory.bench.gateway import gateway_table, run_gateway_bench

    with progress_bar("asking") as progress:
        report = run_gateway_bench(load_constellation(constellation_path), scale=scale, progress=progress)
    if as_json:
        print_json(report)
    else:
        print_table(gateway_table(report))


@bench.command()
@constellation_option
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.5, 3600), help="Seconds to measure.")
@json_option
def idle(constellation_path: Path | None, seconds: float, as_json: bool) -> None:
    """Measure processor time and memory of a constellation that does nothing."""
    from skymemory.bench.idle import run_idle_bench

    with progress_bar("idling (per mille)") as progress:
        report = run_idle_bench(load_constellation(constellation_path), seconds, progress)
    if as_json:
        print_json(report)
        return
    table = Table(title=f"{report['satellites']} idle satellites, {report['seconds']:.1f} s")
    for column in ("", "all", "largest"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("processor, % of a core", f"{report['cpu_percent_of_a_core']:.2f}", "")
    for name, text in (("rss", "resident"), ("pss", "resident, shared pages divided"), ("private", "private")):
        table.add_row(f"{text}, MB", _mb(report[f"{name}_bytes"]), _mb(report[f"{name}_bytes_max"]))
    print_table(table)


@bench.command()
@constellation_option
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100), help="Measured rounds.")
@click.option(
    "--call-blocks", default=5, show_default=True, type=click.IntRange(1, 22), help="Blocks in one call; the manager sends 5."
)
@json_option
def links(constellation_path: Path | None, rounds: int, call_blocks: int, as_json: bool) -> None:
    """PUT and GET 22 blocks of 3.1 MB over links with delay, jitter, loss and a cut."""
    from skymemory.bench.links import links_table, run_links_bench

    with progress_bar("putting and getting") as progress:
        constellation = load_constellation(constellation_path)
        report = run_links_bench(constellation, rounds=rounds, call_blocks=call_blocks, progress=progress)
    if as_json:
        print_json(report)
        return
    print_table(links_table(report))
    _tell_wrong({row["links"]: row["wrong"] for row in report["rows"]})


@bench.command()
@constellation_option
@click.option("--gets", default=1000, show_default=True, type=click.IntRange(8, 100_000), help="Gets for each rate of loss.")
@json_option
def parity(constellation_path: Path | None, gets: int, as_json: bool) -> None:
    """Lose satellites and packets under gets: 12 servers, 2 of them with parity."""
    from skymemory.bench.parity import (
        packets_table,
        repair_table,
        run_lost_packets,
        run_lost_satellites,
        run_repair,
        satellites_table,
    )

    constellation = load_constellation(constellation_path)
    with progress_bar("losing satellites") as progress:
        satellites = run_lost_satellites(constellation, progress=progress)
    with progress_bar("repairing") as progress:
        repair = run_repair(constellation, progress=progress)
    with progress_bar("losing packets") as progress:
        packets = run_lost_packets(constellation, gets=gets, progress=progress)
    if as_json:
        print_json({"satellites": satellites, "repair": repair, "packets": packets})
        return
    print_table(satellites_table(satellites))
    print_table(repair_table(repair))
    print_table(packets_table(packets))


@bench.command()
@constellation_option
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 1000), help="Measured rounds.")
@json_option
def peers(constellation_path: Path | None, rounds: int, as_json: bool) -> None:
    """PUT and GET 2.9 MB values: 10 satellites, without and with security, seals and parity; Redis; memcached."""
    from skymemory.bench.peers import run_peers_bench

    with progress_bar("putting and getting") as progress:
        report = run_peers_bench(load_constellation(constellation_path), rounds=rounds, progress=progress)
    if as_json:
        print_json(report)
        return
    print_table(peers_table(report))
    _tell_wrong(report["wrong"])


def peers_table(report: dict[str, Any]) -> Table:
    """Return speeds, and processor time of all processes: of SkyMemory with how much more than without all of them."""
    from skymemory.bench.peers import CODED

    table = Table(title=f"values of {report['value_bytes']:,} bytes, medians: MB/s (1e6 bytes), ms of processors")
    for column in ("", "PUT, MB/s", "GET, MB/s", "PUT, ms", "GET, ms", "PUT: skymem is", "GET: skymem is"):
        table.add_column(column, justify="right" if column else "left")
    for name in report["wrong"]:
        speed, ratio, more = report[name], report["ratio"].get(name), report["cpu_more_percent"].get(name)
        suites = report["suites"].get(name.removesuffix("_sealed"))
        coded = ", parity" if name.startswith(CODED) else ""
        sealed = ", sealed" if name.endswith("_sealed") else ""
        label = name if suites is None else f"skymem, {', '.join(suites) or 'no keyring'}{coded}{sealed}"
        table.add_row(
            label,
            *(f"{speed[f'{what}_mb_s']:,.0f}" for what in ("put", "get")),
            *(f"{speed[f'{what}_cpu_ms']:.2f}" + (f" {more[what]:+.0f} %" if more else "") for what in ("put", "get")),
            *(f"{ratio[what]:.2f} x" if ratio else "" for what in ("put", "get")),
        )
    return table


@bench.command()
@constellation_option
@click.option(
    "--rate",
    "rates",
    multiple=True,
    type=click.FloatRange(0.1, 100_000),
    help="Rate of links in Mbit/s; may be given more than once. [default: 5 to 1000]",
)
@click.option(
    "--round-trip",
    "round_trips",
    multiple=True,
    type=click.FloatRange(0, 10_000),
    help="Round trip in ms; may be given more than once. [default: 5, 30, 100]",
)
@click.option(
    "--codec",
    "codecs",
    multiple=True,
    help="Codec; may be given more than once. All but the first are measured with the middle round trip only. "
    "[default: int8, raw, int4g32]",
)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Measured runs of each way.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the curves, .png, .svg or .pdf, or all times, .csv; may be given more than once.",
)
@json_option
def pic(
    constellation_path: Path | None, rates: tuple[float, ...], round_trips: tuple[float, ...], codecs: tuple[str, ...],
    rounds: int, outputs: tuple[Path, ...], as_json: bool,
) -> None:  # fmt: skip
    """Link segments that come over emulated links, beside full prefill, exact prefix, and loading before linking.

    All of it takes the better part of an hour. Quick: --rate 20 --rate 200 --round-trip 30 --codec int8 --rounds 1.
    """
    try:
        from skymemory.bench import pic as measured
        from skymemory.bench.pic_figure import PIC_COLUMNS, pic_figure, pic_rows
        from skymemory.prompt.codecs import codec_names
        from skymemory.simulate.drawing import SUFFIXES, MissingLibraryError, Page, look, save, save_csv
    except ModuleNotFoundError as error:
        raise Failure(how_to_install(error.name or str(error), "model")) from error

    if unknown := set(codecs) - set(codec_names()):
        raise BadInput(f"--codec is {', '.join(sorted(unknown))}; allowed are {', '.join(codec_names())}")
    for output in outputs:
        if output.suffix not in (*SUFFIXES, ".csv"):
            raise BadInput(f"--output is {output}; allowed are names that end in {', '.join(SUFFIXES)} or .csv")
        if not output.parent.is_dir():
            raise BadInput(f"--output is {output}; there is no folder {output.parent}")
    load = measured.PicLoad(
        sorted(set(rates)) or measured.RATES_MBIT_S,
        sorted(set(round_trips)) or measured.ROUND_TRIPS_MS,
        tuple(dict.fromkeys(codecs)) or measured.CODECS,
        rounds,
    )
    try:
        if any(output.suffix in SUFFIXES for output in outputs):
            with look():
                pass  # tells before, not after, an hour that the library is missing
        with progress_lines("measuring") as progress:
            report = measured.run_pic_bench(load_constellation(constellation_path), load, progress=progress)
        for output in outputs:
            if output.suffix == ".csv":
                save_csv(output, PIC_COLUMNS, pic_rows(report))
                continue
            with look():
                save(pic_figure(report, Page()), output)
    except MissingLibraryError as error:
        raise Failure(str(error)) from error
    if as_json:
        print_json(report)
        return
    print_table(measured.pic_points_table(report))
    print_table(measured.pic_break_even_table(report))
    print_table(measured.pic_aims_table(report))


@bench.command()
@constellation_option
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100), help="Generations of each kind.")
@click.option("--codec", "codecs", multiple=True, help="Only this codec; may be given more than once.")
@json_option
def prefix(constellation_path: Path | None, rounds: int, codecs: tuple[str, ...], as_json: bool) -> None:
    """Measure seconds to 30 tokens without and with the cache, for each codec: the paper's table 3."""
    try:
        from skymemory.bench.prefix import run_prefix_bench
        from skymemory.prompt.codecs import codec_names
    except ModuleNotFoundError as error:
        raise Failure(how_to_install(error.name or str(error), "model")) from error

    if unknown := set(codecs) - set(codec_names()):
        raise BadInput(f"--codec is {', '.join(sorted(unknown))}; allowed are {', '.join(codec_names())}")
    with progress_bar("generating") as progress:
        report = run_prefix_bench(
            load_constellation(constellation_path), codecs or codec_names(), rounds=rounds, progress=progress
        )
    if as_json:
        print_json(report)
        return
    tokens = f"{report['prompt_tokens']} tokens of prompt, {report['new_tokens']} new ones"
    table = Table(title=f"{tokens}, {report['servers']} satellites")
    times = ("without, s", "with, s", "faster by, %", "first token without, s", "with, s")
    for column in ("codec", *times, "block, bytes", "same tokens"):
        table.add_column(column, justify="left" if column == "codec" else "right")
    for name, row in report["codecs"].items():
        seconds = [f"{row[key]:.2f}" for key in ("without_s", "with_s")]
        first = [f"{row[key]:.2f}" for key in ("ttft_without_s", "ttft_with_s")]
        table.add_row(
            name,
            *seconds,
            f"{row['speedup_percent']:.1f}",
            *first,
            f"{row['block_bytes']:,}",
            f"{row['same_tokens']} of {report['new_tokens']}",
        )
    print_table(table)


@bench.command()
@constellation_option
@click.option("--values", default=100_000, show_default=True, type=click.IntRange(1, 10_000_000), help="Values of 100 bytes.")
@click.option("--blocks", default=2_000, show_default=True, type=click.IntRange(1, 10_000_000), help="Blocks of 1 MB.")
@click.option("--stored", default=1_000, show_default=True, type=click.IntRange(1, 10_000), help="Values that are really stored.")
@json_option
def spread(constellation_path: Path | None, values: int, blocks: int, stored: int, as_json: bool) -> None:
    """Measure how evenly values and blocks lie on the servers."""
    from skymemory.bench.spread import run_spread_bench

    with progress_bar("storing") as progress:
        report = run_spread_bench(load_constellation(constellation_path), values, blocks, stored, progress)
    if report["stored"]["said"] != report["stored"]["computed"]:
        raise Failure(f"satellites hold {report['stored']['said']} chunks, and not {report['stored']['computed']}")
    if as_json:
        print_json(report)
        return
    table = Table(title=f"bytes on {report['servers']} servers")
    for column in ("", "number", "bytes of one", "least, MB", "most, MB", "variation, %"):
        table.add_column(column, justify="right" if column else "left")
    for row in report["rows"]:
        sizes = row["bytes"]
        least, most = _mb(min(sizes)), _mb(max(sizes))
        table.add_row(
            row["what"], f"{row['number']:,}", f"{row['block_bytes']:,}", least, most, f"{row['variation_percent']:.2f}"
        )
    print_table(table)


@bench.command()
@click.option("--gets", default=10_000, show_default=True, type=click.IntRange(1, 1_000_000), help="Gets of each kind.")
@click.option(
    "--share", default=0.02, show_default=True, type=click.FloatRange(0, 1), help="Share of the answers that come late."
)
@click.option("--delay-ms", default=80.0, show_default=True, type=click.FloatRange(0, 1000), help="How much later.")
@json_option
def stragglers(gets: int, share: float, delay_ms: float, as_json: bool) -> None:
    """Get a block of 480 chunks in virtual time while some answers come late: without a code, hedged, and the first of all."""
    from skymemory.twin.native_twin import TwinError
    from skymemory.twin.stragglers import Stragglers, compare

    try:
        with progress_bar("getting") as progress:
            report = compare(Stragglers(gets, share, delay_ms), progress)
    except TwinError as error:
        raise Failure(str(error)) from error
    if as_json:
        print_json(report)
        return
    click.echo(
        f"Each way got one block of {report['chunks']} chunks {gets:,} times in virtual time, once without and once with "
        "stragglers: the times are those of links and satellites, whatever this machine does. Bytes are those of all packets."
    )
    table = Table(title=f"{gets:,} gets; {100 * share:g} % of answers {delay_ms:g} ms late")
    for column in ("", "servers", "parity", "none late, ms", "p50, ms", "p99, ms", "p99.9, ms", "bytes / block"):
        table.add_column(column, justify="right" if column else "left")
    for way in report["ways"]:
        late = way["stragglers"]
        times = [f"{late[name]:.1f}" for name in ("p50_ms", "p99_ms", "p99_9_ms")]
        calm = f"{way['calm']['p50_ms']:.1f}"
        table.add_row(way["name"], str(way["servers"]), str(way["parity"]), calm, *times, f"{late['share_of_bytes']:.2f}")
    print_table(table)


@bench.command()
@click.argument("url")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 10_000), help="Measured prompts.")
@click.option("--words", default=1400, show_default=True, type=click.IntRange(1, 1_000_000), help="Words of a prompt.")
@click.option("--api-key", default="-", envvar="OPENAI_API_KEY", help="The server's key, if any. [env var: OPENAI_API_KEY]")
@json_option
def ttft(url: str, rounds: int, words: int, api_key: str, as_json: bool) -> None:
    """Measure seconds to the first token of a server at URL (vLLM, skymem serve), without and with the prompt in the sky.

    vLLM must report cached tokens, and be able to drop its own: --enable-prompt-tokens-details, VLLM_SERVER_DEV_MODE=1.
    """
    from skymemory.bench.ttft import run_ttft_bench, ttft_table

    with progress_bar("asking") as progress:
        report = run_ttft_bench(url, rounds=rounds, words=words, api_key=api_key, progress=progress)
    if as_json:
        print_json(report)
    else:
        print_table(ttft_table(report))


def _tell_wrong(wrong: dict[str, int]) -> None:
    for name, count in wrong.items():
        if count:
            click.echo(f"{name}: {count} values did not come back as they were put", err=True)


def _mb(count: Any) -> str:
    return f"{count / 1e6:.2f}"
