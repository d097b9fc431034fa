"""PodDisruptionBudget object -> DisruptionBudget."""

from gpupool.core.pods import DisruptionBudget
from kubeclient.objects import Obj
from kubeclient.selectors import NOTHING, SelectorError, from_object


def budget_of(budget: Obj) -> DisruptionBudget:
    """A selector that cannot be parsed selects nothing; the API server refuses such objects."""
    try:
        selector = from_object((budget.get("spec") or {}).get("selector"))
    except SelectorError:
        selector = NOTHING
    return DisruptionBudget(
        namespace=budget["metadata"]["namespace"],
        selector=selector,
        allowed=int((budget.get("status") or {}).get("disruptionsAllowed") or 0),
    )
