"""Which new shares are held to their limit. Pure.

The scheduler goes by what the agent has published, and a container is started some time after its
pod was bound. So the limiter is given out from before isolation is published until a good while
after it is taken back: no pod that was promised it starts without. Where it is given to a pod that
was not, it stands aside, because the pod's own limit file says so.
"""

from dataclasses import dataclass

from gpupool.agent.news import News
from gpupool.contract.nodes import gpu_mode, isolates
from gpupool.core.gpu import GpuMode
from kubeclient.objects import Obj

_AFTERWARDS_S = 300.0

NO_LIMITER = News(
    True,
    "SharesNotIsolated",
    "the node's labels ask for isolated shares, but this agent has no limiter to give: "
    "shares are given out without isolation",
)


@dataclass(frozen=True, slots=True)
class IsolationState:
    published: bool | None = None  # None: the node does not share its cards
    limited_until_s: float = 0.0

    def is_limiting(self, now_s: float) -> bool:
        return bool(self.published) or now_s < self.limited_until_s


def next_isolation(
    before: IsolationState, labels: Obj, *, has_limiter: bool, now_s: float
) -> IsolationState:
    is_shared = gpu_mode(labels) is GpuMode.SHARED
    if is_shared and has_limiter and isolates(labels):
        return IsolationState(True)
    until_s = now_s + _AFTERWARDS_S if before.published else before.limited_until_s
    return IsolationState(False if is_shared else None, until_s)
