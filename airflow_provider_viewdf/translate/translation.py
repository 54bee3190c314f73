"""What a pattern or window query becomes: statements of the language itself, which could have been written by hand."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from airflow_provider_viewdf.definitions import Column, Kind
from airflow_provider_viewdf.translate.pattern.pieces import Piece


@dataclass(frozen=True, slots=True)
class Source:
    """The table or view that a translated query reads.

    `columns` of a view are empty as long as Spark has not analyzed it; `ordered` is the time of a stream's row, and
    no two rows of a part are alike in the columns `unique`, if there are any.
    """

    name: str
    kind: Kind
    length_seconds: int
    columns: tuple[Column, ...] = ()
    ordered: str = ""
    keys: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedView:
    """A view that a translation wrote: its name, and `CREATE VIEW name AS INITIALIZE ... UPDATE ...`, no semicolon."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Translation:
    """Helper views in an order in which each reads only those before it, and the view itself, which reads them.

    `notes` are lines that explain the translation to a person, `diagram` shows it in Mermaid. `choices` are decisions that
    the text does not contain, such as a strategy; they are kept, so that the same text is translated the same way again.
    `pieces` are those of a pattern query, for when Spark refuses what it has become; they are not kept.
    """

    helpers: tuple[GeneratedView, ...]
    view: GeneratedView
    notes: tuple[str, ...] = ()
    diagram: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    pieces: tuple[Piece, ...] = field(default=(), compare=False)

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if name != "pieces"})

    @classmethod
    def from_json(cls, text: str) -> Translation:
        values = json.loads(text)
        return cls(
            helpers=tuple(GeneratedView(**view) for view in values["helpers"]),
            view=GeneratedView(**values["view"]),
            notes=tuple(values["notes"]),
            diagram=values["diagram"],
            choices=tuple((name, value) for name, value in values["choices"]),
        )
