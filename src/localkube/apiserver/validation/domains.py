"""Names that begin with, or are, a domain of the Internet."""

import re

from localkube.apiserver.validation.errors import (
    Errors,
    invalid,
    invalid_each,
    required,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain

_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path = re.compile(_PATH).fullmatch


def domain_prefixed_path(errors: Errors, text: str, path: str) -> None:
    host, slash, rest = text.partition("/")
    if not text:
        errors.append(required(path))
    elif not host or not slash or not rest:
        what = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid(path, text, what))
    else:
        invalid_each(errors, path, host, dns_subdomain(host))
        if not _is_path(rest):
            what = f"Invalid path (regex used for validation is '{_PATH}')"
            errors.append(invalid(path, rest, what))


def qualified_name(errors: Errors, name: str, path: str) -> None:
    """At least three parts: somebody's own name under somebody's domain."""
    if not name:
        errors.append(required(path))
    elif dns_subdomain(name):
        errors.append(invalid(path, name, ",".join(dns_subdomain(name))))
    elif name.count(".") < 2:
        what = "should be a domain with at least three segments separated by dots"
        errors.append(invalid(path, name, what))


def host_name(errors: Errors, name: str, path: str) -> None:
    """The full name of a host, a dot at its end or not."""
    if not name:
        errors.append(required(path))
        return
    name = name.removesuffix(".")
    if dns_subdomain(name):
        errors.append(invalid(path, name, ",".join(dns_subdomain(name))))
    elif "." not in name:
        what = "should be a domain with at least two segments separated by dots"
        errors.append(invalid(path, name, what))
    else:
        for label in name.split("."):
            if dns_label(label):
                errors.append(invalid(path, label, ",".join(dns_label(label))))
                return
