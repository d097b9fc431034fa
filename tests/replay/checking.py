"""An independent, naive check of placements, which uses none of our code."""

import csv
from pathlib import Path
from typing import Any


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def faults(pods: Path, nodes: Path, placements: Path) -> list[str]:
    """Problems of the placements. Pods leave only where `gone_before` says so."""
    machines: dict[str, dict[str, Any]] = {}
    for node in rows(nodes):
        machines[node["sn"]] = {
            "cpu": int(node["cpu_milli"]),
            "memory": int(node["memory_mib"]),
            "cards": [1000] * int(node["gpu"]),
            "model": node["model"],
        }
    wanted = {pod["name"]: pod for pod in rows(pods)}
    found: list[str] = []
    running: list[tuple[int, str, str, list[int]]] = []
    for number, line in enumerate(rows(placements), 1):
        if int(line["arrival"]) != number:
            found.append(f"{number}: the arrivals are not counted")
        for entry in [entry for entry in running if entry[0] <= number]:
            running.remove(entry)
            _take(machines[entry[2]], wanted[entry[1]], entry[3], -1)
        pod = wanted[line["pod"]]
        if not line["node"]:
            continue
        machine = machines[line["node"]]
        cards = [int(card) for card in line["cards"].split("|") if card]
        if len(set(cards)) != int(pod["num_gpu"]) or len(set(cards)) != len(cards):
            found.append(f"{number}: {len(cards)} cards for {pod['num_gpu']}")
        spec = pod.get("gpu_spec", "")
        if spec and machine["model"] not in spec.split("|"):
            found.append(f"{number}: model {machine['model']}, not {spec}")
        _take(machine, pod, cards, 1)
        if machine["cpu"] < 0 or machine["memory"] < 0 or min(machine["cards"], default=0) < 0:
            found.append(f"{number}: {line['node']} is over its limits: {machine}")
        if "gone_before" in line:
            running.append((int(line["gone_before"]), line["pod"], line["node"], cards))
    return found


def _take(machine: dict[str, Any], pod: dict[str, str], cards: list[int], sign: int) -> None:
    machine["cpu"] -= sign * int(pod["cpu_milli"])
    machine["memory"] -= sign * int(pod["memory_mib"])
    for card in cards:
        machine["cards"][card] -= sign * int(pod["gpu_milli"])
