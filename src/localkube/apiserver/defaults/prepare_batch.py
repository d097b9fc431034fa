"""A new Job selects its own pods, by its uid."""

from kubeclient.objects import Obj


def job(obj: Obj) -> None:
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    name, uid = metadata.get("name", ""), metadata.get("uid", "")
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels.setdefault(f"{prefix}job-name", name)
        labels.setdefault(f"{prefix}controller-uid", uid)
    chosen = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    chosen.setdefault("batch.kubernetes.io/controller-uid", uid)
    # A job without labels has its template's: those, too, now that there are some.
    metadata.setdefault("labels", dict(labels))
