"""Syntax of names, keys and values. Each function returns what is wrong: nothing, for most."""

import re
from collections.abc import Callable
from typing import TypeAlias

from kubeclient.labels import key_complaints, value_complaints
from localkube.apiserver.memory import remembered
from localkube.apiserver.validation.errors import in_range

Complaints: TypeAlias = tuple[str, ...]
NameCheck: TypeAlias = Callable[[str], Complaints]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORE_SUBDOMAIN = rf"{_UNDERSCORE_LABEL}(\.{_UNDERSCORE_LABEL})*"
_LABEL_MAX = 63
_SUBDOMAIN_MAX = 253
_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"


def _regex_text(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} ({f'e.g. {shown}' if shown else ''}regex used for validation is '{pattern}')"


_LABEL_TEXT = _regex_text(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    + _ALPHANUMERIC_ENDS,
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_TEXT = _regex_text(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', " + _ALPHANUMERIC_ENDS,
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_TEXT = _regex_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_UNDERSCORE_TEXT = _regex_text(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-'"
    " or '.', " + _ALPHANUMERIC_ENDS,
    _UNDERSCORE_SUBDOMAIN,
    "example.com",
)
_WILDCARD_TEXT = _regex_text(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which"
    " must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric"
    " character",
    rf"\*\.{_SUBDOMAIN}",
    "*.example.com",
)
_CONFIG_KEY_TEXT = _regex_text(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)
_PERCENT_TEXT = _regex_text(
    "a valid percent string must be a numeric string followed by an ending '%'",
    "[0-9]+%",
    "1%",
    "93%",
)
_HEADER_TEXT = _regex_text(
    "a valid HTTP header must consist of alphanumeric characters or '-'",
    "[-A-Za-z0-9]+",
    "X-Header-Name",
)
_IDENTIFIER_TEXT = _regex_text(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of"
    " alphanumeric characters or '_'",
    "[A-Za-z_][A-Za-z0-9_]*",
    "my_name",
    "MY_NAME",
    "MyName",
)

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_underscore_subdomain = re.compile(_UNDERSCORE_SUBDOMAIN).fullmatch
_is_config_key = re.compile("[-._a-zA-Z0-9]+").fullmatch
_is_percent = re.compile("[0-9]+%", re.ASCII).fullmatch
_is_header = re.compile("[-A-Za-z0-9]+").fullmatch
_is_identifier = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch

cached = remembered(16_384)


def size(text: str) -> int:
    """In bytes, as Go counts."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def too_long_text(limit: int) -> str:
    return f"must be no more than {limit} characters"


@cached
def dns_label(value: str) -> Complaints:
    complaints = (too_long_text(_LABEL_MAX),) if size(value) > _LABEL_MAX else ()
    if _is_label(value):
        return complaints
    return (*complaints, "must not contain dots" if _is_subdomain(value) else _LABEL_TEXT)


@cached
def dns_subdomain(value: str) -> Complaints:
    complaints = (too_long_text(_SUBDOMAIN_MAX),) if size(value) > _SUBDOMAIN_MAX else ()
    return complaints if _is_subdomain(value) else (*complaints, _SUBDOMAIN_TEXT)


def long_name(value: str) -> Complaints:
    """A subdomain again, in the words of kinds whose rules are generated."""
    too_long, in_bytes = (
        too_long_text(_SUBDOMAIN_MAX),
        f"must be no more than {_SUBDOMAIN_MAX} bytes",
    )
    return tuple(in_bytes if one == too_long else one for one in dns_subdomain(value))


def dns_1035_label(value: str) -> Complaints:
    complaints = (too_long_text(_LABEL_MAX),) if size(value) > _LABEL_MAX else ()
    return complaints if _is_label_1035(value) else (*complaints, _LABEL_1035_TEXT)


def dns_subdomain_with_underscore(value: str) -> Complaints:
    complaints = (too_long_text(_SUBDOMAIN_MAX),) if size(value) > _SUBDOMAIN_MAX else ()
    return complaints if _is_underscore_subdomain(value) else (*complaints, _UNDERSCORE_TEXT)


def wildcard_subdomain(value: str) -> Complaints:
    complaints = (too_long_text(_SUBDOMAIN_MAX),) if size(value) > _SUBDOMAIN_MAX else ()
    valid = value.startswith("*.") and _is_subdomain(value[2:])
    return complaints if valid else (*complaints, _WILDCARD_TEXT)


@cached
def label_key(value: str) -> Complaints:
    """What Kubernetes also calls a qualified name."""
    return tuple(key_complaints(value))


@cached
def label_value(value: str) -> Complaints:
    return tuple(value_complaints(value))


def config_key(value: str) -> Complaints:
    complaints = [too_long_text(_SUBDOMAIN_MAX)] if size(value) > _SUBDOMAIN_MAX else []
    if not _is_config_key(value):
        complaints.append(_CONFIG_KEY_TEXT)
    if value in (".", ".."):
        complaints.append(f"must not be '{value}'")
    elif value.startswith(".."):
        complaints.append("must not start with '..'")
    return tuple(complaints)


@cached
def env_name(value: str) -> Complaints:
    if not value:
        return ("environment variable name must be non-empty",)
    if all(" " <= character <= "~" and character != "=" for character in value):
        return ()
    return (
        "a valid environment variable name must consist only of printable ASCII characters other"
        " than '='",
    )


def port_name(value: str) -> Complaints:
    complaints = [too_long_text(15)] if size(value) > 15 else []
    if not _is_port_name(value):
        complaints.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in value):
        complaints.append("must contain at least one letter (a-z)")
    if "--" in value:
        complaints.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        complaints.append("must not begin or end with a hyphen")
    return tuple(complaints)


def port_number(value: int) -> Complaints:
    return () if 1 <= value <= 65535 else (in_range(1, 65535),)


def percent(value: str) -> Complaints:
    return () if _is_percent(value) else (_PERCENT_TEXT,)


def header_name(value: str) -> Complaints:
    return () if _is_header(value) else (_HEADER_TEXT,)


def c_identifier(value: str) -> Complaints:
    return () if _is_identifier(value) else (_IDENTIFIER_TEXT,)


def user_id(value: int) -> Complaints:
    return () if 0 <= value < 2**31 else (in_range(0, 2**31 - 1),)


def path_segment(value: str) -> Complaints:
    """A name that can stand between slashes: the least that is asked of any name."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> Complaints:
    return tuple(f"may not contain '{character}'" for character in "/%" if character in value)


def as_prefix(name: str) -> str:
    """generateName may end in a dash: a name made from it does not."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name
