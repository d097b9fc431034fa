"""The program of notebook images: JupyterLab (jupyter.py), or a web page where it is not installed.

The page asks for the password, then shows the visible GPUs and how to get JupyterLab. The password
is in the variable PASSWORD. Without it, a token is made and written to the log.
"""

import hmac
import html
import http.cookies
import json
import os
import secrets
import sys
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from gpupool.contract.names import ENV_NOTEBOOK
from gpupool.local.programs import jupyter
from gpupool.local.programs.gpu_memory import Cuda, CudaError, Gpu
from localkube.kubelet.programs.sockets import serve_until_signal

_PAGE_ONLY = "page"
_COOKIE = "session"
_MOST_BYTES = 4096  # of a form
_MIB = 1024 * 1024
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}"
    "pre{background:#f4f4f4;padding:1rem;overflow-x:auto}td,th{padding:.2rem 1rem .2rem 0;"
    "text-align:left}input,button{font:inherit;padding:.3rem .6rem}.no{color:#b00020}"
)
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Notebook</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>
<body><h1>Notebook</h1>{body}</body></html>
"""
_LOGIN = """{complaint}<form method="post" action="/login">
<label for="password">{what}</label>
<input id="password" name="password" type="password" autofocus required>
<button>Log in</button></form>"""
_DEVICES = """<p>The devices that a TensorFlow program in this container can use:</p>
<pre>{names}</pre>
<table><tr><th>GPU</th><th>Model</th><th>Memory</th></tr>{rows}</table>{note}
<p>{how}</p>
<p><small>Served by gpupool in place of the image {image}.</small></p>"""
_HOW = (
    "For the real JupyterLab in place of this page, install it beside gpupool "
    "(pip install 'gpupool[notebook]', or make notebook in a clone), then delete this pod."
)


def devices() -> tuple[list[Gpu], str]:
    """The GPUs, or why there are none."""
    try:
        found = Cuda().gpus()
    except CudaError as error:
        return [], str(error)
    return found, "" if found else "CUDA sees no GPU."


def device_names(gpus: list[Gpu]) -> list[str]:
    return ["/device:CPU:0", *(f"/device:GPU:{gpu.number}" for gpu in gpus)]


class Pages(BaseHTTPRequestHandler):
    secret = ""
    has_password = True
    session = secrets.token_urlsafe(32)
    image = ""
    server_version = "gpupool"
    sys_version = ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        token = parse_qs(address.query).get("token", [""])[0]
        if not self.has_password and self._is_secret(token):
            self._enter()
        elif not self._is_known():
            if address.path.startswith("/api/"):
                self._send(403, json.dumps({"message": "Forbidden"}), "application/json")
            else:
                self._send(200, self._login_page(""))
        elif address.path == "/api/devices":
            gpus, _ = devices()
            listed = [{"name": gpu.name, "memoryMiB": gpu.memory // _MIB} for gpu in gpus]
            answer = {"devices": device_names(gpus), "gpus": listed}
            self._send(200, json.dumps(answer), "application/json")
        else:
            self._send(200, self._device_page())

    do_HEAD = do_GET

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        is_size = length.isascii() and length.isdigit() and len(length) < 10
        size = int(length) if is_size else _MOST_BYTES + 1
        if urlsplit(self.path).path != "/login" or size > _MOST_BYTES:
            self._send(404, _page("<p>There is no such page.</p>"))
            return
        form = parse_qs(self.rfile.read(size).decode("utf-8", "replace"))
        if self._is_secret(form.get("password", [""])[0]):
            self._enter()
        else:
            self._send(401, self._login_page('<p class="no">Invalid credentials.</p>'))

    def _is_secret(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.secret.encode())

    def _is_known(self) -> bool:
        try:
            cookies = http.cookies.SimpleCookie(self.headers.get("Cookie") or "")
        except http.cookies.CookieError:
            return False
        found = cookies.get(_COOKIE)
        return found is not None and hmac.compare_digest(found.value, self.session)

    def _enter(self) -> None:
        self.send_response(303)
        self.send_header("Location", "/")
        self.send_header("Set-Cookie", f"{_COOKIE}={self.session}; HttpOnly; SameSite=Strict")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _login_page(self, complaint: str) -> str:
        what = "Password" if self.has_password else "Token (it is in the container's log)"
        return _page(_LOGIN.format(complaint=complaint, what=what))

    def _device_page(self) -> str:
        gpus, why = devices()
        rows = "".join(
            f"<tr><td>{gpu.number}</td><td>{html.escape(gpu.name)}</td>"
            f"<td>{gpu.memory // _MIB} MiB</td></tr>"
            for gpu in gpus
        )
        note = f'<p class="no">{html.escape(why)}</p>' if why else ""
        shown = html.escape(str(device_names(gpus)))
        image = html.escape(self.image)
        how = html.escape(_HOW)
        return _page(_DEVICES.format(names=shown, rows=rows, note=note, how=how, image=image))

    def _send(self, code: int, text: str, kind: str = "text/html; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        path = urlsplit(self.path).path if hasattr(self, "path") else ""
        _say(f"{self.address_string()} {self.command} {path} {args[1] if len(args) > 1 else ''}")


def _page(body: str) -> str:
    return _PAGE.format(style=_STYLE, body=body)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    image, *args = sys.argv[1:]
    if jupyter.is_installed() and os.environ.get(ENV_NOTEBOOK) != _PAGE_ONLY:
        jupyter.serve(args)
    else:
        _serve_page(image)


def _serve_page(image: str) -> None:
    Pages.image = image
    Pages.has_password = bool(os.environ.get("PASSWORD"))
    Pages.secret = os.environ.get("PASSWORD") or secrets.token_hex(24)
    if Pages.has_password:
        _say("The notebook is served on port 8888, with the password of the variable PASSWORD.")
    else:
        _say(f"The notebook is at http://localhost:8888/?token={Pages.secret}")
    _say(_HOW)
    serve_until_signal(Pages)
