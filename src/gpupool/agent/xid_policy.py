"""What each XID (the driver's error numbers) does to a card: xids.toml, and a file over it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec

_OURS = Path(__file__).with_name("xids.toml")
_MAX_BYTES = 256 * 1024


class Effect(StrEnum):
    IGNORE = "ignore"
    SUSPECT = "suspect"
    UNHEALTHY = "unhealthy"


class XidRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    effect: Effect
    meaning: str = "see NVIDIA's list of XIDs"
    quiet_minutes: int = 10  # a suspect card is healthy again after this time without an error


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default: XidRule | None = None
    xid: dict[str, XidRule] = msgspec.field(default_factory=dict)


class BadPolicy(ValueError):
    """A policy file cannot be used; the text says where it is wrong, and why."""


@dataclass(frozen=True, slots=True)
class XidPolicy:
    default: XidRule
    rules: Mapping[int, XidRule] = field(default_factory=dict)

    def rule(self, xid: int) -> XidRule:
        return self.rules.get(xid, self.default)


def load_policy(extra: Path | None = None) -> XidPolicy:
    """Raises BadPolicy."""
    ours = _ours()
    theirs = _read(extra) if extra is not None else _File()
    default = theirs.default or ours.default
    assert default is not None
    rules = {**ours.xid, **theirs.xid}
    return XidPolicy(default, {int(number): rule for number, rule in rules.items()})


@cache
def _ours() -> _File:
    return _read(_OURS)


def _read(path: Path) -> _File:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadPolicy(
            f"{path}: wanted a TOML file that you may read, found: {error.strerror}."
        ) from error
    if len(raw) > _MAX_BYTES:
        raise BadPolicy(f"{path}: {len(raw)} bytes; at most {_MAX_BYTES} are read")
    try:
        found = msgspec.convert(tomllib.loads(raw.decode()), _File)
    except UnicodeDecodeError as error:
        raise BadPolicy(f"{path}: wanted TOML as UTF-8 text, found other bytes.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        cause = error if isinstance(error, tomllib.TOMLDecodeError) else "nested too deeply"
        raise BadPolicy(f"{path}: not valid TOML: {cause}.") from error
    except msgspec.ValidationError as error:
        effects = ", ".join(Effect)
        words = f"tables [xid.N] with effect ({effects}), meaning and quiet_minutes"
        raise BadPolicy(f"{path}: wanted {words}; found: {error}.") from error
    for number in found.xid:
        if not (number.isascii() and number.isdecimal()):
            raise BadPolicy(f'{path}: wanted [xid.N] with N a whole number, found "{number}"')
    return found
