"""Names: what a cluster calls itself, in annotations, labels and kubeconfig entries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """A product that brings a localkube cluster along passes its own name and domain."""

    product: str = "localkube"
    domain: str = "localkube.internal"

    def kubeconfig_entry(self, cluster: str) -> str:
        """Cluster, user and context of a kubeconfig share this name."""
        return f"{self.product}-{cluster}"

    @property
    def kubeconfig_extension(self) -> str:
        """An extension by this name marks an entry of a kubeconfig as written by the cluster."""
        return f"{self.domain}/cluster"

    @property
    def node_label(self) -> str:
        """The kubelets of the cluster run the nodes that carry this label, whatever its value."""
        return f"node.{self.domain}/pool"

    @property
    def kubelet_annotation(self) -> str:
        """On a node: "stopped" makes its kubelet play dead, to see what the cluster does."""
        return f"node.{self.domain}/kubelet"

    @property
    def runtime_annotation(self) -> str:
        """On a pod, its namespace or its node, the first that has it: "process" runs containers
        as processes of this machine, "timer" only waits in their place."""
        return f"{self.domain}/runtime"

    @property
    def run_seconds_annotation(self) -> str:
        """On a pod of timers: how long its containers run. Without it they run for ever."""
        return f"{self.domain}/run-seconds"

    @property
    def exit_code_annotation(self) -> str:
        """On a pod of timers: the exit code of its containers."""
        return f"{self.domain}/exit-code"

    @property
    def load_balancer_ports_annotation(self) -> str:
        """On a LoadBalancer service: which port is served on which other port, because the user
        may not bind the wanted one."""
        return f"{self.domain}/load-balancer-ports"

    @property
    def address_annotation(self) -> str:
        """On a service that is reached from outside: where it answers on this machine, as a link
        for browsers."""
        return f"{self.domain}/address"

    @property
    def provisioner(self) -> str:
        """Of the default StorageClass: makes a directory for each claim."""
        return f"{self.domain}/local-directory"


DEFAULT = Names()
