"""Errors of requests to an API server.

KubeError
├── Refused          the server answered with an error; `status` is its v1 Status
│   ├── NotFound     404
│   ├── Conflict     409: stale resourceVersion, or a failed precondition
│   ├── AlreadyExists
│   ├── Expired      410: list again
│   └── TooMany      429: `retry_after_s`
├── NotSent          the caller was not allowed to send it any more: it did not happen
└── NoAnswer         no answer, or one that cannot be parsed: it may have happened, so read the
                     object before you try again

`is_certain` says whether the request certainly had no effect.
"""

import orjson

from kubeclient.objects import Obj


class KubeError(Exception):
    pass


class Refused(KubeError):
    def __init__(self, status: Obj) -> None:
        super().__init__(status.get("message") or str(status))
        self.status = status

    @property
    def code(self) -> int:
        return int(self.status.get("code", 0))

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))


class NotFound(Refused):
    pass


class Conflict(Refused):
    pass


class AlreadyExists(Refused):
    pass


class Expired(Refused):
    pass


class TooMany(Refused):
    @property
    def retry_after_s(self) -> int:
        return int(self.status.get("details", {}).get("retryAfterSeconds", 1))


class NotSent(KubeError):
    pass


class NoAnswer(KubeError):
    pass


def is_certain(error: KubeError) -> bool:
    """Whether the request certainly had no effect.

    A server that fails may not know how far it got: behind a 500 or a 504 there may be a write that
    its store was too slow to confirm. And a conflict may be with our own write, if a proxy has sent
    the request twice.
    """
    if isinstance(error, Refused):
        return error.code < 500 and not isinstance(error, Conflict)
    return isinstance(error, NotSent)


_BY_REASON = {
    "NotFound": NotFound,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
    "TooManyRequests": TooMany,
}
# A proxy in front of the API server may answer with a status code only, without a Status.
_BY_CODE = {404: NotFound, 409: Conflict, 410: Expired, 429: TooMany}


def refusal(code: int, body: bytes) -> Refused:
    """The error for an answer of 400 or above."""
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict):
        text = body.decode("utf-8", "replace").strip()
        status = {"code": code, "reason": "", "message": text or f"HTTP {code}"}
    status.setdefault("code", code)
    reason = status.get("reason")
    # The reason goes first: 409 is the code of both Conflict and AlreadyExists.
    kind = _BY_REASON.get(str(reason)) if reason else _BY_CODE.get(code)
    return (kind or Refused)(status)
