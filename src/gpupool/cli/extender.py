"""`gpupool extender`: decides for kube-scheduler, over HTTPS."""

from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.known_names import files, policies
from gpupool.cli.options import POLICY_HELP, access_options
from gpupool.cli.programs import run_program
from gpupool.cli.scheduler import address, candidacy, policy_named

if TYPE_CHECKING:
    from gpupool.callers import ServerTls
    from gpupool.health import Address
    from kubeclient.client import Kube

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command("extender")
@access_options
@click.option(
    "--address",
    "listen",
    default="127.0.0.1:32766",
    show_default=True,
    metavar="HOST:PORT",
    callback=address,
    help="Address to listen on for kube-scheduler.",
)
@click.option(
    "--tls-cert",
    default="",
    metavar="FILE",
    shell_complete=files,
    help="Server certificate, as PEM.",
)
@click.option("--tls-key", default="", metavar="FILE", shell_complete=files, help="Its key.")
@click.option(
    "--client-ca",
    default="",
    metavar="FILE",
    shell_complete=files,
    help="Answer kube-scheduler only with a client certificate of this authority, as PEM.  "
    "[default: answer anybody]",
)
@click.option(
    "--most-nodes",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Return the N best of the nodes that fit, between which kube-scheduler chooses; 0: all.",
)
@click.option("--policy", default="", metavar="NAME", shell_complete=policies, help=POLICY_HELP)
def command(**options: Any) -> None:
    """Choose nodes and cards for kube-scheduler, until stopped.

    `gpupool scheduler config` prints the configuration with which kube-scheduler asks it.

    \b
    Examples:
      gpupool extender
      gpupool extender --address :32766 --tls-cert tls.crt --tls-key tls.key
    """
    _run(**options)


def _run(
    *,
    listen: "Address",
    tls_cert: str,
    tls_key: str,
    client_ca: str,
    most_nodes: int,
    policy: str,
    **where: str,
) -> None:
    from gpupool.cli.programs import log_to_stderr
    from gpupool.scheduler.extender_program import ExtenderSettings, run_extender

    settings = ExtenderSettings(
        policy_named(policy),
        listen,
        candidacy("extender", goes_first=True),
        _tls(listen, tls_cert, tls_key, client_ca),
        most_nodes,
    )

    async def work(kube: "Kube") -> None:
        await run_extender(kube, settings)

    log_to_stderr()
    run_program(work, "gpupool-extender", **where)


def _tls(listen: "Address", certificate: str, key: str, client_ca: str) -> "ServerTls | None":
    from gpupool.callers import BadTls, ServerTls, TlsFiles

    if not certificate and client_ca:
        raise click.UsageError(
            f"--client-ca {client_ca} needs --tls-cert and --tls-key: callers show certificates "
            "over HTTPS only."
        )
    if not certificate and listen.host in _LOOPBACK:
        return None
    if not certificate:
        raise click.UsageError(
            f"--tls-cert and --tls-key are required: --address {listen.host} is not of the "
            "loopback interface, which needs none."
        )
    try:
        return ServerTls(TlsFiles(certificate, key, client_ca))
    except BadTls as error:
        raise click.ClickException(str(error)) from error
