"""Dropping definitions: refused as long as anything that stays reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_provider_viewdf.actions.workbench import Known
from airflow_provider_viewdf.catalog import DefinitionChange
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import DefinitionError, StillReadError, UnknownTableError
from airflow_provider_viewdf.language.statements import Drop

_WORDS = {"stream": "STREAM", "dimension": "TABLE", "view": "VIEW"}


def find_dropped(drops: Sequence[Drop], known: Known, text: str) -> list[str]:
    """The folded names of what is to be dropped and is there."""
    dropped: list[str] = []
    for item in drops:
        place = {"text": text, "start": item.name.start, "end": item.name.end}
        name, word = item.name.text, _WORDS[item.kind]
        definition = known.definitions.get(fold(name))
        if definition is None:
            if item.if_exists:
                continue
            raise UnknownTableError(
                f"There is no {word.lower()} {name} to drop; write DROP {word} IF EXISTS {name} if it may be gone already.",
                **place,  # type: ignore[arg-type]
            )
        if definition.helper_of:
            raise DefinitionError(
                f"{definition.name} is a helper view of {definition.helper_of} and goes when nothing needs it any more; "
                f"drop {definition.helper_of}.",
                **place,  # type: ignore[arg-type]
            )
        if definition.kind != item.kind:
            right = _WORDS[definition.kind]
            raise DefinitionError(
                f"{definition.name} is no {word.lower()} but a {right.lower()}; write DROP {right} {definition.name}.",
                **place,  # type: ignore[arg-type]
            )
        dropped.append(fold(name))
    return dropped


def refuse_if_read(gone: Sequence[str], known: Known, staying: Mapping[str, Definition]) -> None:
    """`staying` are the definitions there will be. A helper view that reads something is named by its owners."""
    for key in gone:
        readers: list[str] = []
        for item in staying.values():
            if key in {fold(name) for name in (*(ref.table for ref in item.references), *item.dimensions)}:
                readers += item.owners or (item.name,)
        if readers:
            names = list(dict.fromkeys(readers))
            listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
            them, those = ("that", "it") if len(names) == 1 else ("those", "them")
            raise StillReadError(
                f"{known.definitions[key].name} cannot be dropped, since {listed} would read it still; drop {them} too, or "
                f"define {those} anew without it. Nothing was changed."
            )


def release_helpers(dropped: Sequence[str], gone: Sequence[str], known: Known) -> list[DefinitionChange]:
    """Helper views that served a dropped view and others: from now on those others only."""
    changes = []
    for key, item in known.definitions.items():
        left = [owner for owner in item.owners if fold(owner) not in dropped]
        if item.owners and key not in gone and len(left) < len(item.owners):
            changes.append(DefinitionChange(replace(known.records[key], helper_of=", ".join(left)), "keep"))
    return changes
