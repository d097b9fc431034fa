"""Usage: a node and what its pods hold of it. Never goes past what the node offers by itself."""

from dataclasses import dataclass, field

from gpupool.core.request import HostPort, Node, PodRequest


@dataclass(slots=True)
class Usage:
    node: Node
    held: dict[str, int] = field(default_factory=dict)
    pods: dict[str, PodRequest] = field(default_factory=dict)  # by uid
    ports: list[HostPort] = field(default_factory=list)

    def hold(self, pod: PodRequest) -> None:
        """Idempotent: the same pod seen twice is held once."""
        if pod.uid in self.pods:
            return
        self.pods[pod.uid] = pod
        for name, amount in pod.resources.items():
            self.held[name] = self.held.get(name, 0) + amount
        self.ports.extend(pod.host_ports)

    def release(self, uid: str) -> bool:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return False
        for name, amount in pod.resources.items():
            self.held[name] -= amount
        for port in pod.host_ports:
            self.ports.remove(port)
        return True

    def lacking(self, pod: PodRequest) -> list[str]:
        """Names of the resources that the node has too little of."""
        offered, held = self.node.allocatable, self.held
        return [
            name
            for name, amount in pod.resources.items()
            if amount and held.get(name, 0) + amount > offered.get(name, 0)
        ]
