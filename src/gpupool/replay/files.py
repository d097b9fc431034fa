"""Trace files -> Trace. openb's columns, and plain ones with Kubernetes' quantities.

    pods   name  cpu_milli | cpu  memory_mib | memory  num_gpu gpu_milli | gpu  [gpu_spec | models]
           [creation_time deletion_time [scheduled_time] | arrives_s runs_s]
    nodes  sn | name  cpu_milli | cpu  memory_mib | memory  gpu | gpus  [model]

`gpu` of a pod is a number of cards, or a part of one: 8, 1, 0.5.
"""

from decimal import Decimal, DecimalException
from pathlib import Path

from gpupool.replay.rows import InputRow, is_json, parsed_json, read_text, rows_of
from gpupool.replay.snapshot import is_snapshot, snapshot_of
from gpupool.replay.trace import MILLI, Job, Machine, Trace, TraceError, TracePod, node_of, pod_of

_MOST_CARDS = 64  # of a node
_MOST_NODES = 100_000


def read_trace(pods: Path, nodes: Path | None) -> Trace:
    """Without a file of nodes, `pods` must be a snapshot of a cluster."""
    content = read_text(pods)
    if is_json(content):
        found = parsed_json(pods, content)
        if is_snapshot(found):
            trace = snapshot_of(found, pods)
            if nodes is not None:
                raise TraceError(f"{pods}: a snapshot has its own nodes; leave --nodes {nodes} out")
            return trace
        nodes = nodes or pods
    if nodes is None:
        raise TraceError(
            f"{pods}: name the file of its nodes with --nodes, or in place of both a snapshot of a"
            " cluster (gpupool snapshot)"
        )
    machines = read_machines(nodes, content if nodes == pods else None)
    return Trace(pods.name, tuple(node_of(m) for m in machines), read_pods(pods, machines, content))


def read_machines(path: Path, content: str | None = None) -> list[Machine]:
    """`content`: see `rows_of`."""
    machines = [_machine(row) for row in rows_of(path, "nodes", content)]
    if not machines:
        raise TraceError(f"{path}: wanted a row for each node, found none")
    if len(machines) > _MOST_NODES:
        raise TraceError(f"{path}: more than {_MOST_NODES} nodes")
    _refuse_twice(path, [machine.name for machine in machines])
    return machines


def read_pods(
    path: Path, machines: list[Machine], content: str | None = None
) -> tuple[TracePod, ...]:
    """`content`: see `rows_of`."""
    jobs = [_job(row) for row in rows_of(path, "pods", content)]
    if not jobs:
        raise TraceError(f"{path}: wanted a row for each pod, found none")
    _refuse_twice(path, [job.name for job in jobs])
    known = {machine.model for machine in machines}
    for job in jobs:
        if job.models and not known & set(job.models):
            listed = ", ".join(sorted(known))
            raise TraceError(
                f"{path}: pod {job.name} asks for {'|'.join(job.models)};"
                f" the nodes have only: {listed}"
            )
    return tuple(pod_of(job) for job in jobs)


def _refuse_twice(path: Path, names: list[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise TraceError(f"{path}: {name!r} is there twice; every row needs a name of its own")
        seen.add(name)


def _machine(row: InputRow) -> Machine:
    return Machine(
        row.text("sn", "name"),
        row.cpu_milli(),
        row.memory_mib(),
        row.number("gpu", "gpus", most=_MOST_CARDS),
        row.text("model") if row.has("model") else "",
    )


def _job(row: InputRow) -> Job:
    cards, card_milli = _cards(row)
    arrives, runs = _times(row)
    column = "gpu_spec" if row.has("gpu_spec") else "models"
    models = row.fields.get(column, "")
    return Job(
        row.text("name"),
        row.cpu_milli(),
        row.memory_mib(),
        cards,
        card_milli,
        tuple(sorted({model.strip() for model in models.split("|") if model.strip()})),
        arrives,
        runs,
        row.fields.get("gang", "").strip(),
    )


def _cards(row: InputRow) -> tuple[int, int]:
    if "num_gpu" not in row.fields:
        return _cards_of_amount(row)
    cards = row.number("num_gpu", most=_MOST_CARDS)
    milli = row.number("gpu_milli", most=MILLI) if "gpu_milli" in row.fields else MILLI
    if cards and not milli:
        raise row.wrong("gpu_milli", f"a whole number from 1 to {MILLI} for a pod with GPUs")
    return (cards, milli) if cards else (0, 0)


def _cards_of_amount(row: InputRow) -> tuple[int, int]:
    column = row.column("gpu", "gpus")
    wanted = f"a number of cards up to {_MOST_CARDS}, or a part of one card such as 0.25"
    try:
        amount = Decimal(row.fields[column].strip() or "0") * MILLI
    except DecimalException:
        raise row.wrong(column, wanted) from None
    # The size first: 1E999999 as a whole number has a million digits.
    if not amount.is_finite() or not 0 <= amount <= _MOST_CARDS * MILLI:
        raise row.wrong(column, wanted)
    milli = int(amount)
    if milli != amount or (milli > MILLI and milli % MILLI):
        raise row.wrong(column, wanted)
    if milli <= MILLI:
        return (1, milli) if milli else (0, 0)
    return milli // MILLI, MILLI


def _times(row: InputRow) -> tuple[int | None, int | None]:
    if row.has("arrives_s"):
        return row.number("arrives_s"), row.number("runs_s") if row.has("runs_s") else None
    if not row.has("creation_time"):
        return None, None
    arrives = row.number("creation_time")
    if not row.has("deletion_time"):
        return arrives, None
    # A pod runs from when it got its node. The time that it waited in the recorded cluster is not
    # part of that: the replay has waiting times of its own.
    began = row.number("scheduled_time") if row.has("scheduled_time") else arrives
    return arrives, max(0, row.number("deletion_time") - began)
