"""Errors of calls between kubelet and device plugin.

KubeletApiError
├── RpcFailed        the call failed or got no answer; `code` in Go's spelling
└── BadSocketPath    a socket cannot be created at this path
"""


class KubeletApiError(Exception):
    pass


class RpcFailed(KubeletApiError):
    """The text is that of Go, as kubelets write it: rpc error: code = Unknown desc = why."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {details}")
        self.code = code
        self.details = details


class BadSocketPath(KubeletApiError):
    pass


class Refusal(Exception):
    """Raised by a service to refuse a call; the text is sent to the caller."""
