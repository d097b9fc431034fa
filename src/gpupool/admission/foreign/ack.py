"""Newer words of ACK: `aliyun.com/gpu`, whole cards that are chosen by their links.

Our scheduler looks at the links of whole cards anyway. Compute in TFLOPS would be another part of
each model of card; we have no table of models, so it is refused.
"""

from gpupool.admission.asked import containers
from gpupool.admission.foreign.wishes import Reading, Wish, amount, listed
from gpupool.contract.gpu_asks import MAX_CARDS
from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_PERCENT
from kubeclient.objects import Obj

GPU, TFLOPS = "aliyun.com/gpu", "aliyun.com/gpu-core.tflops"


def read(pod: Obj) -> Reading:
    found = Reading()
    for container in containers(pod):
        limits = {**container.amounts("requests"), **container.amounts("limits")}
        field = f"{container.field}.resources.limits"
        if TFLOPS in limits:
            found.wrong.append(
                f"{field}[{TFLOPS}]: wanted a part of the card's compute ({RESOURCE_GPU_PERCENT}), "
                f"found {limits[TFLOPS]}"
            )
        elif GPU in limits and RESOURCE_GPU in limits:
            found.wrong.append(f"{field}: wanted {RESOURCE_GPU} or {GPU}, found both")
        elif GPU in limits:
            count = amount(limits[GPU], f"{field}[{GPU}]", 1, MAX_CARDS)
            if isinstance(count, str):
                found.wrong.append(count)
                continue
            said = listed([(GPU, limits[GPU])])
            where = f"{field}[{GPU}]"
            found.wishes.append(
                Wish(container, where, said, cards=count, whole=True, resources=(GPU,))
            )
    return found
