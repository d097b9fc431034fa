"""`gpupool machines`: the machines that exist without a cluster, and which clusters have them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gpupool.cli.known_names import instance_types, machines
from gpupool.cli.listing_group import ListingGroup
from gpupool.cli.numbers import Whole
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.table import Column, Document, Shorten, Table, Tone
from gpupool.local.home import home

if TYPE_CHECKING:
    from gpupool.local.config.spec import InstanceType
    from gpupool.local.machines import Machine

_FREE, _IN_USE = "Free", "InUse"


@dataclass(frozen=True, slots=True)
class _Row:
    machine: "Machine"
    type: "InstanceType | None"  # None: of a catalogue of another version

    @property
    def state(self) -> str:
        return _FREE if self.machine.is_free else _IN_USE

    @property
    def cards(self) -> str:
        if self.type is None or self.type.gpu is None:
            return "<none>"
        return f"{self.type.gpu_count} x {self.type.gpu.name}"


_COLUMNS = (
    Column[_Row]("NAME", lambda row: row.machine.name, shorten=Shorten.MIDDLE),
    Column[_Row]("INSTANCE TYPE", lambda row: row.machine.instance_type),
    Column[_Row]("CARDS", lambda row: row.cards),
    Column[_Row](
        "STATE",
        lambda row: row.state,
        tone=lambda row: Tone.GOOD if row.machine.is_free else Tone.PLAIN,
    ),
    Column[_Row]("CLUSTER", lambda row: row.machine.cluster or "<none>"),
    Column[_Row]("NODE POOL", lambda row: row.machine.pool or "<none>"),
    Column[_Row]("VCPUS", lambda row: str(row.type.vcpus) if row.type else "", wide=True),
    Column[_Row](
        "MEMORY", lambda row: f"{row.type.memory_mib // 1024} GiB" if row.type else "", wide=True
    ),
)


@click.group("machines", cls=ListingGroup, invoke_without_command=True)
@output_options("wide", "json", "yaml", "name")
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List, add and remove machines that exist without a cluster.

    A node pool can be made of them: name them under `machines` of the pool, in a cluster file or a
    NodePool. They are free again when the node, the pool or the cluster is deleted. Without a
    subcommand it lists them.

    \b
    Examples:
      gpupool machines
      gpupool machines add ecs.gn5-c4g1.xlarge --count 2
      gpupool machines -o json
    """
    if context.invoked_subcommand:
        return
    from gpupool.local.config.catalogue import catalogue
    from gpupool.local.machines import Machines

    types = catalogue().instance_types
    rows = [_Row(each, types.get(each.instance_type)) for each in Machines(home()).all().values()]
    empty = "No machine has been added. Add one: gpupool machines add INSTANCE-TYPE"
    output.show(Table("Machine", _COLUMNS, rows, _fields, lambda row: row.machine.name, empty))


def _fields(row: _Row) -> Document:
    machine, type_ = row.machine, row.type
    return {
        "name": machine.name,
        "instanceType": machine.instance_type,
        "state": row.state,
        "cluster": machine.cluster or None,
        "nodePool": machine.pool or None,
        "vcpus": type_.vcpus if type_ else None,
        "memoryMiB": type_.memory_mib if type_ else None,
        "cardModel": type_.gpu.name if type_ and type_.gpu else None,
        "cards": type_.gpu_count if type_ else None,
    }


@command.command("add", short_help="Add machines of an instance type.")
@click.argument("instance_type", metavar="INSTANCE-TYPE", shell_complete=instance_types)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--count",
    type=Whole(1, 1000),
    metavar="NUMBER",
    help="How many, with names that gpupool gives: machine-1 and so on.  [default: 1, or as many "
    "as NAMEs]",
)
def add(instance_type: str, names: tuple[str, ...], count: int | None) -> None:
    """Add machines of an instance type out of the catalogue, with your names or gpupool's.

    A machine that becomes a node keeps its name.

    \b
    Examples:
      gpupool machines add ecs.gn5-c4g1.xlarge
      gpupool machines add ecs.gn6v-c8g1.2xlarge --count 4
      gpupool machines add ecs.gn5-c4g1.xlarge cn-beijing.192.168.0.7 trainer-2
    """
    from gpupool.local.config.catalogue import catalogue
    from gpupool.local.config.schema_problems import did_you_mean
    from gpupool.local.home import CannotUse
    from gpupool.local.machines import Machines

    types = catalogue().instance_types
    if names and count is not None:
        raise click.UsageError("--count is for machines without NAMEs.")
    if instance_type not in types:
        hint = did_you_mean(instance_type, types) or f"; there are {', '.join(types)}"
        raise CannotUse(f'no instance type "{instance_type[:100]}" is known{hint}')
    place = home()
    with place.alone():
        new = Machines(place).add(instance_type, names, 0 if names else count or 1)
    for machine in new:
        click.echo(f'Machine "{machine.name}" is added.')


@command.command("remove", short_help="Remove machines that no cluster has.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=machines)
def remove(names: tuple[str, ...]) -> None:
    """Remove machines that no cluster has. If one of them is a node, none is removed.

    \b
    Examples:
      gpupool machines remove machine-1 machine-2
    """
    from gpupool.local.machines import Machines

    place = home()
    with place.alone():
        Machines(place).remove(names)
    for name in dict.fromkeys(names):
        click.echo(f'Machine "{name}" is removed.')
