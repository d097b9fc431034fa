"""When an image is pulled, if nobody says: always for :latest, else only when it is absent."""

import re
from functools import lru_cache

_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


@lru_cache(maxsize=4096)
def pull_policy(image: str) -> str:
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    """Empty for what is no image reference; validation says so elsewhere, if it matters."""
    # The longest legal name, tag and digest stay far below; the pattern must not meet more.
    if len(image) > 1024 or _IDENTIFIER.fullmatch(image):
        return ""
    found = _REFERENCE.fullmatch(image)
    if found is None:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
