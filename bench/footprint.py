"""What the programs of production weigh: the packages in their image, modules loaded, memory.

python -m bench.footprint [CHECKOUT]     another checkout of gpupool, to compare with

Each checkout's wheel is put into an empty environment with what its metadata asks for. The programs
run from there against one localkube cluster, and are looked at once they have settled.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.report import aligned
from bench.saved import here_and_now, save
from gpupool.hardware.simdriver import NodeFiles, create_node
from gpupool.hardware.simdriver_cards import card_profile
from localkube.cluster import Cluster
from localkube.kubelet.node_files import DEVICE_PLUGINS, node_disk
from tools.environments import ROOT, Environment, build_wheels, environment

_SETTLES_S = 6.0
_STARTS = 7
_NODE = "node-0"


def measure_footprint(root: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fp-") as scratch:
        wheels = Path(scratch, "wheels")
        wheels.mkdir()
        where = environment(Path(scratch, "env"), build_wheels(wheels, root), "gpupool[kubernetes]")
        with Cluster(nodes=3, directory=Path(scratch, "lk")) as cluster:
            programs = {
                name: _run(where, [name, *arguments], cluster.kubeconfig)
                for name, arguments in _programs(Path(scratch), cluster).items()
            }
        return {
            "image_packages_mb": round(where.megabytes, 1),
            "distributions": len(where.distributions),
            "help_ms": _help_ms(where),
            "programs": programs,
        }


def _programs(scratch: Path, cluster: Cluster) -> dict[str, list[str]]:
    driver = scratch / "driver"
    create_node(driver, _NODE, [card_profile("Tesla T4", 15109)] * 2)
    plugins = node_disk(cluster.directory / "pods", _NODE) / DEVICE_PLUGINS
    state = str(NodeFiles(driver).state)
    return {
        "agent": [
            *("--node", _NODE, "--plugins", str(plugins), "--simulated", state, "--way", "runtime")
        ],
        "scheduler": ["--health-address", ""],
        "admission": ["--address", "127.0.0.1:0"],
        "console": ["--port", "0"],
    }


def _run(where: Environment, command: list[str], kubeconfig: Path) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as said:
        program = subprocess.Popen(
            [
                str(where.path / "bin" / "python"),
                *("-X", "importtime", "-m", "gpupool", *command, "--kubeconfig", str(kubeconfig)),
            ],
            env={"PATH": os.defpath, "HOME": str(where.path)},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            time.sleep(_SETTLES_S)
            if program.poll() is not None:
                said.seek(0)
                raise RuntimeError(f"{command[0]} ended: {said.read()[-800:]}")
            memory = Path(f"/proc/{program.pid}/smaps_rollup").read_text()
        finally:
            program.terminate()
            program.wait()
        said.seek(0)
        modules = sum(line.startswith("import time:") for line in said) - 1
    rss_kib = int(re.search(r"^Rss:\s+(\d+)", memory, re.MULTILINE)[1])  # type: ignore[index]
    return {"memory_mib": round(rss_kib / 1024, 1), "modules": modules}


def _help_ms(where: Environment) -> float:
    """The best of several: this machine has neighbours."""
    took = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        where.run("gpupool", "--help")
        took.append(time.perf_counter() - began)
    return round(min(took) * 1000, 1)


def main(roots: list[Path]) -> None:
    figures = here_and_now()
    titles = ["here", *(str(root) for root in roots)]
    for title, root in zip(titles, [ROOT, *roots], strict=True):
        print(f"measuring {title} ...", file=sys.stderr, flush=True)
        figures[title] = measure_footprint(root)
    print(aligned(_rows(figures, titles)))
    save(figures)


def _rows(figures: dict[str, Any], titles: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", *titles)]
    found = [figures[title] for title in titles]
    rows.append(("packages in the image", *(f"{each['image_packages_mb']} MB" for each in found)))
    rows.append(("distributions", *(str(each["distributions"]) for each in found)))
    rows.append(("gpupool --help, best", *(f"{each['help_ms']} ms" for each in found)))
    for name in found[0]["programs"]:
        each_one = [each["programs"][name] for each in found]
        rows.append((f"{name}: memory", *(f"{each['memory_mib']} MiB" for each in each_one)))
        rows.append((f"{name}: modules", *(f"{each['modules']:,}" for each in each_one)))
    return rows


if __name__ == "__main__":
    main([Path(given).resolve() for given in sys.argv[1:]])
