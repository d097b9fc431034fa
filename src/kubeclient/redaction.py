"""Keeps credentials out of logs: replaces whatever looks like a credential by [redacted]."""

import logging
import re
from functools import lru_cache
from urllib.parse import parse_qsl

BLOT = "[redacted]"
# The prefix of tokens that a localkube cluster issues, so that they are recognised anywhere.
TOKEN_PREFIX = "localkube_"
# Clusters that are older than localkube keep tokens with this prefix. Names of metrics have it,
# too, so that only what is as long as a token is redacted.
_OLD_TOKEN = r"\bgpupool_[\w-]{43}(?![\w-])"
# No alternative can backtrack, so the time is linear in the length of the line.
_SECRETS = re.compile(
    r"(?P<kept>\bbearer\s+|\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer\s+)?"
    r"|\b(?:access_|id_|refresh_)?token[\"']?\s*[:=]\s*[\"']?"
    r"|base64url\.bearer\.authorization\.k8s\.io\.)[^\s\"',;&]+"
    rf"|\b{TOKEN_PREFIX}[\w-]+|{_OLD_TOKEN}"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    re.IGNORECASE,
)
# Query parameters whose values are no secrets. `command` is not among them: it may contain some.
_HARMLESS = frozenset(
    {
        "allowWatchBookmarks",
        "container",
        "dryRun",
        "fieldManager",
        "fieldSelector",
        "fieldValidation",
        "follow",
        "force",
        "gracePeriodSeconds",
        "labelSelector",
        "limit",
        "ports",
        "propagationPolicy",
        "resourceVersion",
        "resourceVersionMatch",
        "timeout",
        "timeoutSeconds",
        "watch",
    }
)


def redact(text: str) -> str:
    return _SECRETS.sub(lambda found: (found["kept"] or "") + BLOT, text)


@lru_cache(maxsize=256)  # clients send the same few over and over
def redact_query(query: str) -> str:
    """The query of a URL with only the harmless values left."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=1000)
    kept = ((key, value if key in _HARMLESS else BLOT) for key, value in pairs)
    return redact("&".join(f"{key}={value}" for key, value in kept))


def redact_record(record: logging.LogRecord) -> bool:
    """A filter for logging handlers: `handler.addFilter(redact_record)`."""
    record.msg, record.args = redact(record.getMessage()), None
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    if record.exc_text:
        record.exc_text = redact(record.exc_text)
    for name, value in record.__dict__.items():
        if type(value) is str:
            record.__dict__[name] = redact(value)
    return True
