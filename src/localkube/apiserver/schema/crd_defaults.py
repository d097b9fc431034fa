"""Fills in the defaults that a CRD's schema names."""

import copy
from typing import Any

from localkube.apiserver.schema.node import Schema, Type


class Defaults:
    """Knows beforehand which fields lead to a default, and looks at no others."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._leads: set[int] = set()  # of Schemas, by id
        self._any = self._find(schema)

    def fill(self, obj: Any) -> None:
        if self._any:
            self._fill(obj, self._schema)

    def _find(self, schema: Schema) -> bool:
        """Whether a default lies inside."""
        if schema.definition:
            return False
        inside = [field.has_default | self._find(field) for field in schema.fields.values()]
        if schema.items is not None:
            inside.append(self._find(schema.items))
        if not any(inside):
            return False
        self._leads.add(id(schema))
        return True

    def _fill(self, value: Any, schema: Schema) -> None:
        if schema.type is Type.LIST and isinstance(value, list) and schema.items:
            for inner in value:
                self._fill(inner, schema.items)
        elif schema.type is Type.MAP and isinstance(value, dict) and schema.items:
            for inner in value.values():
                self._fill(inner, schema.items)
        elif isinstance(value, dict):
            self._fill_fields(value, schema)

    def _fill_fields(self, value: dict[str, Any], schema: Schema) -> None:
        for name, field in schema.fields.items():
            if field.has_default and name not in value:
                value[name] = copy.deepcopy(field.default)
            if name in value and id(field) in self._leads:
                self._fill(value[name], field)
