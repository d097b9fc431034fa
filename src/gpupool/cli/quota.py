"""`gpupool quota`: shows and changes the quotas."""

import click

from gpupool.cli.known_names import quotas
from gpupool.cli.tables import table
from gpupool.local.home import CannotUse, home


@click.group("quota", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show or change the quotas of the platform.

    Without a subcommand it lists them.

    \b
    Examples:
      gpupool quota
      gpupool quota set nodes-per-cluster=100
    """
    if context.invoked_subcommand:
        return
    from gpupool.local.cluster_setup import current_quotas
    from gpupool.local.config.quotas import quota_rows
    from gpupool.local.config.spec import Quotas

    place = home()
    used = {"clusters": str(len(place.clusters()))}
    defaults = dict(quota_rows(Quotas()))
    rows = [
        (name, str(limit), str(defaults[name]), used.get(name, "per cluster"))
        for name, limit in quota_rows(current_quotas(place, Quotas()))
    ]
    click.echo(table(("QUOTA", "LIMIT", "DEFAULT", "USED"), rows))


@command.command("set", short_help="Change quotas of all clusters.")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=NUMBER...", shell_complete=quotas)
def set_quotas(changes: tuple[str, ...]) -> None:
    """Change quotas of all clusters, with immediate effect on running ones, too.

    \b
    Examples:
      gpupool quota set nodes-per-cluster=100 routes-per-cluster=100
    """
    from gpupool.local.config.quotas import parse_change

    parsed = [parse_change(change) for change in changes]
    if wrong := [text for text in parsed if isinstance(text, str)]:
        raise CannotUse("\n".join(wrong))
    wanted = dict(change for change in parsed if not isinstance(change, str))
    place = home()
    with place.alone():
        place.write_quota_changes(place.quota_changes() | wanted)
    for name, limit in wanted.items():
        click.echo(f"{name} is now {limit}.")
