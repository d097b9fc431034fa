"""`gpupool clusters`: lists the local clusters of this machine."""

from dataclasses import dataclass

import click

from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.table import Column, Document, Shorten, Table, Tone
from gpupool.local.home import ClusterDirectory, home
from gpupool.local.server_process import Server, running_server

_LOOK_EVERY_S = 0.5  # with --watch: files tell nobody that they change
_TONES = {"Running": Tone.GOOD, "Stopped": Tone.FAINT}


@dataclass(frozen=True, slots=True)
class _Row:
    cluster: ClusterDirectory
    server: Server | None

    @property
    def state(self) -> str:
        return self.server.state if self.server else "Stopped"

    @property
    def address(self) -> str:
        port = self.server.port if self.server else 0
        return f"https://127.0.0.1:{port}" if port else ""


_COLUMNS = (
    Column[_Row]("NAME", lambda row: row.cluster.name, shorten=Shorten.MIDDLE),
    Column[_Row](
        "STATE", lambda row: row.state, tone=lambda row: _TONES.get(row.state, Tone.CAUTION)
    ),
    Column[_Row]("API SERVER", lambda row: row.address or "<none>"),
    Column[_Row](
        "DATA",
        lambda row: str(row.cluster.path),
        shorten=Shorten.MIDDLE,
        link=lambda row: row.cluster.path.as_uri(),
    ),
    Column[_Row]("KUBECONFIG", lambda row: str(row.cluster.kubeconfig), wide=True),
    Column[_Row]("PROCESS", lambda row: str(row.server.pid) if row.server else "", wide=True),
)


@click.command("clusters")
@output_options("wide", "json", "yaml", "name", watch=True)
def command(output: Output) -> None:
    """List the clusters of this machine.

    \b
    Examples:
      gpupool clusters
      gpupool clusters -o json
    """
    if not output.watch:
        output.show(_table())
        return
    import asyncio

    from gpupool.cli.output.live import interruptible, redraw

    async def look() -> Table[_Row]:
        return _table()

    with interruptible():
        asyncio.run(redraw(output, asyncio.Event(), look, _LOOK_EVERY_S))


def _table() -> Table[_Row]:
    rows = [_Row(cluster, running_server(cluster)) for cluster in home().clusters()]
    empty = "There is no cluster yet. Make one: gpupool up"
    return Table("Cluster", _COLUMNS, rows, _fields, lambda row: row.cluster.name, empty)


def _fields(row: _Row) -> Document:
    return {
        "name": row.cluster.name,
        "state": row.state,
        "apiServer": row.address or None,
        "processId": row.server.pid if row.server else None,
        "kubeconfig": str(row.cluster.kubeconfig),
        "data": str(row.cluster.path),
    }
