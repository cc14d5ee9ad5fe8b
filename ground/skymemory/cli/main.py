"""The command group `skymem`: the sections of its help, and the module and the name of each command."""

from typing import Final

import click

from skymemory.cli.lazy import LazyCommands
from skymemory.cli.outlines import OUTLINES

SECTIONS: Final = {
    "A constellation": {
        "up": "constellation:up",
        "down": "constellation:down",
        "status": "status:status",
        "doctor": "doctor:doctor",
        "kill": "single:kill",
        "restart": "single:restart",
        "replay": "replay:replay",
        "compose": "constellation:compose",
    },
    "Values": {
        "put": "values:put",
        "get": "values:get",
        "del": "values:delete",
        "prefetch": "values:prefetch",
        "ls": "listing:list_known",
    },
    "Models": {
        "demo": "demo:demo",
        "serve": "serve:serve",
        "serve-keys": "serve_keys:serve_keys",
        "segment": "segment:segment",
        "pic": "pic:pic",
        "size": "size:size",
    },
    "Engines and Redis clients": {
        "agent": "agent:agent",
        "resp-users": "resp_users:resp_users",
    },
    "Keys and missions": {
        "keys": "keys:keys",
        "relay": "relay:relay",
        "tables": "tables:tables",
    },
    "Study": {
        "schedule": "schedule:schedule",
        "twin": "twin:twin",
        "layout": "layout:layout",
        "simulate": "simulate:simulate",
        "bench": "bench:bench",
    },
}
"""Commands of each section, and `module:name` of each in this package. `tools/gen_outlines.py` follows every change."""


@click.group(
    cls=LazyCommands,
    sections=SECTIONS,
    outlines=OUTLINES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
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
