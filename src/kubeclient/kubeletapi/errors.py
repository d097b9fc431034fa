"""Errors of calls between kubelet and device plugin.

KubeletApiError
├── RpcFailed        the call failed or got no answer; `code` in Go's spelling
└── BadSocketPath    a socket cannot be created at this path
"""

import re

import grpc


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


def rpc_failed(error: grpc.aio.AioRpcError) -> RpcFailed:
    return RpcFailed(go_name(error.code()), error.details() or "")


def go_name(code: grpc.StatusCode) -> str:
    """DEADLINE_EXCEEDED -> DeadlineExceeded; the one exception is Canceled."""
    if code is grpc.StatusCode.CANCELLED:
        return "Canceled"
    name = re.sub(r"[a-z]+", lambda word: word.group().capitalize(), code.name.lower())
    return "OK" if code is grpc.StatusCode.OK else name.replace("_", "")
