"""A DaemonSet's status. Pure."""

from kubeclient.objects import Obj
from localkube.controllers.daemon_set_plan import Daemons, Fit, Fits

_ALWAYS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


def status_of(daemon_set: Obj, fits: Fits, daemons: Daemons, collisions: int, seen: bool) -> Obj:
    """`seen`: this generation has been acted on, not only looked at."""
    known = daemon_set.get("status", {})
    wanted = [node for node, fit in fits.items() if fit is Fit.RUN]
    there = [min(daemons[node], key=lambda d: d.seniority) for node in wanted if daemons.get(node)]
    strays = [node for node, fit in fits.items() if fit is not Fit.RUN and daemons.get(node)]
    available = sum(daemon.available for daemon in there)
    counts = {
        "currentNumberScheduled": len(there),
        "numberMisscheduled": len(strays),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(daemon.ready for daemon in there),
        "updatedNumberScheduled": sum(daemon.updated for daemon in there),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "collisionCount": collisions,
        "observedGeneration": known.get("observedGeneration", 0),
    }
    if seen:
        counts["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
    return {name: count for name, count in counts.items() if count or name in _ALWAYS}
