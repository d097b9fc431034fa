"""The form of a new workload and its YAML are two views of one thing: joins what was done to both.

`seen` is the YAML that the page showed last. Against it, one can tell what was changed in the form
and what in the text. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpupool.console.complaints import BadManifest, Complaint, errors_of, line_of
from gpupool.console.parts.form import Field, Invalid, complaints
from gpupool.console.three_way import differences, joined
from gpupool.console.words import Translate
from gpupool.console.workload_manifest import objects_of_form, yaml_of_objects
from gpupool.console.workload_reading import Manifest, manifest_of, values_of
from gpupool.contract.manifests import objects_of
from gpupool.contract.yaml_document import dotted, read_documents

LONGEST = 200_000


@dataclass(frozen=True, slots=True)
class Joined:
    manifest: Manifest
    text: str  # as it was typed, if the form has changed nothing
    values: Mapping[str, str]  # of the fields
    kept: tuple[str, ...]  # what the form has no field for


def join(t: Translate, fields: tuple[Field, ...], values: Mapping[str, str]) -> Joined:
    """`values`: of the fields, with `manifest` and `seen`. Raises Invalid."""
    form = _made(t, values)
    typed, seen = _read(t, values["manifest"]), _read(t, values["seen"])
    if typed is None:
        return Joined(form, yaml_of_objects(form.objects), values, ())
    # Whoever types before anything was shown has seen the form alone.
    base = _made(t, _in_form(t, fields, values, seen or form))
    parts = joined(base.parts, typed.parts, form.parts)
    result = Manifest(parts["workload"], parts.get("service"), typed.others)
    is_typed = result == typed
    text = values["manifest"] if is_typed else yaml_of_objects(result.objects)
    now = _in_form(t, fields, values, result)
    made = _made(t, now)
    # The same in other words (a port without its name): what was typed stays in the fields.
    shown = values if made == form else now
    return Joined(result, text, shown, _kept(made, result))


def _made(t: Translate, values: Mapping[str, str]) -> Manifest:
    """Raises Invalid."""
    workload, *more = objects_of_form(t, values)
    return Manifest(workload, more[0] if more else None)


def _read(t: Translate, text: str) -> Manifest | None:
    """None: there is nothing. Raises Invalid."""
    if not text.strip():
        return None
    documents = read_documents(text)
    if isinstance(documents, tuple):
        bad = BadManifest(*(Complaint(each.text, line_of(each.mark)) for each in documents))
        raise Invalid(errors_of(t, bad))
    found = manifest_of([each for document in documents for each in objects_of(document.data)])
    if found is None:
        raise Invalid({"manifest": t("Wanted a Deployment, a StatefulSet or a Job.")})
    return found


def _in_form(
    t: Translate, fields: tuple[Field, ...], values: Mapping[str, str], manifest: Manifest
) -> dict[str, str]:
    """The values of the fields for this manifest. Raises Invalid where a field cannot have it."""
    found = {**values, **values_of(manifest)}
    found["namespace"] = found["namespace"] or values["namespace"]
    named = {each.name: each for each in fields}
    if "pool" in named and found["pool"] not in dict(named["pool"].choices):
        found["pool"] = ""  # of a pool without cards: the text keeps it
    wrong = complaints(fields, found)
    try:
        objects_of_form(t, found)
    except (Invalid, ValueError) as error:
        wrong = wrong or getattr(error, "errors", {"": str(error)})
    if wrong:
        labels = ", ".join(named[name].label for name in wrong if name in named)
        words = t(
            "The form cannot show this: {fields}. You can go on in the editor.", fields=labels
        )
        raise Invalid({"manifest": words})
    return found


def _kept(made: Manifest, result: Manifest) -> tuple[str, ...]:
    found = (dotted(path[1:]) for path in differences(made.parts, result.parts))
    return (*found, *(str(each.get("kind") or "") for each in result.others))
