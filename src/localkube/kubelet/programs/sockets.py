"""Serves HTTP on sockets that the kubelet passes to a stand-in: LISTEN_FDS of them, from descriptor
3 on (the convention of systemd)."""

import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType

_FIRST = 3


def serve_until_signal(pages: type[BaseHTTPRequestHandler]) -> None:
    """Serves until SIGTERM or SIGINT. Does not return."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    for number in range(int(os.environ.get("LISTEN_FDS", "0"))):
        threading.Thread(target=_serve, args=(_FIRST + number, pages), daemon=True).start()
    while True:
        signal.pause()


def _serve(descriptor: int, pages: type[BaseHTTPRequestHandler]) -> None:
    listening = socket.socket(fileno=descriptor)
    server = ThreadingHTTPServer(listening.getsockname()[:2], pages, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.serve_forever()


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(0)
