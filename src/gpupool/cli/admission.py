"""`gpupool admission`: the webhook as a process."""

from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.programs import access_options, run_program
from gpupool.cli.scheduler import address
from gpupool.contract.names import SCHEDULER_NAME

if TYPE_CHECKING:
    from gpupool.health import Address
    from kubeclient.client import Kube


@click.command("admission")
@access_options
@click.option(
    "--address",
    "listen",
    default="127.0.0.1:8443",
    show_default=True,
    metavar="HOST:PORT",
    callback=address,
    help="Where the API server asks.",
)
@click.option(
    "--service",
    default="",
    metavar="NAME",
    help="The Service by which the API server reaches us.  [default: by our own address]",
)
@click.option(
    "--namespace", default="kube-system", show_default=True, help="Of Service and Secret."
)
@click.option(
    "--owner",
    default="",
    metavar="CLUSTERROLE",
    help="When that is deleted, our registration goes with it.  [default: it stays]",
)
@click.option(
    "--scheduler-name",
    default=SCHEDULER_NAME,
    show_default=True,
    help="The scheduler that GPU pods get, unless they name another one.",
)
@click.option(
    "--scheduler-user",
    "schedulers",
    multiple=True,
    default=(f"system:serviceaccount:kube-system:{SCHEDULER_NAME}",),
    show_default=True,
    help="The user who may write allocations; may be given several times.",
)
def command(**options: Any) -> None:
    """Check GPU pods, and wire them to their allocation, until told to stop.

    It makes its own certificate, and registers itself with the API server.
    """
    _run(**options)


def _run(
    *,
    listen: "Address",
    service: str,
    namespace: str,
    owner: str,
    scheduler_name: str,
    schedulers: tuple[str, ...],
    **where: str,
) -> None:
    from gpupool.admission.authority import BadAuthority
    from gpupool.admission.review import Rules
    from gpupool.admission.run import AdmissionSettings, run_admission
    from gpupool.cli.log_format import log_to_stderr

    settings = AdmissionSettings(
        Rules(frozenset(schedulers), scheduler_name),
        host=listen.host,
        port=listen.port,
        service=service,
        namespace=namespace,
        owner=owner,
    )

    async def work(kube: "Kube") -> None:
        try:
            await run_admission(kube, settings, ready=lambda _port: None)
        except* BadAuthority as errors:
            raise click.ClickException(str(errors.exceptions[0])) from None

    log_to_stderr()
    run_program(work, "gpupool-admission", **where)
