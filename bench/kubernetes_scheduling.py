"""Pods bound per second on a real kube-apiserver: kube-scheduler, gpupool, and a bare loop.

    python -m bench.kubernetes_scheduling --nodes 1000 5000 --pods 6000 --rounds 3
    python -m bench.kubernetes_scheduling --only raised extender --cores apart --rounds 5

Everybody has a turn in every round. Other users of the machine slow one turn down and not the next,
so what is compared is compared within a round, and the median of the rounds counts. There are many
pods because the server collects its garbage every few thousand requests: half a second each time.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp
import orjson

from bench.bound_pods import (
    CARDS,
    Command,
    Figure,
    by_hand,
    by_programs,
    control_plane,
    one_by_one_ms,
    pod,
    programs,
    until_it_answers,
    waiting_pods,
)
from bench.saved import here_and_now, save
from gpupool.cli.programs import event_loop
from gpupool.contract.names import EXTENDER_PROFILE, SCHEDULER_NAME
from gpupool.scheduler.extender_server import PREFIX
from gpupool.scheduler.kube_scheduler_config import kube_scheduler_config
from kubeclient.client import Kube
from kubeclient.objects import Obj
from testbed import build
from testbed.controlplane import ControlPlane
from testbed.processes import Child, free_port

_RAISED_QPS = 5000
_FILTERS = 300
_SINGLE = 300
_CORES = ("apart", "beside")
_FEWEST_PODS = 10  # of which a tenth can be left out

DEFAULT = "kube-scheduler, as it comes"
RAISED = f"kube-scheduler, qps {_RAISED_QPS}"
EXTENDER = "gpupool, asked by it"
UNSAMPLED = "gpupool, asked, default profile"  # as many nodes as kube-scheduler wants
SECOND = "gpupool, second scheduler"
BARE = "bare loop of Bindings"
# Their short names, for `--only`.
TITLES = {
    "default": DEFAULT,
    "raised": RAISED,
    "extender": EXTENDER,
    "unsampled": UNSAMPLED,
    "second": SECOND,
    "bare": BARE,
}


class Contender(NamedTuple):
    scheduler: str  # the pods' schedulerName
    commands: Sequence[Command]  # none: a bare loop
    ready: str = ""
    share: float = 1.0  # of the pods: who is slow gets fewer


def kube_scheduler(plane: ControlPlane, folder: Path, qps: int, extender: int = 0) -> list[str]:
    """`extender` is the port at which it asks gpupool; 0: it decides alone."""
    connection: Obj = {"kubeconfig": str(plane.kubeconfig)}
    if qps:
        connection |= {"qps": qps, "burst": 2 * qps}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": connection,
    }
    if extender:
        config = {**kube_scheduler_config(f"http://127.0.0.1:{extender}"), **config}
    file = folder / "kube-scheduler.json"
    file.write_text(json.dumps(config))
    return [str(build.ensure("kube-scheduler")), f"--config={file}", "--secure-port=0"]


def gpupool(plane: ControlPlane, folder: Path) -> list[str]:
    flags = [f"--kubeconfig={plane.kubeconfig}", "--health-address="]
    return [sys.executable, "-m", "gpupool", "scheduler", *flags]


def extender(plane: ControlPlane, folder: Path, port: int) -> list[str]:
    flags = [f"--kubeconfig={plane.kubeconfig}", f"--address=127.0.0.1:{port}"]
    return [sys.executable, "-m", "gpupool", "extender", *flags]


def contenders(titles: Sequence[str]) -> dict[str, Contender]:
    port = free_port()
    ours = partial(extender, port=port)
    asked = (ours, partial(kube_scheduler, qps=_RAISED_QPS, extender=port))
    ready = f"http://127.0.0.1:{port}/readyz"
    alone, raised = partial(kube_scheduler, qps=0), partial(kube_scheduler, qps=_RAISED_QPS)
    everybody = {
        DEFAULT: Contender("default-scheduler", (alone,), share=0.1),
        RAISED: Contender("default-scheduler", (raised,), share=0.3),
        EXTENDER: Contender(EXTENDER_PROFILE, asked, ready, share=0.3),
        UNSAMPLED: Contender("default-scheduler", asked, ready, share=0.3),
        SECOND: Contender(SCHEDULER_NAME, (gpupool,)),
        BARE: Contender("nobody", ()),
    }
    return {title: everybody[title] for title in titles}


async def filter_ms(plane: ControlPlane, nodes: int) -> list[float]:
    """How long the extender takes for `filter` with all nodes, as kube-scheduler waits for it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    names = [f"node-{n}" for n in range(nodes)]
    took_ms = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        child = Child("extender", extender(plane, folder, port), folder / "log")
        try:
            await until_it_answers(f"{url}/readyz", child)
            async with aiohttp.ClientSession() as session:
                for number in range(_FILTERS):
                    made = pod(f"pod-{number}", "default-scheduler")
                    made["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "1"}
                    body = {"Pod": made, "Nodes": None, "NodeNames": names}
                    raw, began_s = orjson.dumps(body), time.monotonic()
                    async with session.post(f"{url}{PREFIX}/filter", data=raw) as answer:
                        await answer.read()
                    took_ms.append((time.monotonic() - began_s) * 1000)
        finally:
            await asyncio.to_thread(child.stop)
    return sorted(took_ms)


async def _turn(
    plane: ControlPlane, kube: Kube, nodes: int, pods: int, contender: Contender
) -> Figure:
    async with waiting_pods(kube, pods, contender.scheduler):
        if contender.commands:
            return await by_programs(plane, kube, pods, contender.commands, contender.ready)
        return await by_hand(plane, kube, nodes, pods)


async def _single_ms(plane: ControlPlane, kube: Kube, contender: Contender) -> dict[str, float]:
    async with programs(plane, contender.commands, contender.ready):
        took_ms = await one_by_one_ms(kube, _SINGLE, contender.scheduler)
    return _percentiles(took_ms)


def _percentiles(took_ms: Sequence[float]) -> dict[str, float]:
    return {"p50": took_ms[len(took_ms) // 2], "p99": took_ms[len(took_ms) * 99 // 100]}


async def measured(
    nodes: int, pods: int, rounds: int, titles: Sequence[str], *, apart: bool
) -> dict[str, Any]:
    found: dict[str, list[Figure]] = {}
    where = "apart from the server" if apart else "beside the server"
    async with control_plane(nodes, apart) as (plane, kube):
        for number in range(rounds):
            for title, contender in contenders(titles).items():
                count = max(_FEWEST_PODS, int(pods * contender.share))
                figure = await _turn(plane, kube, nodes, count, contender)
                found.setdefault(title, []).append(figure)
                progress = f"{nodes:,} nodes, {where}, round {number + 1}: {title}"
                print(f"{progress:<75}{figure.per_second:>6,.0f}/s", file=sys.stderr, flush=True)
        single_ms = {
            title: await _single_ms(plane, kube, contender)
            for title, contender in contenders(titles).items()
            if contender.commands
        }
        took_ms = await filter_ms(plane, nodes)
    return {
        "nodes": nodes,
        "pods": pods,
        "where": where,
        "rounds": {title: [figure._asdict() for figure in each] for title, each in found.items()},
        "medians": {title: _median(each) for title, each in found.items()},
        "to_kube_scheduler": _ratios(found, RAISED),
        "to_bare_loop": _ratios(found, BARE),
        "single_ms": single_ms,
        "filter_ms": _percentiles(took_ms),
    }


def _median(figures: Sequence[Figure]) -> dict[str, float]:
    return {name: median(getattr(figure, name) for figure in figures) for name in Figure._fields}


def _ratios(found: Mapping[str, Sequence[Figure]], to: str) -> dict[str, float]:
    """None of them, if that one had no turn."""
    return {title: _ratio(each, found[to]) for title, each in found.items() if to in found}


def _ratio(ours: Sequence[Figure], theirs: Sequence[Figure]) -> float:
    """Within a round."""
    return median(a.per_second / b.per_second for a, b in zip(ours, theirs, strict=True))


def lines(size: dict[str, Any]) -> list[str]:
    head = f"{size['nodes']:,} nodes, {size['where']}"
    columns = ("bound", "to kube-s.", "to bare loop", "CPU of scheduler", "extender", "of server")
    text = [f"{head:<34}" + "".join(f"{column:>18}" for column in columns)]
    for title, figure in size["medians"].items():
        cells = (
            f"{figure['per_second']:,.0f}/s",
            _shown(size["to_kube_scheduler"].get(title), "{:.2f} x"),
            _shown(size["to_bare_loop"].get(title), "{:.0%}"),
            f"{figure['scheduler_ms']:.2f} ms",
            f"{figure['first_ms']:.2f} ms" if title in (EXTENDER, UNSAMPLED) else "",
            f"{figure['server_ms']:.2f} ms",
        )
        text.append(f"{title:<34}" + "".join(f"{cell:>18}" for cell in cells))
    times = [("extender's filter, all nodes", size["filter_ms"])]
    times += [(f"{title}, a single pod", took) for title, took in size["single_ms"].items()]
    return text + [
        f"{what}: p50 {took['p50']:.1f}, p99 {took['p99']:.1f} ms" for what, took in times
    ]


def _shown(ratio: float | None, how: str) -> str:
    """Empty where the one to compare with had no turn."""
    return "" if ratio is None else how.format(ratio)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Pods bound per second on a real kube-apiserver.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--cores", nargs="+", choices=_CORES, default=list(_CORES))
    options = parser.parse_args(arguments)
    titles = [TITLES[name] for name in options.only]
    figures = here_and_now()
    sizes = []
    with asyncio.Runner(loop_factory=event_loop) as runner:
        for nodes, cores in product(options.nodes, options.cores):
            apart = cores == "apart"
            turns = measured(nodes, options.pods, options.rounds, titles, apart=apart)
            sizes.append(runner.run(turns))
    figures["kubernetes_scheduling"] = sizes
    what = f"Up to {options.pods:,} pods of one card, nodes of {CARDS}"
    print(f"{what}; medians of {options.rounds} rounds\n")
    print("\n\n".join("\n".join(lines(size)) for size in sizes))
    save(figures)


if __name__ == "__main__":
    main()
