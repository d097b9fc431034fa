"""The documents of all commands have the fields that docs/output.md promises, and no others."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gpupool.cli import doctor, example
from gpupool.cli.main import gpupool
from gpupool.core.gpu import CardHealth
from gpupool.doctor.evidence import Finding, Level
from kubeclient.objects import Obj
from tests.cli.output.world import HOLDER, NODES_OF_WORLD, UUID, WAITER, World, holding

PAGE = Path(__file__).parents[3] / "docs" / "output.md"
OF_A_CLUSTER = {
    "CardList": ("gpu", "list"),
    "CardShareList": ("gpu", "pods"),
    "NodeMemoryList": ("inspect",),
    "PodExplanationList": ("explain", WAITER),
    "DefragPlan": ("defrag",),
    "WhatIf": ("whatif", "--without", NODES_OF_WORLD[0]),
}
OF_THIS_MACHINE = {
    "ClusterList": ("clusters",),
    "ClusterStatus": ("status", "--name", "a"),
    "QuotaList": ("quota",),
    "MachineList": ("machines",),
    "ExampleList": ("example",),
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(gpupool, arguments, catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "-o", "json").stdout)
    return found


def described(kind: str) -> set[str]:
    """The fields that the section of the kind names."""
    sections = PAGE.read_text(encoding="utf-8").split("\n### ")
    [section] = [each for each in sections if f"`{kind}`" in each.partition("\n")[0]]
    return set(re.findall(r"`([a-z][a-zA-Z]*)`", section))


def fields(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner)


def check(kind: str, found: dict[str, Any]) -> None:
    assert found.pop("apiVersion") == "cli.gpupool.io/v1"
    assert found.pop("kind") == kind
    names = set(fields(found.get("items", found)))
    assert names
    assert names <= described(kind)
    assert all(re.fullmatch(r"[a-z][a-zA-Z]*", name) for name in names)


@pytest.mark.parametrize("kind", OF_A_CLUSTER)
def test_every_field_about_a_cluster_is_described(world: World, kind: str) -> None:
    check(kind, document(*OF_A_CLUSTER[kind], *world.where))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("kind", OF_THIS_MACHINE)
def test_every_field_about_this_machine_is_described(kind: str) -> None:
    run("machines", "add", "ecs.gn5-c4g1.xlarge")
    check(kind, document(*OF_THIS_MACHINE[kind]))


def test_every_field_of_a_finding_is_described() -> None:
    findings = (Finding(Level.WRONG, "nodes", "it burns", "use water"),)
    check("FindingList", doctor.page_of(findings).document())


def test_every_field_of_an_example_that_ran_is_described() -> None:
    pods = [holding(HOLDER, NODES_OF_WORLD[0], 0), waiting_pod()]
    found = example.record_of("shared-gpus", pods, ["http://127.0.0.2"]).document()
    assert found["waiting"] == [{"pod": WAITER, "message": "0/2 nodes are available."}]
    assert {*found.pop("shares")[0]} <= described("CardShareList")
    check("ExampleRun", found)


def waiting_pod() -> Obj:
    why = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available."}
    metadata = {"name": WAITER, "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": []}, "status": {"conditions": [why]}}


def test_every_field_of_a_replay_is_described() -> None:
    found = document("replay", "--synthetic", "2", "--churn", "50")
    results = found.pop("results")
    assert {"policy", "seed"} <= {*results[0]} & described("Replay")
    check("Replay", found)


@pytest.mark.parametrize("kind", [*OF_A_CLUSTER, *OF_THIS_MACHINE])
@pytest.mark.usefixtures("cluster")
def test_yaml_says_the_same_as_json(world: World, kind: str) -> None:
    where = world.where if kind in OF_A_CLUSTER else ()
    command = (*(OF_A_CLUSTER | OF_THIS_MACHINE)[kind], *where)
    assert yaml.safe_load(run(*command, "-o", "yaml").stdout) == document(*command)


def test_a_card_in_json(world: World) -> None:
    world.set_health(CardHealth.CORDONED, "loud fan")
    found = document("gpu", "list", NODES_OF_WORLD[0], *world.where)["items"]
    assert [item["index"] for item in found] == [0, 1]
    wanted = {
        "node": NODES_OF_WORLD[0],
        "index": 1,
        "uuid": UUID.format(0, 1),
        "model": "Tesla V100-SXM2-16GB",
        "memoryMiB": 16130,
        "units": 15,
        "unitMiB": 1024,
        "health": "cordoned",
        "reason": "loud fan",
        "numaNode": None,
        "outsideMiB": 0,
    }
    assert {name: found[1][name] for name in wanted} == wanted


def test_a_share_in_json(world: World) -> None:
    [found] = document("gpu", "pods", *world.where)["items"]
    assert found == {
        "namespace": "default",
        "pod": HOLDER,
        "container": "trainer",
        "status": "Pending",
        "node": NODES_OF_WORLD[0],
        "card": 0,
        "uuid": UUID.format(0, 0),
        "memoryMiB": 5376,
        "units": 5,
        "cardUnits": 15,
        "computePercent": 20,
        "isolation": "limiter",
        "possibleCards": [],
        "reason": "",
    }


def test_why_a_pod_waits_in_json(world: World) -> None:
    [found] = document("explain", WAITER, *world.where)["items"]
    assert found["verdict"] == "waits"
    assert found["message"].startswith(
        "0/2 nodes are available: 2 Insufficient aliyun.com/gpu-mem."
    )
    assert [node["name"] for node in found["nodes"]] == list(NODES_OF_WORLD)


def test_the_text_of_inspect_is_the_same_as_ever(world: World) -> None:
    world.set_health(CardHealth.HEALTHY)
    first, second = NODES_OF_WORLD
    assert run("inspect", *world.where).stdout == (
        "NAME                               IPADDRESS  "
        "GPU0(Allocated/Total)  GPU1(Allocated/Total)  GPU Memory(GiB)\n"
        f"{first}  unknown    5/15                   0/15                   5/30\n"
        f"{second}          unknown    0/15                   0/15                   0/30\n"
        f"{'-' * 77}\n"
        "Allocated/Total GPU Memory In Cluster:\n"
        "5/60 (8%)\n"
    )


def test_nothing_is_an_empty_list_for_programs_and_a_sentence_for_people(world: World) -> None:
    found = document("gpu", "pods", NODES_OF_WORLD[1], *world.where)
    assert found["items"] == []
    said = run("gpu", "pods", NODES_OF_WORLD[1], "--no-headers", *world.where)
    assert (said.exit_code, said.stdout) == (0, "")
    assert said.stderr == f"No pod has a card on node {NODES_OF_WORLD[1]}.\n"


@pytest.mark.usefixtures("cluster")
def test_names_only_for_loops_of_the_shell() -> None:
    assert run("clusters", "-o", "name").stdout == "a\n"
    assert run("quota", "-o", "name").stdout.splitlines()[0] == "clusters"
    assert "shared-gpus\n" in run("example", "-o", "name").stdout


@pytest.mark.usefixtures("cluster")
def test_without_headers_there_are_only_rows() -> None:
    assert run("clusters", "--no-headers").stdout.split()[:2] == ["a", "Stopped"]


def test_an_unknown_format_is_refused_with_those_that_there_are() -> None:
    result = run("clusters", "-o", "xml")
    assert result.exit_code == 2
    assert "'xml' is not one of 'table', 'wide', 'json', 'yaml', 'name'" in result.output


def test_wide_is_an_option_too(world: World) -> None:
    where = ("gpu", "pods", *world.where)
    assert run(*where, "--wide").stdout == run(*where, "-o", "wide").stdout
    assert run(*where, "--wide", "-o", "json").stdout == run(*where, "-o", "json").stdout
