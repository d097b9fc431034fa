"""What the server writes into CertificateSigningRequests, and what it keeps as it was.

Who asks is never taken from the body: a certificate is made for whoever the request counts for.
"""

from collections.abc import Mapping, Sequence

from kubeclient.objects import Obj
from localkube.apiserver.request import User

_DECISIONS = ("Approved", "Denied")


def identify(obj: Obj, user: User | None) -> None:
    """`user`: whom the request counts for; None: the cluster itself."""
    for key in ("username", "uid", "groups", "extra"):
        obj["spec"].pop(key, None)
    if user is None:
        return
    known = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    obj["spec"].update({key: value for key, value in known.items() if value})


def keep_request(new: Obj, old: Obj) -> None:
    """A request is what it was, but for its metadata."""
    new["spec"] = old["spec"]


def keep_decisions(new: Obj, old: Obj, stamp: str) -> None:
    """A write of the status: who approved or denied, and when, stays."""
    for kind in _DECISIONS:
        before, after = _places(old, kind), _places(new, kind)
        if len(before) == len(after):
            for here, there in zip(after, before, strict=True):
                new["status"]["conditions"][here] = old["status"]["conditions"][there]
    date_conditions(new, old, stamp)


def date_conditions(new: Obj, old: Obj, stamp: str) -> None:
    for condition in _conditions(new):
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = stamp
        if not condition.get("lastTransitionTime"):
            condition["lastTransitionTime"] = _since(condition, _conditions(old)) or stamp


def _since(condition: Obj, before: Sequence[Obj]) -> str:
    same = ("type", "status")
    for each in before:
        if all(each.get(key) == condition.get(key) for key in same):
            return each.get("lastTransitionTime") or ""
    return ""


def _places(obj: Mapping[str, Obj], kind: str) -> list[int]:
    return [place for place, each in enumerate(_conditions(obj)) if each.get("type") == kind]


def _conditions(obj: Mapping[str, Obj]) -> list[Obj]:
    found: list[Obj] = (obj.get("status") or {}).get("conditions") or []
    return found
