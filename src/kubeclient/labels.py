"""The syntax of label keys and values, with the complaints that Kubernetes makes about bad ones."""

import re
import unicodedata
from collections.abc import Iterable

_NAME_PATTERN = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_PATTERN = f"({_NAME_PATTERN})?"
_PREFIX_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
# None of these can backtrack more than once over its input, so a check is linear.
_NAME = re.compile(_NAME_PATTERN)
_VALUE = re.compile(_VALUE_PATTERN)
_PREFIX = re.compile(_PREFIX_PATTERN)

_NAME_MAX_BYTES = 63
_VALUE_MAX_BYTES = 63
_PREFIX_MAX_BYTES = 253

_NAME_COMPLAINT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME_PATTERN}')"
)
_VALUE_COMPLAINT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    f"  or '12345', regex used for validation is '{_VALUE_PATTERN}')"
)
_PREFIX_COMPLAINT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_PREFIX_PATTERN}')"
)


def key_complaints(key: str) -> list[str]:
    """What is wrong with a label key; empty if nothing is."""
    head, slash, name = key.rpartition("/")
    if "/" in head:
        suffix = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_COMPLAINT}{suffix}"]
    complaints = _prefix_complaints(head) if slash else []
    if not name:
        complaints.append("name part must be non-empty")
    elif len(name.encode(errors="replace")) > _NAME_MAX_BYTES:
        complaints.append(f"name part must be no more than {_NAME_MAX_BYTES} bytes")
    if not _NAME.fullmatch(name):
        complaints.append(f"name part {_NAME_COMPLAINT}")
    return complaints


def _prefix_complaints(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    complaints = []
    if len(prefix.encode(errors="replace")) > _PREFIX_MAX_BYTES:
        complaints.append(f"prefix part must be no more than {_PREFIX_MAX_BYTES} bytes")
    if not _PREFIX.fullmatch(prefix):
        complaints.append(f"prefix part {_PREFIX_COMPLAINT}")
    return complaints


def value_complaints(value: str) -> list[str]:
    """What is wrong with a label value; empty if nothing is."""
    complaints = []
    if len(value.encode(errors="replace")) > _VALUE_MAX_BYTES:
        complaints.append(f"must be no more than {_VALUE_MAX_BYTES} bytes")
    if not _VALUE.fullmatch(value):
        complaints.append(_VALUE_COMPLAINT)
    return complaints


_SHORT_VALUE = re.compile("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def are_values(values: Iterable[str]) -> bool:
    """Whether nothing is wrong with any of them, found out faster than by asking for each."""
    return all(map(_SHORT_VALUE.fullmatch, values))


_FORBIDDEN = re.compile(r"[^-A-Za-z0-9_.]+")
_ENDS = "-_."


def as_label_value(text: str) -> str:
    """Always a valid value; clean names with single blanks only have those turned to dashes."""
    plain = unicodedata.normalize("NFKD", text)
    clean = _FORBIDDEN.sub("-", plain).strip(_ENDS)
    return clean[:_VALUE_MAX_BYTES].strip(_ENDS)
