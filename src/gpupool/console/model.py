"""Model: the cluster as the scheduler sees it, which the console shows and never changes.

The console does not import the scheduler: programs meet only over the API. Who starts the console
hands in `NewModel` (`cli/console.py`), so that both read nodes and pods by the same code.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from kubeclient.mirror import Changed
from kubeclient.objects import Obj
from kubeclient.resources import Resource


@dataclass(frozen=True, slots=True)
class Model:
    """Whoever calls `handlers` with the changes of the API keeps `cluster` up to date."""

    cluster: ClusterModel
    handlers: Mapping[Resource, Changed]  # in the order in which the resources are read
    optional: Collection[Resource]  # of use, but a visitor without them sees the rest
    request_of: Callable[[Obj], PodRequest]  # what a pod asks for, with its volumes
    next_step: Callable[[PodRequest], str]  # what would help a pod that waits; may be empty


NewModel = Callable[[], Model]
