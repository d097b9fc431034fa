"""ResourceQuota object -> UnitsQuota."""

from gpupool.contract.names import RESOURCE_GPU_MEM
from gpupool.core.quota import Scope, UnitsQuota
from kubeclient.objects import Obj
from kubeclient.quantity import parse, value

_KEY = f"requests.{RESOURCE_GPU_MEM}"


def quota_of(quota: Obj) -> UnitsQuota | None:
    """None: it does not limit shared GPU memory. Raises ValueError."""
    spec, metadata = quota.get("spec") or {}, quota["metadata"]
    hard = (spec.get("hard") or {}).get(_KEY)
    if hard is None:
        return None
    used = ((quota.get("status") or {}).get("used") or {}).get(_KEY, "0")
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return UnitsQuota(
        namespace=metadata["namespace"],
        name=metadata["name"],
        hard=value(parse(str(hard))),
        used=value(parse(str(used))),
        scopes=(
            *(Scope(name) for name in spec.get("scopes") or ()),
            *(
                Scope(each["scopeName"], each["operator"], tuple(each.get("values") or ()))
                for each in selected
            ),
        ),
    )
