"""Conflicts of server-side apply: fields that another manager owns and that would change."""

from collections.abc import Sequence
from dataclasses import dataclass

from localkube.apiserver.patch import field_set, go_text
from localkube.apiserver.patch.field_set import FieldSet
from localkube.apiserver.patch.managed_fields import UPDATE, Entry
from localkube.apiserver.status import ApiError, failure


@dataclass(frozen=True, slots=True)
class Conflict:
    owner: Entry
    fields: FieldSet

    def paths(self) -> list[str]:
        return [field_set.path_text(path) for path in field_set.paths(self.fields)]


def apply_conflict(conflicts: Sequence[Conflict]) -> ApiError:
    causes = []
    parts = []
    for conflict in sorted(conflicts, key=_rank):
        owner = _owner_text(conflict.owner)
        paths = conflict.paths()
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path}
            for path in paths
        ]
        parts.append("\n- ".join([f"conflicts with {owner}:", *paths]))
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(parts)
    return failure(409, "Conflict", message, details={"causes": causes})


def _rank(conflict: Conflict) -> tuple[str, str, str]:
    owner = conflict.owner
    return owner.get("manager", ""), owner["operation"], owner.get("subresource", "")


def _owner_text(owner: Entry) -> str:
    """Without the API version for managers that use apply: they are the same in every version."""
    text = go_text.quoted(owner.get("manager", ""))
    if owner.get("subresource"):
        text += f" with subresource {go_text.quoted(owner['subresource'])}"
    return f"{text} using {owner['apiVersion']}" if owner["operation"] == UPDATE else text
