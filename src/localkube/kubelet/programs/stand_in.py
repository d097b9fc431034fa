"""The program of containers whose image is not a program of this machine.

pause IMAGE       waits
web IMAGE         serves what is mounted for a web server, or a page of its own
stand-in IMAGE    prints once that it is a stand-in; answers on every port
"""

import html
import os
import sys
from http.server import SimpleHTTPRequestHandler
from typing import Any

from localkube.kubelet.programs.sockets import serve_until_signal

_WEB_FILES = "/usr/share/nginx/html"
_PAGE = """<!DOCTYPE html>
<html><head><title>{title}</title></head>
<body><h1>{title}</h1><p>{text}</p></body></html>
"""


class Pages(SimpleHTTPRequestHandler):
    """Serves files, if there are any; else the same page for every path."""

    page = b""
    files: str | None = None  # where they are
    server_version = "localkube"
    sys_version = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, directory=self.files, **kwargs)

    def do_GET(self) -> None:
        if self.files is not None:
            super().do_GET()
            return
        self._say_page()
        self.wfile.write(self.page)

    def do_HEAD(self) -> None:
        if self.files is not None:
            super().do_HEAD()
            return
        self._say_page()

    def _say_page(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        sys.stdout.write(f"{self.address_string()} - {format % args}\n")
        sys.stdout.flush()


def main() -> None:
    kind, image = sys.argv[1:]
    if kind == "web":
        files = os.environ.get("LOCALKUBE_ROOT", "") + _WEB_FILES
        Pages.files = files if os.path.isdir(files) else None
        title, text = (
            f"Welcome to {image}",
            "Served by localkube in place of the image's own program.",
        )
    else:
        title = image
        text = (
            f"The image {image} is not run here: localkube pulls no images. "
            "This process stands in for it, so that everything around it can be tried."
        )
    if kind == "stand-in":
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    Pages.page = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
    serve_until_signal(Pages)
