"""Requests about pods as a training cluster has them: about 1.5 KB sent, 3 KB stored."""

from typing import Any

import orjson

Requests = list[tuple[str, str, str]]  # method, path, body


def listing(query: str) -> str:
    return f"/api/v1/namespaces/default/pods{query}"


def pod(name: str, *, epochs: str = "90") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "train", "team": "vision", "run": "17"}},
        "spec": {
            "nodeSelector": {"aliyun.accelerator/nvidia_name": "Tesla-V100"},
            "containers": [
                {
                    "name": "main",
                    "image": "tensorflow/tensorflow:1.4.1-gpu-py3",
                    "command": ["python3", "/app/main.py"],
                    "env": [
                        {"name": "PASSWORD", "value": "mypassw0rd"},
                        {"name": "EPOCHS", "value": epochs},
                    ],
                    "ports": [{"containerPort": 8888}],
                    "resources": {
                        "requests": {"cpu": "2", "memory": "8Gi"},
                        "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
                    },
                }
            ],
        },
    }


def creates(names: list[str], *, alike: bool = True) -> Requests:
    """`alike`: of one template, as a workload makes them; otherwise no two have the same spec."""
    return [
        (
            "POST",
            listing(""),
            orjson.dumps(pod(name, epochs="90" if alike else name)).decode(),
        )
        for name in names
    ]


def bindings(names: list[str]) -> Requests:
    return [("POST", listing(f"/{name}/binding"), _binding(name)) for name in names]


def _binding(name: str) -> str:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {"gpupool.io/allocation": "{}"}},
        "target": {"kind": "Node", "name": "node-1"},
    }
    return orjson.dumps(binding).decode()
