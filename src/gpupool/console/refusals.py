"""The API server's own words, at the field where they belong."""

from kubeclient.errors import Refused


def field_errors(refused: Refused) -> dict[str, str]:
    """ "" is the form as a whole: the console's forms do not have the API's fields."""
    causes = (refused.status.get("details") or {}).get("causes") or ()
    lines = [f"{each.get('field', '')}: {each.get('message', '')}" for each in causes]
    return {"": str(refused) if not lines or len(lines) == 1 else "\n".join(lines)}
