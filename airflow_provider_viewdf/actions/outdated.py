"""A pattern or window is translated for what it reads: for its types, and for which of its rows are unique."""

from __future__ import annotations

from collections.abc import Mapping, Set

from airflow_provider_viewdf.actions.workbench import Known
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import ChangedDefinitionError


def refuse_outdated_translations(
    known: Known, definitions: Mapping[str, Definition], analyzed: Mapping[str, Definition], applied: Set[str]
) -> None:
    """Refuse to change what a translated view relies on, unless that is translated anew by the same script."""
    changed = {
        key
        for key, item in {**definitions, **analyzed}.items()
        if key in known.definitions and _describe(item) != _describe(known.definitions[key])
    }
    for key, view in known.definitions.items():
        if view.translation is None or key in applied or key not in definitions:
            continue
        outdated = sorted(_find_read(view, known) & changed)
        if outdated:
            source = definitions[outdated[0]].name
            raise ChangedDefinitionError(
                f"{source} would change, and {view.name} was translated for the columns that {source} has now; nothing was "
                f"changed. Define {view.name} in the same script, so that it is translated anew."
            )


def _describe(item: Definition) -> tuple[object, ...]:
    """What a translation may rely on."""
    columns = tuple((fold(column.name), column.type) for column in item.shown_columns)
    unique = {fold(name) for name in item.unique}
    return (columns, fold(item.ordered), unique, item.length_seconds)


def _find_read(view: Definition, known: Known) -> set[str]:
    """The tables and views, folded, that a translated view and its helper views read, but for these themselves."""
    own = {
        key for key, item in known.definitions.items() if fold(view.name) in {fold(name) for name in item.owners}
    } | {fold(view.name)}
    return {fold(reference.table) for key in own for reference in known.definitions[key].references} - own
