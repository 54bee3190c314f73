"""The digest of a definition: the same for the same meaning, whatever the layout, comments and case of keywords."""

from __future__ import annotations

import hashlib
import json

from airflow_provider_viewdf.definitions import Definition, Query, fold
from airflow_provider_viewdf.language.dialect import ViewDF

# To be raised when the canonical form changes, so that digests of old and new never meet by accident.
FORM = 1


def digest_definition(definition: Definition) -> str:
    initialize = _write(definition.initialize)
    # A plain view has one query for both.
    update = initialize if definition.update is definition.initialize else _write(definition.update)
    form = {
        "form": FORM,
        "kind": definition.kind,
        "name": fold(definition.name),
        "length": definition.length_seconds,
        "columns": [[column.name, column.type] for column in definition.columns],
        "keys": [fold(key) for key in definition.keys],
        "ordered": definition.ordered,
        "location": definition.location,
        "format": definition.format,
        "options": definition.options,
        "initialize": initialize,
        "update": update,
        "starting": definition.starting.isoformat() if definition.starting else None,
        "starting_latest": definition.starting_latest,
    }
    if definition.unique:
        form["unique"] = [fold(name) for name in definition.unique]
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()


def _write(query: Query | None) -> str | None:
    if query is None:
        return None
    return query.tree.sql(dialect=ViewDF, comments=False, normalize_functions="upper")
