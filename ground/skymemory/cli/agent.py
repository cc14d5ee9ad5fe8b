"""`skymem agent`: runs this host's agent."""

import asyncio
import sys
from ipaddress import ip_address
from pathlib import Path

import click

from skymemory.agent.settings import ENVIRONMENT, AgentSettings, load_file
from skymemory.cli.common import VARIABLE, BadInput, tenant_secret_option
from skymemory.cli.log_options import begin_log, log_options
from skymemory.common.listening import listen_early
from skymemory.common.state_folder import agent_socket

_PORT = click.IntRange(0, 65535)


def _use_file(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Take the settings of the file where neither the environment nor a flag sets them."""
    if path is not None:
        context.default_map = load_file(path)
    return path


@click.command(context_settings={"auto_envvar_prefix": ENVIRONMENT, "show_default": True})
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_use_file,
    show_envvar=True,
    help="AgentSettings in TOML, named as the flags with underscores.",
)
@click.option(
    "--constellation",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar=[f"{ENVIRONMENT}_CONSTELLATION", VARIABLE],
    show_envvar=True,
    help="Constellation file. Default: the constellation that `skymem up` started on this machine, now or later.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    show_envvar=True,
    help="State folder whose `skymem replay` the window follows. Default: this user's.",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    show_envvar=True,
    help="Unix socket of engines. Default: agent.sock in the state folder.",
)
@click.option("--resp-port", type=_PORT, show_envvar=True, help="Port of Redis clients. Default: they are not served.")
@click.option("--lmcache-port", type=_PORT, show_envvar=True, help="Port of LMCache 0.5's client. Default: it is not served.")
@click.option("--resp-host", default=AgentSettings.resp_host, show_envvar=True, help="Address of these two ports.")
@click.option(
    "--resp-password",
    show_envvar=True,
    help="Password of the user `default` on both (AUTH). Flags are visible to all users of this machine.",
)
@click.option(
    "--resp-users",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    show_envvar=True,
    help="File of further users, each with the values of one tenant; made by `skymem resp-users`.",
)
@tenant_secret_option
@click.option("--http-port", type=_PORT, show_envvar=True, help="Port of page, health and metrics. Default: none.")
@click.option("--http-host", default=AgentSettings.http_host, show_envvar=True, help="Address of that port.")
@log_options
def agent(
    constellation: Path | None,
    replay: Path | None,
    socket: Path | None,
    resp_port: int | None,
    lmcache_port: int | None,
    resp_host: str,
    resp_password: str | None,
    resp_users: Path | None,
    tenant_secret_file: Path | None,
    http_port: int | None,
    http_host: str,
) -> None:
    """Run this host's agent: it owns the links to the sky, for engines, Redis clients and browsers.

    The agent starts even if the constellation is unreachable. SIGTERM or Ctrl-C ends it. Settings come from the file, the
    environment and flags. If several set an option, the last of these counts.
    """
    is_served = resp_port is not None or lmcache_port is not None
    if is_served and not resp_password and resp_users is None and not _is_loopback(resp_host):
        raise BadInput(
            f"--resp-host is {resp_host}, where other machines may come: it needs a --resp-password or --resp-users; 127.0.0.1 "
            "needs none"
        )
    if replay is not None and constellation is None:
        raise BadInput("--replay needs a --constellation; what `skymem up` started is followed with its replay anyway")
    # Clients that come while all the rest is loaded wait, and are not refused.
    listening = {port: listen_early(resp_host, port) for port in (resp_port, lmcache_port) if port}
    from skymemory.agent.service import run  # aiohttp takes a third of a second

    begin_log()
    settings = AgentSettings(
        socket=socket or agent_socket(),
        constellation=constellation,
        replay=replay,
        resp_port=resp_port,
        lmcache_port=lmcache_port,
        resp_host=resp_host,
        resp_password=resp_password,
        resp_users=resp_users,
        tenant_secret_file=tenant_secret_file,
        http_port=http_port,
        http_host=http_host,
    )
    asyncio.run(run(settings, _tell, listening))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name other than localhost
        return False


def _tell(addresses: dict[str, str]) -> None:
    for name, address in addresses.items():
        click.echo(f"{name}: {address}")
    click.echo("serving")
    sys.stdout.flush()
