"""`gpupool scheduler`: runs the scheduler, and prints a configuration for kube-scheduler."""

import re
from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.known_names import policies
from gpupool.cli.options import POLICY_HELP, access_options
from gpupool.cli.programs import run_program
from gpupool.contract.names import SCHEDULER_NAME

if TYPE_CHECKING:
    from gpupool.health import Address
    from kubeclient.client import Kube
    from kubeclient.lease import Candidacy


def address(_: click.Context, __: click.Parameter, text: str | None) -> "Address | None":
    if not text:
        return None
    from gpupool.health import Address

    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*):(\d{1,5})", text)
    if found is None or int(found[2]) > 65535:
        words = "wanted HOST:PORT or :PORT, with a port from 0 to 65535"
        raise click.BadParameter(f'{words}; found "{text}".')
    return Address(found[1].strip("[]") or "0.0.0.0", int(found[2]))


def policy_named(name: str) -> str:
    """Checks the name of a policy; an empty one is the default policy."""
    from gpupool.engine.policies import DEFAULT, POLICIES

    if name and name not in POLICIES:
        known = ", ".join(POLICIES)
        words = f'there is no policy "{name}"; there are {known}.'
        raise click.BadParameter(words, param_hint="'--policy'")
    return name or DEFAULT


def candidacy(
    program: str, names: frozenset[str] = frozenset(), *, goes_first: bool = False
) -> "Candidacy":
    """A candidate for leadership, named as client-go does it: host, program and a random part."""
    import os
    import secrets

    from gpupool.scheduler.elected import LEASE
    from kubeclient.lease import Candidacy

    identity = f"{os.uname().nodename}_{program}_{secrets.token_hex(4)}"
    return Candidacy(LEASE, identity, names, goes_first)


@click.group("scheduler", invoke_without_command=True)
@click.pass_context
@access_options
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    default=(SCHEDULER_NAME,),
    show_default=True,
    help="Schedule pods with this spec.schedulerName; may be given several times.",
)
@click.option("--policy", default="", metavar="NAME", shell_complete=policies, help=POLICY_HELP)
@click.option(
    "--reservations",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Keep freed room for pods with GPUs that have waited for long.",
)
@click.option(
    "--health-address",
    "health",
    default="127.0.0.1:10259",
    show_default=True,
    metavar="HOST:PORT",
    callback=address,
    help="Address for /healthz and /readyz, and for /metrics if it is of the loopback interface; "
    "empty: none.",
)
@click.option(
    "--metrics-address",
    "scrapers",
    default="",
    metavar="HOST:PORT",
    callback=address,
    help="Address for /metrics over HTTPS, for those who show a token that may get /metrics.  "
    "[default: none]",
)
def command(ctx: click.Context, /, **options: Any) -> None:
    """Find nodes and cards for pods, until stopped.

    It keeps no state of its own: it can be stopped and started at any time. Several can run, with
    the same or with different names: one is the leader, and schedules for the names of all.

    \b
    Examples:
      gpupool scheduler
      gpupool scheduler --policy best-fit --health-address :10259
    """
    if ctx.invoked_subcommand is None:
        _run(**options)


def _run(
    *,
    names: tuple[str, ...],
    policy: str,
    reservations: str,
    health: "Address | None",
    scrapers: "Address | None",
    **where: str,
) -> None:
    from gpupool.cli.programs import log_to_stderr
    from gpupool.scheduler.program import ProgramSettings, run_scheduler

    settings = ProgramSettings(
        policy_named(policy),
        candidacy("scheduler", frozenset(names)),
        health,
        scrapers,
        keeps_room=reservations == "on",
    )

    async def work(kube: "Kube") -> None:
        await run_scheduler(kube, settings)

    log_to_stderr()
    run_program(work, names[0], **where)


def _url(_: click.Context, __: click.Parameter, text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", text):
        words = f'wanted http://HOST:PORT or https://HOST:PORT, found "{text}".'
        raise click.BadParameter(words)
    return text


@command.command("config", short_help="Print a configuration for kube-scheduler.")
@click.option(
    "--url",
    default="http://127.0.0.1:32766",
    show_default=True,
    callback=_url,
    help="Where kube-scheduler reaches `gpupool extender`.",
)
@click.option(
    "--ca-file",
    default="",
    metavar="FILE",
    help="CA of its certificate; a path that kube-scheduler sees, as the other two. Without it "
    "kube-scheduler trusts whoever answers.",
)
@click.option(
    "--server-name", default="", help="Name in its certificate.  [default: the host of the URL]"
)
@click.option(
    "--client-cert",
    default="",
    metavar="FILE",
    help="Certificate that kube-scheduler shows it (`gpupool extender --client-ca`).",
)
@click.option("--client-key", default="", metavar="FILE", help="Its key.")
@click.option("--client-kubeconfig", default="", help="kube-scheduler's own kubeconfig.")
@click.option(
    "--sample",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="PERCENT",
    help="Nodes that kube-scheduler looks for before it asks about a pod with GPUs; 100 nodes at "
    "least. Fewer are faster.",
)
def config(  # noqa: PLR0913 - one parameter for each option
    url: str,
    ca_file: str,
    server_name: str,
    client_cert: str,
    client_key: str,
    client_kubeconfig: str,
    sample: int,
) -> None:
    """Print the configuration with which kube-scheduler asks `gpupool extender`.

    It has two profiles: default-scheduler, as it was, and gpupool-extender for pods with GPUs.

    \b
    Examples:
      gpupool scheduler config > kube-scheduler.yaml
      gpupool scheduler config --url https://10.0.0.7:32766 --ca-file ca.crt
    """
    from gpupool.scheduler.kube_scheduler_config import NO_TLS, ExtenderTls, kube_scheduler_config
    from kubeclient.yaml_writing import dump_yaml

    if bool(client_cert) != bool(client_key):
        raise click.UsageError(
            "--client-cert and --client-key are wanted both or neither: kube-scheduler refuses to "
            "start with one of them."
        )
    tls = ExtenderTls(ca_file, server_name, client_cert, client_key)
    if tls != NO_TLS and not url.startswith("https://"):
        raise click.UsageError(
            f"--ca-file, --server-name, --client-cert and --client-key need a --url with https://, "
            f'found "{url}".'
        )
    made = kube_scheduler_config(url, tls, kubeconfig=client_kubeconfig, percent=sample)
    click.echo(dump_yaml(made), nl=False)
