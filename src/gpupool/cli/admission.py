"""`gpupool admission`: the webhook as a process."""

from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.options import access_options
from gpupool.cli.programs import run_program
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
    help="Address to listen on for the API server.",
)
@click.option(
    "--service",
    default="",
    metavar="NAME",
    help="Service through which the API server reaches it.  [default: its own address]",
)
@click.option(
    "--namespace", default="kube-system", show_default=True, help="Namespace of Service and Secret."
)
@click.option(
    "--scheduler-name",
    default=SCHEDULER_NAME,
    show_default=True,
    help="Scheduler for GPU pods that name none.",
)
@click.option(
    "--runtime-class",
    default="",
    metavar="NAME",
    help="Runtime class for GPU pods that name none, while no node with GPUs is known.",
)
@click.option(
    "--scheduler-user",
    "schedulers",
    multiple=True,
    default=(f"system:serviceaccount:kube-system:{SCHEDULER_NAME}",),
    show_default=True,
    help="User who may write allocations; may be given several times.",
)
@click.option(
    "--translate",
    type=click.Choice(["auto", "all", "none"]),
    default="auto",
    show_default=True,
    help="Understand requests written for other systems; auto: for those that do not run here.",
)
@click.option(
    "--hide-unrequested-cards",
    "hide_unrequested",
    is_flag=True,
    help="Set NVIDIA_VISIBLE_DEVICES to void in pods that set it and ask for no GPU.",
)
def command(**options: Any) -> None:
    """Check GPU pods, and connect them to their allocation, until stopped.

    It makes its own certificate, and registers itself with the API server.

    \b
    Examples:
      gpupool admission
      gpupool admission --address :8443 --service gpupool-admission
    """
    _run(**options)


def _run(
    *,
    listen: "Address",
    scheduler_name: str,
    runtime_class: str,
    schedulers: tuple[str, ...],
    kubeconfig: str,
    context: str,
    **settings: Any,
) -> None:
    """`settings`: fields of AdmissionSettings that have an option of the same name."""
    from gpupool.admission.authority import BadAuthority
    from gpupool.admission.review import Rules
    from gpupool.admission.run import AdmissionSettings, run_admission
    from gpupool.cli.programs import log_to_stderr

    rules = Rules(frozenset(schedulers), scheduler_name, runtime_class)
    chosen = AdmissionSettings(rules, host=listen.host, port=listen.port, **settings)

    async def work(kube: "Kube") -> None:
        try:
            await run_admission(kube, chosen, ready=lambda _port: None)
        except* BadAuthority as errors:
            raise click.ClickException(str(errors.exceptions[0])) from None

    log_to_stderr()
    run_program(work, "gpupool-admission", kubeconfig=kubeconfig, context=context)
