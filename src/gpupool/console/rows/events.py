"""An event as lists show it."""

from dataclasses import dataclass

from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class EventRow:
    namespace: str
    name: str
    kind: str  # Normal or Warning
    reason: str
    message: str
    about_kind: str
    about_namespace: str
    about: str
    count: int
    first: str
    last: str

    @property
    def is_warning(self) -> bool:
        return self.kind == "Warning"


def event_row(event: Obj) -> EventRow:
    metadata, about = event["metadata"], event.get("involvedObject") or {}
    series = event.get("series") or {}
    created = metadata.get("creationTimestamp") or ""
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return EventRow(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kind=str(event.get("type") or "Normal"),
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        about_kind=str(about.get("kind") or ""),
        about_namespace=str(about.get("namespace") or ""),
        about=str(about.get("name") or ""),
        count=int(series.get("count") or event.get("count") or 1),
        first=str(event.get("firstTimestamp") or created),
        last=str(last or created),
    )
