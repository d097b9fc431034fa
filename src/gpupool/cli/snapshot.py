"""`gpupool snapshot`: writes the cluster to a file, which `whatif` and `replay` read."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.known_names import files
from gpupool.cli.options import access_options
from gpupool.cli.programs import ask_cluster
from gpupool.cli.scenario import shown

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj
    from kubeclient.resources import Resource

_MOST_BYTES = 1 << 30


@click.command("snapshot")
@click.argument(
    "file", default="-", type=click.Path(dir_okay=False, path_type=Path), shell_complete=files
)
@access_options
def command(file: Path, **where: str) -> None:
    """Write what decisions depend on to a file, without secrets.

    FILE is - for standard output. What is written are nodes, pods, namespaces, quotas, disruption
    budgets and volumes. Of pods their requests and constraints are kept: no variables, commands,
    images, or annotations of others. Names and labels are kept. Only you may read the file.
    `gpupool whatif --snapshot` and `gpupool replay` read it.

    \b
    Examples:
      gpupool snapshot cluster.json
      gpupool snapshot > cluster.json
    """
    import orjson

    from gpupool.contract.snapshot import snapshot

    objects = ask_cluster(_read, doing="Reading the cluster", **where)
    every: list[Obj] = [
        {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        for resource, found in objects.items()
        for obj in found
    ]
    text: bytes = orjson.dumps(snapshot(every), option=orjson.OPT_APPEND_NEWLINE)
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    write_whole(file, text)
    counts = {resource.plural: len(found) for resource, found in objects.items()}
    click.echo(f"{counts['nodes']} nodes and {counts['pods']} pods are in {file}.", err=True)


def write_whole(file: Path, text: bytes) -> None:
    if file.exists() and not file.is_file():  # a pipe or a device, which must stay one
        file.write_bytes(text)
        return
    target = Path(os.path.realpath(file))  # not the link, which must stay one, too
    # A new file, readable for its owner alone from the first byte on.
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            made.write(text)
        partial.replace(target)
    except OSError as error:  # nobody has named the partial file
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        partial.unlink(missing_ok=True)


async def _read(kube: "Kube") -> "dict[Resource, list[Obj]]":
    from gpupool.scheduler.follow import read_objects

    return await read_objects(kube)


def read_snapshot(file: Path) -> "dict[Resource, list[Obj]]":
    """The objects of a snapshot, by resource, as `read_objects` returns them."""
    from gpupool.scheduler.follow import empty_state, handlers_of

    items = _items_of(file)
    if isinstance(items, str):
        raise click.ClickException(
            f"{file}: wanted a snapshot of a cluster, found {items}. "
            "Make one with: gpupool snapshot FILE."
        )
    by_kind: dict[str, list[Obj]] = {}
    for item in items:
        if wrong := _wrong(item):
            raise click.ClickException(f"{file}: {item.get('kind')} {shown(item)}: {wrong}.")
        by_kind.setdefault(str(item.get("kind")), []).append(item)
    return {resource: by_kind.get(resource.kind, []) for resource in handlers_of(empty_state())}


def _items_of(file: Path) -> "list[Obj] | str":
    """A text: what the file is instead of a snapshot."""
    import orjson

    with file.open("rb") as opened:
        raw = opened.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        return "more than 1 GiB"
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return f"no JSON ({error})" if raw.strip() else "nothing"
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list) or not all(map(_is_object, items)):
        return "JSON without a list of objects in items"
    return items


def _wrong(item: "Obj") -> str:
    from gpupool.contract.object_shapes import wrong_object

    if wrong := wrong_object(item):
        return wrong
    lacks_uid = item.get("kind") == "Pod" and not item["metadata"].get("uid")
    return "metadata.uid: wanted a text, found nothing" if lacks_uid else ""


def _is_object(item: object) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
