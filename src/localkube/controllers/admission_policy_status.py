"""Notes in the status of an admission policy that its present form has been seen.

The API server refuses expressions that it cannot compile; types of fields are not checked, so that
there are never warnings.
"""

from kubeclient.mirror import Key
from kubeclient.resources import VALIDATING_POLICIES
from localkube.controllers.run import Context, Controller, Watch


async def reconcile(key: Key, context: Context) -> float | None:
    policy = context.of(VALIDATING_POLICIES).get(key[1])
    if policy is None:
        return None
    generation, known = policy["metadata"].get("generation", 0), policy.get("status") or {}
    if known.get("observedGeneration", 0) < generation:
        status = {**known, "observedGeneration": generation, "typeChecking": {}}
        await context.kube.update_status(VALIDATING_POLICIES, {**policy, "status": status})
    return None


CONTROLLER = Controller(
    "validatingadmissionpolicy-status-controller", (Watch(VALIDATING_POLICIES),), reconcile
)
