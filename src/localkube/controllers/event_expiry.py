"""Deletes events an hour after they last occurred."""

import datetime

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS
from localkube.controllers.pods import parse_time
from localkube.controllers.run import Context, Controller, Watch

KEPT = datetime.timedelta(hours=1)


async def reconcile(key: Key, context: Context) -> float | None:
    event = context.of(EVENTS).get(key[1], key[0])
    if event is None:
        return None
    left_s = (_last(event) + KEPT - context.now()).total_seconds()
    if left_s > 0:
        return left_s
    # Unchanged: it may have just happened again.
    await context.delete(EVENTS, event, unchanged=True)
    return None


def _last(event: Obj) -> datetime.datetime:
    """The latest of its times."""
    stamps = (
        event["metadata"]["creationTimestamp"],
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
    )
    return max(parse_time(stamp) for stamp in stamps if stamp)


CONTROLLER = Controller("event-expiry", (Watch(EVENTS),), reconcile, workers=1)
