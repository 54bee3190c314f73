"""Pattern and window queries of a script, replaced by the views that they are translated into.

The result is a script too, of statements that could have been written by hand. It is parsed in the ordinary way; what is wrong
in a generated statement is then reported at the statement that the person wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_viewdf.definitions import Column, Definition, fold
from airflow_provider_viewdf.errors import CyclicDefinitionError, DefinitionError, PlacedError
from airflow_provider_viewdf.language.binding import KnownTable, find_table, unknown_table
from airflow_provider_viewdf.language.dialect import parse_query
from airflow_provider_viewdf.language.pattern_queries import is_pattern, pattern_length, translate_pattern
from airflow_provider_viewdf.language.statements import Statement
from airflow_provider_viewdf.language.window_queries import is_window, translate_windows, window_length
from airflow_provider_viewdf.language.window_syntax import split_window
from airflow_provider_viewdf.translate import plain
from airflow_provider_viewdf.translate.infer_columns import infer_columns
from airflow_provider_viewdf.translate.translation import Source, Translation
from airflow_provider_viewdf.translate.tree import is_common_table, place_of


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the expanded text: copied from the script, or generated for one of its statements."""

    start: int
    end: int
    original: int
    statement: Statement | None = None


@dataclass(frozen=True, slots=True)
class Expansion:
    """An expanded script, and what became of which view, by folded name."""

    text: str
    original: str
    pieces: tuple[Piece, ...]
    translations: Mapping[str, Translation]
    statements: Mapping[str, Statement]

    @contextmanager
    def places_errors(self) -> Iterator[None]:
        """Report errors of the expanded text at their place in the original."""
        try:
            yield
        except PlacedError as error:
            if error.text != self.text:
                raise
            start, end = self._find_place(error.start, error.end)
            raise type(error)(error.reason, text=self.original, start=start, end=end) from None

    def _find_place(self, start: int, end: int) -> tuple[int, int]:
        for piece in self.pieces:
            if piece.start <= start < piece.end:
                if piece.statement is not None:
                    return piece.statement.name.start, piece.statement.name.end
                return start - piece.start + piece.original, end - piece.start + piece.original
        return len(self.original), len(self.original)

    def restore(self, definition: Definition, known: Mapping[str, Definition]) -> Definition:
        """A definition of the expanded text as one of the original: with the person's text, and whose helper it is."""
        translation = self.translations.get(fold(definition.name))
        if translation is not None:
            item = self.statements[fold(definition.name)]
            text = self.original[item.start : item.end]
            return replace(definition, text=text, offset=item.start, translation=translation)
        owners = self._owners_of(definition.name, known)
        if owners:
            return replace(definition, helper_of=", ".join(owners), offset=self.statements[fold(owners[0])].start)
        return replace(definition, offset=self._find_place(definition.offset, definition.offset)[0])

    def _owners_of(self, name: str, known: Mapping[str, Definition]) -> list[str]:
        mine = [
            self.statements[key].name.text
            for key, translation in self.translations.items()
            if any(fold(helper.name) == fold(name) for helper in translation.helpers)
        ]
        if not mine:
            return []
        before = known.get(fold(name))
        others = before.owners if before is not None else ()
        return mine + [owner for owner in others if fold(owner) not in self.translations and fold(owner) in known]


def expand_script(statements: Sequence[Statement], known: Mapping[str, Definition], text: str) -> Expansion | None:
    """The script without pattern and window queries, or None if it has none."""
    views = {fold(item.name.text): item for item in statements if item.kind == "view"}
    patterns = [item for item in views.values() if item.plain and is_pattern(item.plain)]
    windows = [item for item in views.values() if item.plain and is_window(item.plain)]
    if not patterns and not windows:
        return None
    source_of = _Sources(statements, known, text).find
    choices = {key: dict(item.translation.choices) for key, item in known.items() if item.translation is not None}
    translations = {fold(item.name.text): translate_pattern(item, source_of, text) for item in patterns}
    if windows:
        translations |= translate_windows(windows, source_of, text, known, choices)
    _check_helper_names(translations, views, statements, known, text)
    return _replace_statements(statements, translations, text)


def _check_helper_names(
    translations: Mapping[str, Translation],
    views: Mapping[str, Statement],
    statements: Sequence[Statement],
    known: Mapping[str, Definition],
    text: str,
) -> None:
    taken = {fold(item.name.text) for item in statements}
    taken |= {key for key, item in known.items() if not item.helper_of}
    for key, translation in translations.items():
        for helper in translation.helpers:
            if fold(helper.name) in taken:
                name = views[key].name
                raise DefinitionError(
                    f"{name.text} needs a helper view called {helper.name}, but that name is taken; "
                    f"choose another name for one of the two.",
                    text=text,
                    start=name.start,
                    end=name.end,
                )


