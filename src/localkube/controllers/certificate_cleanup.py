"""Deletes signing requests that are done with.

An hour after they were approved and signed, denied, or failed; a day after they were made or
approved, if nothing has come of it; and when the certificate has ended.
"""

import base64
import datetime

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import SIGNING_REQUESTS
from localkube.controllers.pods import parse_time
from localkube.controllers.run import Context, Controller, Watch

DONE = datetime.timedelta(hours=1)
WAITING = datetime.timedelta(hours=24)


async def reconcile(key: Key, context: Context) -> float | None:
    request = context.of(SIGNING_REQUESTS).get(key[1])
    if request is None:
        return None
    left_s = (ends(request) - context.now()).total_seconds()
    if left_s > 0:
        return left_s
    await context.delete(SIGNING_REQUESTS, request, unchanged=True)
    return None


def ends(request: Obj) -> datetime.datetime:
    status = request.get("status") or {}
    conditions, certificate = status.get("conditions", ()), status.get("certificate")
    found = []
    for condition in conditions:
        seen = condition.get("lastUpdateTime")
        if seen and condition["type"] in ("Approved", "Denied", "Failed"):
            is_open = condition["type"] == "Approved" and not certificate
            found.append(parse_time(seen) + (WAITING if is_open else DONE))
    if certificate:
        found.append(_expiry(certificate))
    if not conditions:
        found.append(parse_time(request["metadata"]["creationTimestamp"]) + WAITING)
    return min(found, default=datetime.datetime.max.replace(tzinfo=datetime.UTC))


def _expiry(certificate: str) -> datetime.datetime:
    """Of what another signer wrote nothing may be known but that it is a certificate."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return datetime.datetime.max.replace(tzinfo=datetime.UTC)


CONTROLLER = Controller("csrcleaner", (Watch(SIGNING_REQUESTS),), reconcile, workers=1)
