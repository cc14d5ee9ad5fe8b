"""The command group `skymem`."""

import click

from skymemory.cli import (
    agent,
    bench,
    constellation,
    demo,
    keys,
    layout,
    pic,
    relay,
    replay,
    resp_users,
    schedule,
    segment,
    serve,
    serve_keys,
    simulate,
    single,
    size,
    status,
    tables,
    twin,
    values,
)
from skymemory.cli.common import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="skymemory", prog_name="skymem")
def main() -> None:
    """SkyMemory: a cache for transformer KV tensors on a constellation of satellites.

    \b
    skymem up                    start the constellation (local processes)
    skymem put KEY FILE          store a file; `get` brings it back
    skymem status                what the satellites hold and have done
    skymem demo                  a prompt without and with the cache
    skymem down                  stop it
    """


for command in (
    constellation.up,
    constellation.down,
    constellation.compose,
    single.kill,
    single.restart,
    status.status,
    values.put,
    values.get,
    values.delete,
    values.prefetch,
    demo.demo,
    serve.serve,
    serve_keys.serve_keys,
    segment.segment,
    pic.pic,
    schedule.schedule,
    tables.tables,
    keys.keys,
    replay.replay,
    twin.twin,
    agent.agent,
    resp_users.resp_users,
    bench.bench,
    simulate.simulate,
    size.size,
    layout.layout,
    relay.relay,
):
    main.add_command(command)