def _replace_statements(
    statements: Sequence[Statement], translations: Mapping[str, Translation], text: str
) -> Expansion:
    expanded, copied = "", 0
    pieces: list[Piece] = []
    written: set[str] = set()
    for item in statements:
        translation = translations.get(fold(item.name.text))
        if translation is None:
            continue
        pieces.append(Piece(len(expanded), len(expanded) + item.start - copied, copied))
        expanded += text[copied : item.start]
        # Several views may share a helper view; it is written where it is first needed.
        generated = [view for view in translation.helpers if fold(view.name) not in written]
        written |= {fold(view.name) for view in generated}
        block = ";\n\n".join(view.text for view in (*generated, translation.view))
        pieces.append(Piece(len(expanded), len(expanded) + len(block), item.start, item))
        expanded += block
        copied = item.end
    pieces.append(Piece(len(expanded), len(expanded) + len(text) - copied + 1, copied))
    expanded += text[copied:]
    owners = {fold(item.name.text): item for item in statements if fold(item.name.text) in translations}
    return Expansion(expanded, text, tuple(pieces), translations, owners)


class _Sources:
    """What translated queries read: tables and views of the script, and those that are known."""

    def __init__(self, statements: Sequence[Statement], known: Mapping[str, Definition], text: str) -> None:
        self.statements = {fold(item.name.text): item for item in statements}
        self.known, self.text = known, text
        self.tables = {
            key: KnownTable(item.name, item.kind, item.length_seconds, item.keys) for key, item in known.items()
        }
        self.tables |= {
            key: KnownTable(item.name.text, item.kind, item.length_seconds) for key, item in self.statements.items()
        }

    def find(self, name: str, start: int, end: int) -> Source:
        return self._describe(name, start, end, ())

    def _describe(self, name: str, start: int, end: int, path: tuple[str, ...]) -> Source:
        key = fold(name)
        item = self.statements.get(key)
        if item is not None:
            length = self._find_length(key, path)
            keys = tuple(part.text for part in item.keys)
            unique = tuple(part.text for part in item.unique)
            columns = item.columns or self._infer_columns(key, path)
            return Source(item.name.text, item.kind, length, columns, item.ordered, keys, unique)
        definition = self.known.get(key)
        if definition is None:
            raise unknown_table(name, self.tables.values(), self.text, start, end)
        return Source(
            definition.name,
            definition.kind,
            definition.length_seconds,
            definition.shown_columns,
            definition.ordered,
            definition.keys,
            definition.unique,
        )

    def _infer_columns(self, key: str, path: tuple[str, ...]) -> tuple[Column, ...]:
        """Of a view of the script, which Spark has not analyzed yet."""
        item = self.statements[key]
        if item.kind != "view" or key in path or is_pattern(item.plain):
            return ()

        def columns_of(table: exp.Table) -> tuple[Column, ...]:
            name, inside = fold(table.name), (*path, key)
            if name not in self.tables or is_common_table(table):
                return ()
            return self._describe(name, *place_of(table), inside).columns if name not in inside else ()

        columns = infer_columns(self._parse(item), columns_of)
        return tuple(column for column in columns if not column.is_own)

    def _parse(self, item: Statement) -> exp.Expr:
        if item.initialize is not None:
            return parse_query(item.initialize.query, self.text)
        tokens = split_window(item.plain, self.text)[1] if is_window(item.plain) else item.plain
        return parse_query(tokens, self.text)

    def _find_length(self, key: str, path: tuple[str, ...]) -> int:
        item = self.statements.get(key)
        if item is None:
            return self.tables[key].length_seconds
        if item.length_seconds or item.kind != "view":
            return item.length_seconds
        if key in path:
            names = [self.statements[name].name.text for name in (*path[path.index(key) :], key)]
            raise CyclicDefinitionError(
                f"These views need each other within one part: {' -> '.join(names)}. Let one of them read an earlier part.",
                text=self.text,
                start=item.name.start,
                end=item.name.end,
            )
        return self._measure(item, (*path, key))

    def _measure(self, item: Statement, path: tuple[str, ...]) -> int:
        """The length of a view that does not say it, from those of the tables it reads."""

        def source_of(name: str, start: int, end: int) -> Source:
            return self._describe(name, start, end, path)

        if is_pattern(item.plain):
            return pattern_length(item, source_of, self.text)
        if is_window(item.plain):
            return window_length(item, source_of, self.text)

        def length_of(table: exp.Table) -> int:
            return self._find_length(fold(find_table(table, self.tables, self.text).name), path)

        return plain.find_length(parse_query(item.plain, self.text), item.name.text, length_of, self.text)
