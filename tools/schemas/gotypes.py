"""Reads the type declarations of Kubernetes' Go packages.

Only what struct fields say in their type and tags: JSON name, protobuf number, pointer or not,
left out when empty or not. Regular expressions suffice, because gofmt fixes the layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_TYPE = re.compile(r"^type (\w+) (struct \{\n(.*?)^\}|struct ?\{\}|[^\n{]+)$", re.M | re.S)
_FIELD = re.compile(r"^\t(?:(\w+)[ ]+)?(\S+)[ ]+`(.*)`", re.M)
_IMPORT = re.compile(r'^\t(?:(\w+) )?"([^"]+)"$|^import (?:(\w+) )?"([^"]+)"$', re.M)
_TAG = re.compile(r'(\w+):"([^"]*)"')
_NAME = re.compile(r"(?<![\w./])([A-Za-z_]\w*)(?:\.(\w+))?")
_BUILTIN = re.compile(r"string|bool|u?int\d*|float\d+|byte|map|interface|any|struct")


@dataclass(frozen=True)
class Field:
    json: str  # "" for a struct that is written inline
    type: str  # with full import paths: "[]k8s.io/api/core/v1.Container"
    omitempty: bool
    number: int  # in protobuf; 0 if it is not sent

    @property
    def pointer(self) -> bool:
        return self.type.startswith("*")

    @property
    def value_type(self) -> str:
        return self.type.removeprefix("*")


@dataclass(frozen=True)
class GoType:
    fields: tuple[Field, ...] | None  # None: not a struct
    underlying: str = ""


class GoTypes:
    """Declarations by "<import path>.<name>"; packages are read when first asked for."""

    def __init__(self, modules: dict[str, Path]) -> None:
        self._modules = modules  # module path -> folder
        self._packages: dict[str, dict[str, GoType]] = {}

    def find(self, qualified: str) -> GoType | None:
        package, _, name = qualified.rpartition(".")
        if package not in self._packages:
            self._packages[package] = self._read(package)
        return self._packages[package].get(name)

    def underlying(self, type_: str) -> str:
        """`v1.Protocol` -> `string`; structs, slices and maps stay as they are."""
        while not type_.startswith(("[", "*", "map[")):
            declared = self.find(type_) if "." in type_ else None
            if declared is None or declared.fields is not None:
                break
            type_ = declared.underlying
        return type_

    def _read(self, package: str) -> dict[str, GoType]:
        found: dict[str, GoType] = {}
        for module, folder in self._modules.items():
            if package == module or package.startswith(module + "/"):
                for file in sorted((folder / package[len(module) :].strip("/")).glob("*.go")):
                    if not file.name.endswith(("_test.go", ".pb.go")):
                        found |= _declarations(file.read_text(), package)
        return found


def _declarations(source: str, package: str) -> dict[str, GoType]:
    imports = {
        alias or alias2 or path.rpartition("/")[2] or path2.rpartition("/")[2]: path or path2
        for alias, path, alias2, path2 in _IMPORT.findall(source)
    }
    found = {}
    for name, declared, body in _TYPE.findall(source):
        if declared.startswith("struct"):
            rows = [_field(m, imports, package) for m in _FIELD.finditer(body)]
            found[name] = GoType(tuple(row for row in rows if row is not None))
        else:
            found[name] = GoType(None, _qualified(declared.strip(), imports, package))
    return found


def _field(match: re.Match[str], imports: dict[str, str], package: str) -> Field | None:
    tags = dict(_TAG.findall(match[3]))
    if "json" not in tags or tags["json"] == "-":
        return None
    name, *options = tags["json"].split(",")
    numbers = tags.get("protobuf", "").split(",")
    return Field(
        json=name,
        type=_qualified(match[2], imports, package),
        omitempty="omitempty" in options,
        number=int(numbers[1]) if len(numbers) > 1 else 0,
    )


def _qualified(type_: str, imports: dict[str, str], package: str) -> str:
    def full(match: re.Match[str]) -> str:
        if match[2]:
            return f"{imports.get(match[1], match[1])}.{match[2]}"
        return match[1] if _BUILTIN.fullmatch(match[1]) else f"{package}.{match[1]}"

    return _NAME.sub(full, type_)
