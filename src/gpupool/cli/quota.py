"""`gpupool quota`: shows and changes the quotas."""

from dataclasses import dataclass

import click

from gpupool.cli.known_names import quotas
from gpupool.cli.listing_group import ListingGroup
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.table import Column, Document, Table, Tone
from gpupool.local.home import CannotUse, home


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    limit: int
    default: int
    used: int | None  # None: counted for each cluster

    @property
    def tone(self) -> Tone:
        return Tone.CAUTION if self.used is not None and self.used >= self.limit else Tone.PLAIN


_COLUMNS = (
    Column[_Row]("QUOTA", lambda row: row.name),
    Column[_Row]("LIMIT", lambda row: str(row.limit)),
    Column[_Row]("DEFAULT", lambda row: str(row.default)),
    Column[_Row](
        "USED",
        lambda row: "per cluster" if row.used is None else str(row.used),
        tone=lambda row: row.tone,
    ),
)


@click.group("quota", cls=ListingGroup, invoke_without_command=True)
@output_options("json", "yaml", "name")
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """Show or change the quotas of the platform.

    Without a subcommand it lists them.

    \b
    Examples:
      gpupool quota
      gpupool quota set nodes-per-cluster=100
    """
    if context.invoked_subcommand:
        return
    from gpupool.local import cloud_use
    from gpupool.local.cluster_setup import current_quotas
    from gpupool.local.config.quotas import quota_rows
    from gpupool.local.config.spec import Quotas

    place = home()
    used = {"clusters": len(place.clusters()), **cloud_use.used(place)}
    defaults = dict(quota_rows(Quotas()))
    rows = [
        _Row(name, limit, defaults[name], used.get(name))
        for name, limit in quota_rows(current_quotas(place, Quotas()))
    ]
    output.show(Table("Quota", _COLUMNS, rows, _fields, lambda row: row.name))


def _fields(row: _Row) -> Document:
    return {"name": row.name, "limit": row.limit, "default": row.default, "used": row.used}


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
        raise CannotUse(_words(changes, wrong))
    wanted = dict(change for change in parsed if not isinstance(change, str))
    place = home()
    with place.alone():
        place.write_quota_changes(place.quota_changes() | wanted)
    for name, limit in wanted.items():
        click.echo(f"{name} is now {limit}.")


def _words(changes: tuple[str, ...], wrong: list[str]) -> str:
    from gpupool.local.config.quotas import parse_change

    if len(wrong) == 1:
        return wrong[0]
    meant = "=".join(changes)
    if len(changes) == 2 and not isinstance(parse_change(meant), str):
        found = " and ".join(f'"{change}"' for change in changes)
        return f"wanted NAME=NUMBER as one word, found {found}. Try: gpupool quota set {meant}"
    return "\n".join([f"{len(wrong)} problems; nothing was changed.", *wrong])
