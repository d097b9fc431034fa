"""Whether new containers get the limiter, and whether the node promises isolation. Pure.

The scheduler relies on what the agent has published in the inventory, and a container starts some
time after its pod was bound. The limiter is therefore mounted from before isolation is published
until some minutes after it is withdrawn, so that no pod that was promised isolation starts without
the limiter. A pod that was not promised isolation may also get the limiter mounted. That does no
harm: the pod's own limit file tells the limiter to do nothing.
"""

from dataclasses import dataclass

from gpupool.agent.news import News
from gpupool.contract.nodes import gpu_mode, isolates
from gpupool.core.gpu import GpuMode
from kubeclient.objects import Obj

_AFTERWARDS_S = (
    300.0  # a pod that was bound just before isolation was withdrawn has started by then
)

NO_LIMITER = News(
    True,
    "SharesNotIsolated",
    "the node's labels ask for isolated shares, but this agent has no limiter to give: "
    "shares are offered without isolation",
)


@dataclass(frozen=True, slots=True)
class IsolationState:
    published: bool | None = None  # None: the node does not share its cards
    limited_until_s: float = 0.0  # until then the limiter is mounted although it is not published

    def is_limiting(self, now_s: float) -> bool:
        return bool(self.published) or now_s < self.limited_until_s


def next_isolation(
    before: IsolationState, labels: Obj, *, has_limiter: bool, now_s: float
) -> IsolationState:
    is_shared = gpu_mode(labels) is GpuMode.SHARED
    if is_shared and has_limiter and isolates(labels):
        return IsolationState(True)
    # The countdown starts when isolation is withdrawn; later readings do not prolong it.
    until_s = now_s + _AFTERWARDS_S if before.published else before.limited_until_s
    return IsolationState(False if is_shared else None, until_s)
