"""JupyterLab in a container, if the Python that runs gpupool has it (`gpupool[notebook]`).

It listens on the sockets that the kubelet passes (localkube.kubelet.programs.sockets), and reads
the variables that the images document:

PASSWORD          of tensorflow/tensorflow: what people type to get in
JUPYTER_TOKEN     of jupyter/*: the same as a token; JUPYTER_TOKEN_FILE names a file with it

With neither, Jupyter makes a token and writes it to the log. The container's `args` are Jupyter's,
as in the images; what stands before the first flag is the image's start program.
"""

import importlib
import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

PASSWORD = "PASSWORD"
_NEEDED = ("jupyterlab", "ipykernel")
_KERNEL = Path(__file__).resolve().with_name("kernel.py")
_FIRST_SOCKET = 3
_NEWS = "@jupyterlab/apputils-extension:announcements"  # a question at the first visit
# Where the images keep notebooks. Manifests mount volumes there.
_NOTEBOOKS = ("/notebooks", "/tf")


def is_installed() -> bool:
    return all(importlib.util.find_spec(package) for package in _NEEDED)


def flags(args: Sequence[str]) -> list[str]:
    """Without the names of start programs: start-notebook.py, jupyter lab, ..."""
    first = next((n for n, each in enumerate(args) if each.startswith("-")), len(args))
    return list(args[first:])


def start_directory(env: Mapping[str, str], cwd: str) -> Path:
    """The working directory that the pod names, a volume for notebooks, or the home directory."""
    if cwd != "/":
        return Path(cwd)
    root = env.get("LOCALKUBE_ROOT", "")
    mounted = (Path(root + place) for place in _NOTEBOOKS)
    return next((place for place in mounted if place.is_dir()), Path(env["HOME"]))


def package_variables(env: Mapping[str, str]) -> dict[str, str]:
    """`%pip install` puts packages into the home directory, because those of this Python are
    read-only; programs find them before others."""
    target = env.get("PIP_TARGET") or f"{env['HOME']}/.local/pip-packages"
    path = [target, *filter(None, [env.get("PYTHONPATH")])]
    return {
        "PIP_TARGET": target,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # a new pip could not be installed
        "PYTHONPATH": os.pathsep.join(path),
    }


def settings(directory: Path, hashed_password: str, *, has_own_view: bool) -> dict[str, Any]:
    """Jupyter's configuration. Flags of the container come before it."""
    server: dict[str, Any] = {
        "allow_root": True,  # of the container's own user namespace
        "open_browser": False,
        # Shown in the log: the pod's port, as `kubectl port-forward` offers it.
        "custom_display_url": "http://localhost:8888/lab",
        "root_dir": str(directory),
        # No login shell, which is Jupyter's choice: /etc/profile would take the driver's programs
        # out of PATH.
        "terminado_settings": {"shell_command": [shutil.which("bash") or "sh"]},
        "allow_remote_access": True,  # under any name of this machine, as with kubectl's --address
    }
    made: dict[str, Any] = {
        "ServerApp": server,
        # Nothing is fetched from the internet, unless the user's own code does it.
        "LabApp": {
            "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            "news_url": None,
            "extension_manager": "readonly",
        },
        # It would look for twenty programs of other languages, and name them in the log.
        "LanguageServerManager": {"autodetect": False},
        "PasswordIdentityProvider": {"allow_password_change": False},
    }
    if hashed_password:
        made["PasswordIdentityProvider"]["hashed_password"] = hashed_password
    if has_own_view:
        # Server and kernels talk through files of the container: the ports of this machine are
        # everybody's. Elsewhere the paths may be too long for sockets.
        made["KernelManager"] = {"transport": "ipc"}
    return made


def serve(args: Sequence[str]) -> None:
    """Serves until a signal. Does not return."""
    from jupyter_server.auth.security import passwd
    from jupyterlab.labapp import LabApp
    from tornado.httpserver import HTTPServer
    from traitlets.config import Config

    # As in the image, so that what runs in the notebook does not find it.
    password = os.environ.pop(PASSWORD, "")
    directory = start_directory(os.environ, os.getcwd())
    Path(os.environ["HOME"]).mkdir(parents=True, exist_ok=True)
    os.chdir(directory)
    os.environ.update(package_variables(os.environ))
    os.environ["JUPYTER_PATH"] = _with_our_kernel(os.environ)
    has_own_view = "LOCALKUBE_ROOT" not in os.environ
    hashed = passwd(password) if password else ""
    made = settings(directory, hashed, has_own_view=has_own_view)
    app = LabApp.make_serverapp(
        config=Config(made), jpserver_extensions={LabApp.get_extension_package(): True}
    )
    app.aliases.update(LabApp.aliases)
    app.initialize(flags(args), starter_extension=LabApp.name, new_httpserver=False)
    app.web_app.settings["page_config_hook"] = _without_news
    if not app.identity_provider.auth_enabled:
        # Flags of the container let everybody in. A page from elsewhere, in the browser of this
        # machine, must not be able to give itself a name for 127.0.0.1.
        app.web_app.settings["allow_remote_access"] = False
    server = HTTPServer(app.web_app, max_body_size=app.max_body_size)
    app.io_loop.add_callback(lambda: server.add_sockets(_passed_sockets()))
    app.start()


def _with_our_kernel(env: Mapping[str, str]) -> str:
    """Where Jupyter finds kernels: first the one that is called as in the image."""
    from ipykernel.kernelspec import write_kernel_spec

    place = Path(mkdtemp(prefix="jupyter-"))
    argv = [sys.executable, str(_KERNEL), "-f", "{connection_file}"]
    write_kernel_spec(place / "kernels" / "python3", overrides={"argv": argv})
    return os.pathsep.join([str(place), *filter(None, [env.get("JUPYTER_PATH")])])


def _without_news(_handler: object, page: dict[str, Any]) -> dict[str, Any]:
    return page | {"disabledExtensions": [*page.get("disabledExtensions", ()), _NEWS]}


def _passed_sockets() -> list[socket.socket]:
    # Taken away, so that no program of the notebook takes them for its own.
    numbers = range(_FIRST_SOCKET, _FIRST_SOCKET + int(os.environ.pop("LISTEN_FDS", "0")))
    passed = [socket.socket(fileno=number) for number in numbers]
    for each in passed:
        each.setblocking(False)
        each.set_inheritable(False)
    return passed
