"""Makes src/localkube/apiserver/data/ (run by `make schemas`; never at run time).

    definitions.json       OpenAPI definitions of the served kinds, without descriptions
    descriptions.json.gz   their descriptions, opened only for OpenAPI documents
    enums.json             which values a field may have; told to clients, not used to check
    protobuf.json          field numbers
    kinds.json             the served kinds
    shapes.json            which empty fields Go's JSON encoder leaves out, and which it writes
    columns.json           the columns that a real server prints for each resource
    recorded.json          the Kubernetes version that all of it is of, and a digest of each file

Sources: PyPI kubernetes-validate (in a throw-away venv), the Go modules of the same Kubernetes
version (read; for the shapes, run), and what was recorded from a real server of that version: its
discovery, its tables, and the values that its OpenAPI documents list.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from tools.schemas import columns, definitions, kinds, protobuf, shapes
from tools.schemas.gotypes import GoTypes

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "src/localkube/apiserver/data"
DISCOVERY = ROOT / "tests/conformance/fixtures/discovery.json"
ENUMS = ROOT / "tests/conformance/fixtures/enums.json"
MINOR = "1.35"
KUBERNETES = "1.35.8"
GO_VERSION = "v0.35.8"
MANIFEST = "recorded.json"
GO_MODULES = (
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
)
VALIDATE = "kubernetes-validate==1.37.0"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_ALSO = [
    f"{_META}.{name}"
    for name in (
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "DeleteOptions",
        "Patch",
        "Status",
        "WatchEvent",
    )
]


def main() -> None:
    if shutil.which("go") is None:
        sys.exit("make schemas needs Go, to fetch Kubernetes' Go modules: put `go` on the PATH.")
    with tempfile.TemporaryDirectory() as folder:
        every = definitions.read(_installed(Path(folder)), MINOR)
        types = GoTypes(_go_modules(Path(folder)))
        rows = kinds.rows(DISCOVERY)
        roots = _roots(every, rows)
        served = definitions.closure(every, roots)
        enums = {name: fields for name, fields in _recorded_enums().items() if name in served}
        texts = {name: definitions.descriptions(node) for name, node in served.items()}
        for name, fields in enums.items():
            texts[name] |= {field: each["description"] for field, each in fields.items()}
        bare = {name: definitions.without_descriptions(node) for name, node in served.items()}
        values = {
            name: {field: each["enum"] for field, each in fields.items()}
            for name, fields in enums.items()
        }
        digest = hashlib.sha256(json.dumps([bare, texts, values]).encode()).hexdigest()[:16]
        _write("definitions.json", {"version": MINOR, "digest": digest, "definitions": bare})
        packed = gzip.compress(_compact(texts).encode(), 9, mtime=0)
        (DATA / "descriptions.json.gz").write_bytes(packed)
        _write("enums.json", values)
        _write("protobuf.json", protobuf.table(types, filter(_sent, roots)))
        _write("kinds.json", rows)
        _write_parts("shapes.json", shapes.shapes(rows))
        _write_parts("columns.json", columns.columns())
    write_manifest()


def write_manifest() -> None:
    """What the API server checks its recorded files by is made of the files as they lie there."""
    files = sorted(path for path in DATA.iterdir() if ".json" in path.suffixes)
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != MANIFEST
    }
    manifest = {"kubernetes": KUBERNETES, "sha256": digests}
    (DATA / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def _recorded_enums() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(ENUMS.read_bytes())
    return recorded


def _installed(folder: Path) -> Path:
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", VALIDATE], check=True)
    show = "import kubernetes_validate, sys; sys.stdout.write(kubernetes_validate.__file__)"
    shown = subprocess.run([python, "-c", show], check=True, capture_output=True, text=True)
    return Path(shown.stdout).parent


def _go_modules(folder: Path) -> dict[str, Path]:
    wanted = [f"{module}@{GO_VERSION}" for module in GO_MODULES]
    command = ["go", "mod", "download", "-json", *wanted]
    shown = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    decoder, text, found = json.JSONDecoder(), shown.stdout, {}
    while text.strip():
        module, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        found[module["Path"]] = Path(module["Dir"])
    return found


def _roots(every: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Definitions of the kinds, their lists and their subresources' kinds."""
    by_gvk = definitions.by_gvk(every)
    wanted = {(row["group"], row["version"], row["kind"]) for row in rows}
    wanted |= {(group, version, f"{kind}List") for group, version, kind in wanted}
    wanted |= {
        (sub["group"], sub["version"], sub["kind"])
        for row in rows
        for sub in row.get("subresources", ())
    }
    return sorted({by_gvk[gvk] for gvk in wanted if gvk in by_gvk} | set(_ALSO))


def _sent(definition: str) -> bool:
    """Whether clients send it in a body: lists they do not."""
    return not definition.endswith(("List", "APIGroup"))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _write(name: str, value: Any) -> None:
    """One line per entry, so that a new version can be reviewed as a diff."""
    entries = value.get("definitions", value) if isinstance(value, dict) else value
    if isinstance(entries, dict):
        lines = [f"{_compact(key)}:{_compact(entry)}" for key, entry in entries.items()]
        body = "{\n" + ",\n".join(lines) + "\n}"
    else:
        body = "[\n" + ",\n".join(map(_compact, entries)) + "\n]"
    if entries is not value:
        head = {key: entry for key, entry in value.items() if key != "definitions"}
        body = _compact(head)[:-1] + f',"definitions":{body}}}'
    (DATA / name).write_text(body + "\n")


def _write_parts(name: str, parts: dict[str, Any]) -> None:
    """A line per entry of each part."""
    texts = []
    for key, part in parts.items():
        if isinstance(part, dict):
            lines = [f"{_compact(inner)}:{_compact(entry)}" for inner, entry in part.items()]
            opening, closing = "{", "}"
        else:
            lines, opening, closing = list(map(_compact, part)), "[", "]"
        texts.append(f"{_compact(key)}:{opening}\n" + ",\n".join(lines) + f"\n{closing}")
    (DATA / name).write_text("{\n" + ",\n".join(texts) + "\n}\n")


if __name__ == "__main__":
    main()
