"""Configuration: ConfigMaps with their content, and Secrets, whose values stay hidden.

No page has the value of a Secret in it. A visitor asks for one value, by a form of its own.
"""

import base64
import binascii
from collections.abc import Mapping
from functools import partial

from gpupool.console.pages.create import create_action
from gpupool.console.pages.edit import edit
from gpupool.console.pages.objects import actions_of, pages_of
from gpupool.console.pages.workload_actions import delete, may
from gpupool.console.parts.action import Checked, Question
from gpupool.console.parts.cells import Text
from gpupool.console.parts.form import Field, FieldKind
from gpupool.console.parts.kinds import Doing, Kind, Section
from gpupool.console.parts.table import Choice, Column, RowAction, Table, view
from gpupool.console.rows.configuration import ConfigurationRow, configuration_row
from gpupool.console.visit import Visit
from gpupool.console.words import word
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, SECRETS

_MOST_SHOWN = 20_000  # characters of one value
_MOST_NAMED = 4  # keys in a list
_DELETION = word("Pods that run keep what they have read. New ones that need it do not start.")


def _names(visit: Visit, row: ConfigurationRow) -> Text:
    words = ", ".join(row.keys[:_MOST_NAMED]) or "–"
    if len(row.keys) > _MOST_NAMED:
        words += " " + visit.t("and {count} more", count=len(row.keys) - _MOST_NAMED)
    return Text(words)


def _state(visit: Visit, row: ConfigurationRow) -> str:
    words = visit.t("It has {count} entries.", count=len(row.keys))
    return f"{words} {visit.t('They cannot be changed any more.')}" if row.is_fixed else words


def _key_column(visit: Visit) -> Column[ConfigurationRow]:
    return Column("keys", visit.t("Entries"), lambda row: _names(visit, row), lambda row: row.keys)


def _secret_columns(visit: Visit) -> tuple[Column[ConfigurationRow], ...]:
    kind: Column[ConfigurationRow] = Column(
        "type", visit.t("Type"), lambda row: Text(row.kind), lambda row: row.kind
    )
    return (kind, _key_column(visit))


# -- ConfigMaps --------------------------------------------------------------------------------


async def _content(visit: Visit, obj: Obj, row: ConfigurationRow) -> tuple[Section, ...]:
    t, data, binary = visit.t, obj.get("data") or {}, obj.get("binaryData") or {}
    texts = [(key, _shortened(visit, str(data[key]))) for key in row.keys if key in data]
    for key in row.keys:
        if key in binary:
            texts.append((key, t("{count} bytes that are no text", count=_size(binary[key]))))
    note = "" if texts else t("It is empty.")
    return (Section("content", t("Content"), texts=tuple(texts), note=note),)


def _shortened(visit: Visit, text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text
    more = visit.t("… and {count} more characters", count=len(text) - _MOST_SHOWN)
    return f"{text[:_MOST_SHOWN]}\n{more}"


def _size(encoded: object) -> int:
    return len(str(encoded)) * 3 // 4 - str(encoded)[-2:].count("=")


# -- Secrets -----------------------------------------------------------------------------------


async def _entries(visit: Visit, obj: Obj, row: ConfigurationRow) -> tuple[Section, ...]:
    t, data = visit.t, obj.get("data") or {}
    lacks = await visit.lacks(*may("get", SECRETS)(row.namespace))

    def actions(key: str) -> tuple[RowAction, ...]:
        at = (SECRETS.plural, row.namespace, row.name, "show")
        return (RowAction(t("Show"), visit.link(*at, key=key), lacks),)

    table = Table[str](
        columns=(
            Column("name", t("Name"), Text),
            Column("size", t("Bytes"), lambda key: Text(str(_size(data.get(key, ""))))),
            Column("value", t("Value"), lambda _: Text("••••••", t("Hidden until you ask for it"))),
        ),
        key=lambda key: key,
        words=lambda key: key,
        actions=actions,
        empty=t("It is empty."),
    )
    return (Section("entries", t("Entries"), view(table, row.keys, {})),)


def show_value() -> Doing:
    async def ask(visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        keys = sorted((await visit.kube.get(SECRETS, name, namespace)).get("data") or {})
        asked = visit.query.get("key", "")
        key = asked if asked in keys else (keys[0] if keys else "")
        command = f"kubectl get secret {name} --namespace {namespace} -o json"
        return Question(
            title=t("Show a value of {name}", name=name),
            sentence=t("Make sure that nobody else sees your screen."),
            button=t("Show"),
            fields=(
                Field(
                    "key",
                    t("Name"),
                    FieldKind.CHOICE,
                    value=key,
                    choices=tuple((each, each) for each in keys),
                    is_required=True,
                ),
            ),
            command=command,
            cancel=visit.link(SECRETS.plural, namespace, name),
        )

    async def do(visit: Visit, values: Mapping[str, str]) -> Checked:
        namespace, name = visit.names["namespace"], visit.names["name"]
        data = (await visit.kube.get(SECRETS, name, namespace)).get("data") or {}
        text, is_text = decoded(str(data.get(values["key"]) or ""))
        words = "" if is_text else visit.t("It is no text. This is its base64:")
        return Checked(words, {"value": text})

    return Doing(
        "show", word("Show"), may("get", SECRETS), ask, do, template="value.html", in_list=False
    )


def decoded(encoded: str) -> tuple[str, bool]:
    """The text, and whether it is one; else it stays as it is."""
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return encoded, False
    return (text, True) if text.isprintable() or _is_lines(text) else (encoded, False)


def _is_lines(text: str) -> bool:
    return all(line.replace("\t", "").isprintable() for line in text.splitlines())


async def _creates(sample: str, visit: Visit) -> tuple[RowAction, ...]:
    return (create_action(visit, sample),)


CONFIG_MAP = Kind(
    resource=CONFIG_MAPS,
    title=word("ConfigMaps"),
    row=configuration_row,
    sentence=lambda visit, rows: visit.t("{count} ConfigMaps.", count=len(rows)),
    state=_state,
    columns=lambda visit: (_key_column(visit),),
    words=lambda row: " ".join(row.keys),
    doings=(edit(CONFIG_MAPS), delete(CONFIG_MAPS, _DELETION)),
    creates=partial(_creates, "configmap"),
    sections=_content,
    has_yaml=False,  # its content is all there is
)
SECRET = Kind(
    resource=SECRETS,
    title=word("Secrets"),
    row=configuration_row,
    sentence=lambda visit, rows: visit.t(
        "{count} Secrets. Their values are hidden until you ask for one.", count=len(rows)
    ),
    state=_state,
    columns=_secret_columns,
    words=lambda row: f"{row.kind} {' '.join(row.keys)}",
    choices=lambda visit: (Choice("type", visit.t("Type"), lambda row: row.kind),),
    doings=(show_value(), edit(SECRETS), delete(SECRETS, _DELETION)),
    creates=partial(_creates, "secret"),
    sections=_entries,
    has_yaml=False,  # it would show the values
)
KINDS = (CONFIG_MAP, SECRET)
PAGES = tuple(page for kind in KINDS for page in pages_of(kind))
ACTIONS = tuple(action for kind in KINDS for action in actions_of(kind))
