"""Stands in for NVIDIA's container runtime: runc, and before it the cards that a variable names.

    install(folder, runc, cdi) -> Path     the program that containerd runs in place of runc

NVIDIA's runtime changes the container's specification before runc makes the container: it adds what
the CDI file says about the cards in NVIDIA_VISIBLE_DEVICES. So does this; and it records what it
was given, one line of JSON for each container, in `<folder>/nvidia-runtime.jsonl`.

The second half of this file is run by itself, once for each container, and imports nothing that is
slow: `python -I nvidia_runtime.py BUNDLE CDI-FILE RECORD`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_NO_CARDS = ("", "void", "none")
_NAMES = ("io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name")


def install(folder: Path, runc: Path, cdi: Path) -> Path:
    """`cdi`: the file of the node; it may be written later."""
    program = folder / "nvidia-container-runtime"
    inject = f"{sys.executable} -I {Path(__file__).resolve()}"
    record = record_of(folder)
    program.write_text(
        f"""#!/bin/sh
bundle= before=
for word in "$@"; do
  case "$before" in --bundle|-b) bundle=$word;; esac
  before=$word
done
[ -e {silent_of(folder)} ] && exec {runc} "$@"
case " $* " in *" create "*) {inject} "$bundle" {cdi} {record} || exit 1;; esac
exec {runc} "$@"
"""
    )
    program.chmod(0o755)
    return program


def record_of(folder: Path) -> Path:
    return folder / "nvidia-runtime.jsonl"


def silent_of(folder: Path) -> Path:
    """While this file is there, it adds nothing and says nothing."""
    return folder / "nvidia-runtime-is-silent"


# -- run by itself ------------------------------------------------------------------------------


def inject(config: dict[str, Any], spec: dict[str, Any]) -> None:
    """Changes the container's specification. Raises ValueError for a card that is not there."""
    asked = variables(config).get(_VARIABLE, "")
    if asked in _NO_CARDS:
        return
    apply(config, spec["containerEdits"])
    for device in devices(spec["devices"], asked):
        apply(config, device["containerEdits"])


def variables(config: dict[str, Any]) -> dict[str, str]:
    pairs = (text.partition("=") for text in config["process"].get("env") or ())
    return {name: value for name, _, value in pairs}


def devices(known: list[dict[str, Any]], asked: str) -> list[dict[str, Any]]:
    """By uuid or number."""
    if asked == "all":
        return known
    by_name = {str(number): device for number, device in enumerate(known)}
    by_name |= {device["name"]: device for device in known}
    missing = [name for name in asked.split(",") if name not in by_name]
    if missing:
        raise ValueError(f"{_VARIABLE}={asked}: there is no card {missing[0]}")
    return [by_name[name] for name in asked.split(",")]


def apply(config: dict[str, Any], edits: dict[str, Any]) -> None:
    for mount in edits.get("mounts") or ():
        config["mounts"].append(
            {
                "destination": mount["containerPath"],
                "source": mount["hostPath"],
                "type": "bind",
                "options": mount["options"],
            }
        )
    linux = config["linux"]
    for node in edits.get("deviceNodes") or ():
        number = os.stat(node["hostPath"]).st_rdev
        numbers = {"type": "c", "major": os.major(number), "minor": os.minor(number)}
        linux.setdefault("devices", []).append({"path": node["path"], "fileMode": 0o666, **numbers})
        allowed = linux.setdefault("resources", {}).setdefault("devices", [])
        allowed.append({"allow": True, "access": "rwm", **numbers})


def main(bundle: Path, cdi: Path, record: Path) -> int:
    path = bundle / "config.json"
    config = json.loads(path.read_text())
    pod, container = ((config.get("annotations") or {}).get(name, "") for name in _NAMES)
    line = {"pod": pod, "container": container, "env": variables(config)}
    with record.open("a") as file:  # one write, which is not mixed with that of another
        file.write(json.dumps(line) + "\n")
    try:
        inject(config, json.loads(cdi.read_text()))
    except (OSError, ValueError) as error:
        print(f"nvidia-container-runtime: {error}", file=sys.stderr)
        return 1
    path.write_text(json.dumps(config))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:4])))
