"""Snapshots: what decisions depend on is kept, and nothing else gets out."""

import copy
from typing import Any

import orjson

from gpupool.contract.nodes import node_of
from gpupool.contract.pods import pod_request
from gpupool.contract.snapshot import snapshot, trimmed
from kubeclient.objects import Obj

SECRET = "hunter2"
POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "team",
        "uid": "u",
        "labels": {"app": "web"},
        "annotations": {
            "gpupool.io/card-models": "V100",
            "kubectl.kubernetes.io/last-applied-configuration": SECRET,
            "notgpupool.io/token": SECRET,
        },
        "managedFields": [{"manager": SECRET}],
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "o", "controller": True}],
    },
    "spec": {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
        "priority": 7,
        "imagePullSecrets": [{"name": SECRET}],
        "containers": [
            {
                "name": "c",
                "image": SECRET,
                "command": [SECRET],
                "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "resources": {"requests": {"aliyun.com/gpu-mem": "3"}},
                "ports": [{"containerPort": 80, "hostPort": 80}],
                "livenessProbe": {"exec": {"command": [SECRET]}},
            }
        ],
        "initContainers": [{"name": "i", "args": [SECRET], "resources": {}}],
        "volumes": [
            {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "s", "secret": {"secretName": SECRET}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"note": SECRET}}},
        ],
    },
    "status": {
        "phase": "Running",
        "message": SECRET,
        "podIP": SECRET,
        "conditions": [
            {"type": "example.com/ready", "status": "False", "message": SECRET},
            {"type": "PodScheduled", "status": "False", "message": "Reserved for it", "x": SECRET},
        ],
    },
}
NODE: Obj = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n",
        "labels": {"cgpu": "true"},
        "annotations": {"gpupool.io/inventory": '{"version": 1, "cards": []}', "x": SECRET},
    },
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "providerID": SECRET},
    "status": {
        "allocatable": {"cpu": "8", "pods": "110"},
        "images": [{"names": [SECRET]}],
        "conditions": [{"type": "Ready", "status": "True", "message": SECRET}],
    },
}


def test_nothing_secret_gets_into_a_snapshot() -> None:
    others: list[Obj] = [
        {"kind": "PersistentVolume", "spec": {"csi": {"driver": "d", "volumeAttributes": SECRET}}},
        {"kind": "Secret", "data": {"password": SECRET}},
        {"kind": "Namespace", "spec": {"note": SECRET}},
        {"kind": "StorageClass", "parameters": {"key": SECRET}, "provisioner": "p"},
    ]
    for other in others:
        other["metadata"] = {"name": "o", "annotations": {"a": SECRET}}
    found = snapshot([POD, NODE, *others])
    assert SECRET not in orjson.dumps(found).decode()
    assert found["kind"] == "List"
    # What it says of kept room is read again.
    assert "Reserved for it" in orjson.dumps(found).decode()


def test_requests_of_pods_and_nodes_are_the_same_after_a_snapshot() -> None:
    before: tuple[Any, Any] = copy.deepcopy((POD, NODE))
    assert pod_request(trimmed(POD)) == pod_request(POD)
    assert node_of(trimmed(NODE)) == node_of(NODE)
    assert before == (POD, NODE)
