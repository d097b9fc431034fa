"""CertificateSigningRequests: as they are made, approved or denied, and signed."""

from collections.abc import Mapping, Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, size
from localkube.apiserver.validation.metadata import object_meta, object_meta_update
from localkube.signing_requests import BadRequest, certificate_problem, decoded, parse

_LEGACY = "kubernetes.io/legacy-unknown"
_SHORTEST_S = 600
_DOMAIN_MAX = 253
_PATH_MAX = 253 + 63 + 1
_ALL = ("False", "True", "Unknown")
_ONLY_TRUE = frozenset({"Approved", "Denied", "Failed"})
_DECISIONS = ("Approved", "Denied")
_USAGES = (
    *("any", "cert sign", "client auth", "code signing", "content commitment", "crl sign"),
    *("data encipherment", "decipher only", "digital signature", "email protection"),
    *("encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement"),
    *("key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime"),
    *("server auth", "signing", "timestamping"),
)
_EXCLUSIVE = "Approved and Denied conditions are mutually exclusive"
_CONDITIONS = "status.conditions"
_CERTIFICATE = "status.certificate"


def create(obj: Obj) -> Errors:
    return _request_errors(obj, None)


def update(new: Obj, old: Obj) -> Errors:
    return _changed(new, old, may_decide=False, may_sign=False)


def status_update(new: Obj, old: Obj) -> Errors:
    return _changed(new, old, may_decide=False, may_sign=True)


def approval_update(new: Obj, old: Obj) -> Errors:
    return _changed(new, old, may_decide=True, may_sign=False)


def _any_name(name: str) -> tuple[str, ...]:
    """The generic check remains: it must be usable in a URL."""
    return ()


def _request_errors(new: Obj, old: Obj | None) -> Errors:
    """What was wrong already in the stored object is tolerated, but for the request itself."""
    errors: Errors = []
    object_meta(errors, new["metadata"], _any_name, namespaced=False)
    spec = new["spec"]
    if old is None or spec != old["spec"]:
        _spec(errors, spec)
    _conditions(errors, _conditions_of(new), _conditions_of(old or {}))
    certificate, before = _certificate(new), _certificate(old or {})
    if certificate and certificate != before:
        problem = certificate_problem(decoded(certificate))
        if problem:
            errors.append(invalid(_CERTIFICATE, "<certificate data>", problem))
    return errors


def _spec(errors: Errors, spec: Obj) -> None:
    request = spec.get("request")
    try:
        parse(decoded(request or ""))
    except BadRequest as problem:
        errors.append(invalid("spec.request", request, str(problem)))
    usages = spec.get("usages", [])
    if not usages:
        errors.append(required("spec.usages"))
    for place, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(not_supported(f"spec.usages[{place}]", usage, _USAGES))
    for place, usage in enumerate(usages):
        if usage in usages[:place]:
            errors.append(duplicate(f"spec.usages[{place}]", usage))
    if spec["signerName"] == _LEGACY:
        text = "the legacy signerName is not allowed via this API version"
        errors.append(invalid("spec.signerName", _LEGACY, text))
    else:
        _signer_name(errors, spec["signerName"])
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST_S:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, text))


def _signer_name(errors: Errors, name: str) -> None:
    at = "spec.signerName"
    if not name:
        errors.append(required(at))
        return
    if name.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid(at, name, text))
        return
    domain, _, path = name.partition("/")
    if size(domain) > _DOMAIN_MAX:
        errors.append(too_long(at, _DOMAIN_MAX))
    labels = domain.split(".")
    _first_bad_label(errors, at, domain, labels, dns_label)
    if len(labels) < 2:
        text = "should be a domain with at least two segments separated by dots"
        errors.append(invalid(at, domain, text))
    _first_bad_label(errors, at, path, path.split("."), dns_subdomain)
    if size(path) > _PATH_MAX:
        errors.append(too_long(at, _PATH_MAX))


def _first_bad_label(errors: Errors, at: str, whole: str, labels: Sequence[str], check) -> None:  # type: ignore[no-untyped-def]
    for label in labels:
        complaints = check(label)
        for complaint in complaints:
            errors.append(invalid(at, whole, f'validating label "{label}": {complaint}'))
        if complaints:
            return


def _conditions(errors: Errors, conditions: Sequence[Obj], before: Sequence[Obj]) -> None:
    tolerated = _types(before)
    seen: list[str] = []
    for place, condition in enumerate(conditions):
        kind, at = condition["type"], f"{_CONDITIONS}[{place}]"
        if not kind and "" not in tolerated:
            errors.append(required(f"{at}.type"))
        _condition_status(errors, condition, f"{at}.status")
        other = next((each for each in _DECISIONS if each != kind), "")
        if kind in _DECISIONS and other in seen and not {*_DECISIONS} <= {*tolerated}:
            errors.append(invalid(_CONDITIONS, kind, _EXCLUSIVE))
        if kind in seen and len(set(tolerated)) == len(tolerated):
            errors.append(duplicate(f"{at}.type", kind))
        seen.append(kind)


def _condition_status(errors: Errors, condition: Obj, at: str) -> None:
    allowed = ("True",) if condition["type"] in _ONLY_TRUE else _ALL
    if not condition["status"]:
        errors.append(required(at))
    elif condition["status"] not in allowed:
        errors.append(not_supported(at, condition["status"], allowed))


def _changed(new: Obj, old: Obj, *, may_decide: bool, may_sign: bool) -> Errors:
    errors = _request_errors(new, old)
    for kind in (*_DECISIONS, "Failed"):
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            text = f'updates may not remove a condition of type "{kind}"'
            errors.append(forbidden_field(_CONDITIONS, text))
    if not may_decide:
        _decisions_stay(errors, new, old)
    if _certificate(new) != _certificate(old):
        if not may_sign:
            errors.append(forbidden_field(_CERTIFICATE, "updates may not set certificate content"))
        elif _certificate(old):
            text = "updates may not modify existing certificate content"
            errors.append(forbidden_field(_CERTIFICATE, text))
    object_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def _decisions_stay(errors: Errors, new: Obj, old: Obj) -> None:
    for kind in _DECISIONS:
        before, after = _of_type(old, kind), _of_type(new, kind)
        if len(after) > len(before):
            text = f'updates may not add a condition of type "{kind}"'
            errors.append(forbidden_field(_CONDITIONS, text))
        elif len(after) == len(before) and after != before:
            text = f'updates may not modify a condition of type "{kind}"'
            errors.append(forbidden_field(_CONDITIONS, text))


def _types(conditions: Sequence[Obj]) -> list[str]:
    return [condition["type"] for condition in conditions]


def _of_type(obj: Obj, kind: str) -> list[Obj]:
    return [each for each in _conditions_of(obj) if each["type"] == kind]


def _conditions_of(obj: Mapping[str, Obj]) -> Sequence[Obj]:
    found: Sequence[Obj] = (obj.get("status") or {}).get("conditions", ())
    return found


def _certificate(obj: Mapping[str, Obj]) -> str:
    found: str = (obj.get("status") or {}).get("certificate", "")
    return found
