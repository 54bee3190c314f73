"""Which windows share which view of partial aggregates.

Those over the same source, filter, keys and part length do. A view of partial aggregates that is in use never changes: a later
window that needs more than it has gets another one, so that nothing that has been computed is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import format_length
from airflow_provider_viewdf.translate.window.states import PLAIN_NAME, State, short_digest, union_of_states
from airflow_provider_viewdf.translate.window.views import Partials, WindowView

_MOST_KEYS = 3
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Family:
    """The partial aggregates that some views share."""

    partials: Partials

    def dump(self) -> list[dict[str, Any]]:
        return [asdict(state) for state in self.partials.states]


@dataclass(frozen=True, slots=True)
class StoredFamily:
    """Partial aggregates that are in use, as a view that uses them remembers them."""

    name: str
    states: tuple[State, ...]

    @classmethod
    def read(cls, choices: Mapping[str, str]) -> StoredFamily | None:
        if not choices.get("partials"):
            return None
        states = tuple(State(**values) for values in json.loads(choices["states"]))
        return cls(choices["partials"], states)

    def has(self, states: Sequence[State]) -> bool:
        return set(states) <= set(self.states)


def share_partials(
    views: Mapping[str, WindowView], used: Mapping[str, str], stored: Sequence[StoredFamily]
) -> dict[str, Family]:
    """The partial aggregates of each view. `used` are the names of those that views used before, `stored` is what is there."""
    there = {fold(item.name): item for item in stored}
    groups: dict[str, list[str]] = {}
    for key, view in views.items():
        groups.setdefault(name_partials(view), []).append(key)
    found: dict[str, Family] = {}
    for name, keys in groups.items():
        candidates = [f"{name}{suffix}" for suffix in ("", *(f"_more{number}" for number in range(2, 100)))]
        rest = []
        for key in keys:
            fitting = [
                there[fold(candidate)]
                for candidate in candidates
                if fold(candidate) in there and there[fold(candidate)].has(views[key].query.states)
            ]
            mine = [item for item in fitting if fold(item.name) == fold(used.get(key, ""))] or fitting
            if mine:
                found[key] = _make(views[key], mine[0].name, mine[0].states)
            else:
                rest.append(key)
        free = next(candidate for candidate in candidates if fold(candidate) not in there)
        states = union_of_states([views[key].query.states for key in rest])
        found |= {key: _make(views[key], free, states) for key in rest}
    return found


def _make(view: WindowView, name: str, states: tuple[State, ...]) -> Family:
    query = view.query
    return Family(Partials(name, query.source.name, query.filter, query.keys, states, view.frame))


def name_partials(view: WindowView) -> str:
    """`M_per_1_minute_by_dest_src`; with letters of a digest if there is more to say than fits a name."""
    query, length = view.query, format_length(view.frame.base_seconds).replace(" ", "_")
    name = f"{query.source.name}_per_{length}"
    texts = [key.text for key in query.keys]
    is_plain = not query.filter and len(texts) <= _MOST_KEYS and all(PLAIN_NAME.fullmatch(text) for text in texts)
    readable = "_".join([name, "by", *(fold(text) for text in texts)]) if texts else name
    if is_plain and len(readable) <= _LONGEST:
        return readable
    return f"{name}_{short_digest(json.dumps([query.filter, texts]))}"
