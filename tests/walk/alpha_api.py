"""The document about the alpha API of GPUs, in a cluster whose nodes have eight P100 each."""

import re

from tests.walk.terminal import Terminal, rows

TWO_CONTAINERS = """\
apiVersion: v1
kind: Pod
metadata:
  name: gpu-pod
spec:
  containers:
    -
      name: gpu-container-1
      image: k8s.gcr.io/pause:2.0
      resources:
        limits:
          alpha.kubernetes.io/nvidia-gpu: 2 # requesting 2 GPUs
    -
      name: gpu-container-2
      image: k8s.gcr.io/pause:2.0
      resources:
        limits:
          alpha.kubernetes.io/nvidia-gpu: 3 # requesting 3 GPUs
"""
# As the document prints it: its kind in small letters, without a name and without an image.
BY_CARD_NAME = """\
kind: pod
apiVersion: v1
metadata:
  annotations:
    scheduler.alpha.kubernetes.io/affinity: >
      {
        "nodeAffinity": {
          "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
              {
                "matchExpressions": [
                  {
                    "key": "alpha.kubernetes.io/nvidia-gpu-name",
                    "operator": "In",
                    "values": ["Tesla K80", "Tesla P100"]
                  }
                ]
              }
            ]
          }
        }
      }
spec:
  containers:
    -
      name: gpu-container-1
      resources:
        limits:
          alpha.kubernetes.io/nvidia-gpu: 2
"""
WITH_LIBRARIES = """\
kind: Pod
apiVersion: v1
metadata:
  name: gpu-pod
spec:
  containers:
  - name: gpu-container-1
    image: k8s.gcr.io/pause:2.0
    resources:
      limits:
        alpha.kubernetes.io/nvidia-gpu: 1
    volumeMounts:
    - mountPath: /usr/local/nvidia/bin
      name: bin
    - mountPath: /usr/lib/nvidia
      name: lib
  volumes:
  - hostPath:
      path: /usr/lib/nvidia-375/bin
    name: bin
  - hostPath:
      path: /usr/lib/nvidia-375
    name: lib
"""
CARD = "Tesla P100-PCIE-16GB"


def walk(terminal: Terminal) -> None:
    """In the cluster of the document about notebooks."""
    _several_cards(terminal)
    _rules(terminal)
    _by_the_name_of_the_card(terminal)
    _libraries_of_the_node(terminal)


def _several_cards(terminal: Terminal) -> None:
    terminal.types("kubectl create -f -", "pod/gpu-pod created", stdin=TWO_CONTAINERS)
    terminal.types("kubectl wait --for=condition=Ready pod gpu-pod")
    first, second = (_cards(terminal, f"gpu-container-{number}") for number in (1, 2))
    assert (len(first), len(second)) == (2, 3)
    assert not first & second, "no card belongs to two containers"


def _cards(terminal: Terminal, container: str) -> set[str]:
    shown = terminal.types(f"kubectl exec gpu-pod -c {container} -- nvidia-smi -L", CARD)
    return set(re.findall(r"UUID: (\S+)\)", shown))


def _rules(terminal: Terminal) -> None:
    """Cards are asked for in limits, and whole."""
    only_requests = TWO_CONTAINERS.replace("limits:", "requests:").replace("gpu-pod", "other")
    terminal.is_refused("kubectl create -f -", "limits", stdin=only_requests)
    half = TWO_CONTAINERS.replace("gpu: 2 ", "gpu: 0.5 ").replace("gpu-pod", "other")
    terminal.is_refused("kubectl create -f -", "wanted a whole number, found 0.5", stdin=half)


def _by_the_name_of_the_card(terminal: Terminal) -> None:
    # The document asks the driver for the name, and starts the kubelet with a label of it. Our
    # agent does both; blanks, which no label may have, are dashes.
    query = "nvidia-smi --query-gpu=gpu_name --format=csv,noheader --id=0"
    shown = terminal.types(f"kubectl exec gpu-pod -c gpu-container-1 -- {query}")
    assert shown.splitlines()[-1] == CARD
    label = f"alpha.kubernetes.io/nvidia-gpu-name={CARD.replace(' ', '-')}"
    named = [row[0] for row in rows(terminal.types(f"kubectl get nodes -l {label}"), 1)]
    assert len(named) == 2

    # No Kubernetes takes this manifest as it is printed; what is missing is said.
    terminal.is_refused("kubectl create -f -", 'no kind "pod" is registered', stdin=BY_CARD_NAME)
    terminal.is_refused("gpupool explain -f -", "found pod", "kind: Pod", stdin=BY_CARD_NAME)
    capital = BY_CARD_NAME.replace("kind: pod", "kind: Pod")
    terminal.is_refused("kubectl create -f -", "name or generateName is required", stdin=capital)
    pod = capital.replace("metadata:", "metadata:\n  name: by-name")
    terminal.is_refused("kubectl create -f -", "image: Required value", stdin=pod)
    pod = pod.replace("      resources:", "      image: k8s.gcr.io/pause:2.0\n      resources:")
    terminal.types("kubectl create -f -", "pod/by-name created", stdin=pod)
    terminal.types("kubectl wait --for=condition=Ready pod by-name")
    (row,) = rows(terminal.types("kubectl get pod by-name -o wide"), 7)
    assert row[6] in named
    terminal.types("kubectl delete pod by-name gpu-pod")


def _libraries_of_the_node(terminal: Terminal) -> None:
    terminal.types("kubectl create -f -", "pod/gpu-pod created", stdin=WITH_LIBRARIES)
    terminal.types("kubectl wait --for=condition=Ready pod gpu-pod")
    assert len(_cards(terminal, "gpu-container-1")) == 1
    terminal.types("kubectl delete pod gpu-pod")
