"""A generated trace from a number of nodes and a seed: for first tries, tests and benchmarks.

Machines and sizes are of the kinds that GPU clusters have: mostly machines with eight cards, most
pods with one card or less, a few with many; some may only run on certain models.
"""

import random
from dataclasses import replace

from gpupool.replay.trace import MILLI, Job, Machine, Trace, node_of, pod_of

# (weight, CPU in thousandths, memory in MiB, cards, model)
_MACHINES = (
    (45, 96_000, 393_216, 8, "A100"),
    (30, 104_000, 524_288, 2, "T4"),
    (10, 32_000, 131_072, 4, "V100"),
    (9, 16_000, 122_880, 2, "P100"),
    (6, 128_000, 786_432, 8, "H100"),
)
# (weight, cards, thousandths of each card)
_SIZES = (
    (13, 0, 0),
    (45, 1, MILLI),
    (13, 1, 800),
    (10, 1, 500),
    (6, 1, 330),
    (5, 1, 650),
    (4, 1, 250),
    (2, 1, 125),
    (0.6, 2, MILLI),
    (0.6, 4, MILLI),
    (0.8, 8, MILLI),
)
_CPUS_FOR_A_CARD = (4, 6, 8, 8, 12)
_GIB_FOR_A_CPU = (2, 4, 4, 8)
_MODEL_BOUND = 0.1  # of the pods with GPUs
_MODELS = ("A100", "H100", "A100|H100", "T4", "V100", "T4|P100")
_ARRIVE_WITHIN_S = 8 * 3600
_MEAN_RUN_S = 12 * 3600


# (weight, pods of the gang, whole cards of each): together half of the GPU that is asked for.
_LARGE = ((70, 1, 8), (20, 2, 8), (10, 4, 8))
_LARGE_RUN_S = 4 * 3600
_SMALL_RUN_S = 2 * 3600
_LARGE_ARRIVE_WITHIN_S = 96 * 3600
_TIMES_THE_CLUSTER = 6  # so much GPU do the pods of a trace of large jobs ask for


def synthetic_trace(nodes: int, seed: int = 0) -> Trace:
    """The pods together ask for about as many cards as there are, and arrive within hours."""
    draw = random.Random(seed)
    kinds = draw.choices(_MACHINES, [kind[0] for kind in _MACHINES], k=nodes)
    machines = [
        Machine(f"node-{at:05}", cpu, memory, cards, model)
        for at, (_, cpu, memory, cards, model) in enumerate(kinds)
    ]
    models = {machine.model for machine in machines}
    wanted = MILLI * sum(machine.cards for machine in machines)
    jobs: list[Job] = []
    while wanted > 0:
        job = _job(draw, f"pod-{len(jobs):06}", models)
        wanted -= job.cards * job.card_milli
        jobs.append(job)
    name = f"synthetic, {nodes} nodes, seed {seed}"
    pods = tuple(pod_of(job) for job in jobs)
    return Trace(name, tuple(node_of(m) for m in machines), pods, seed=seed)


def large_trace(nodes: int, seed: int = 0) -> Trace:
    """Half of the GPU is asked for by jobs of eight cards and more, some of them gangs of pods."""
    draw = random.Random(seed)
    _, cpu, memory, cards, model = _MACHINES[0]
    machines = [Machine(f"node-{at:05}", cpu, memory, cards, model) for at in range(nodes)]
    wanted = _TIMES_THE_CLUSTER * MILLI * cards * nodes // 2
    small: list[Job] = []
    while wanted > 0:
        job = _job(draw, f"pod-{len(small):06}", set())
        if job.cards <= 1:
            small.append(_at(draw, job, _SMALL_RUN_S))
            wanted -= job.cards * job.card_milli
    large = _gangs(draw, _TIMES_THE_CLUSTER * MILLI * cards * nodes // 2)
    pods = tuple(pod_of(job) for job in (*small, *large))
    name = f"large jobs, {nodes} nodes, seed {seed}"
    return Trace(name, tuple(node_of(m) for m in machines), pods, seed=seed)


def _gangs(draw: random.Random, wanted: int) -> list[Job]:
    jobs: list[Job] = []
    while wanted > 0:
        _, pods, cards = draw.choices(_LARGE, [kind[0] for kind in _LARGE])[0]
        gang = f"gang-{len(jobs):06}"
        first = Job(gang, cards * 8000, cards * 32_768, cards, MILLI)
        first = _at(draw, first, _LARGE_RUN_S)
        for member in range(pods):
            name = f"{gang}-{member}"
            jobs.append(replace(first, name=name, gang=gang if pods > 1 else ""))
        wanted -= pods * cards * MILLI
    return jobs


def _at(draw: random.Random, job: Job, mean_s: int) -> Job:
    runs_s = round(draw.expovariate(1 / mean_s)) + 60
    return replace(job, arrives_s=draw.randrange(_LARGE_ARRIVE_WITHIN_S), runs_s=runs_s)


def _job(draw: random.Random, name: str, models: set[str]) -> Job:
    _, cards, milli = draw.choices(_SIZES, [size[0] for size in _SIZES])[0]
    part = max(cards * milli, MILLI // 4) / MILLI
    cpus = max(1, round(draw.choice(_CPUS_FOR_A_CARD) * part))
    bound = draw.choice(_MODELS).split("|") if cards and draw.random() < _MODEL_BOUND else []
    return Job(
        name,
        cpus * 1000,
        cpus * draw.choice(_GIB_FOR_A_CPU) * 1024,
        cards,
        milli,
        tuple(sorted(models & set(bound))) if cards <= 2 else (),
        draw.randrange(_ARRIVE_WITHIN_S),
        round(draw.expovariate(1 / _MEAN_RUN_S)) + 60,
    )
