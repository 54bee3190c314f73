"""Reading the statements of a script: CREATE STREAM, CREATE TABLE, CREATE VIEW and DROP, each with its places in the text.

The clauses around a view's queries are found first, at the outermost level of parentheses, so that each query is parsed
alone and none of our words can be mistaken for an alias in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.definitions import TAKE_LATE_ROWS, Column, Kind, LateRows
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.clauses import ClauseReader, Clauses
from airflow_provider_viewdf.language.column_types import read_type
from airflow_provider_viewdf.language.dialect import read_tokens
from airflow_provider_viewdf.language.file_options import options_of
from airflow_provider_viewdf.language.token_reader import NAME, Name
from airflow_provider_viewdf.language.window_syntax import is_window
from airflow_provider_viewdf.locations import LocationTemplate, find_fault, has_password
from airflow_provider_viewdf.translate.tree import PART, PART_TIMESTAMP

RESERVED_COLUMNS = (PART, PART_TIMESTAMP)

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


@dataclass(frozen=True, slots=True)
class RuleStatement:
    """`INITIALIZE V[i] AS <query>` or `UPDATE V[j] AS <query>`."""

    head: Name
    variable: str
    query: Sequence[Token]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script. `start` and `end` are its place in the script.

    `settings` is what WITH (name = 'value') says, and `retain_seconds` what RETAIN '90 days' says: for how long its parts are
    kept, or 0 for ever.
    """

    kind: Kind
    name: Name
    start: int
    end: int
    length_seconds: int = 0
    length_place: tuple[int, int] = (0, 0)
    columns: tuple[Column, ...] = ()
    keys: tuple[Name, ...] = ()
    unique: tuple[Name, ...] = ()
    ordered: str = ""
    location: str = ""
    format: str = ""
    options: tuple[tuple[str, str], ...] = ()
    complete_when: str = ""
    complete_after_seconds: int | None = None
    starting: datetime | None = None
    starting_latest: bool = False
    settings: tuple[tuple[Name, Name], ...] = ()
    retain_seconds: int = 0
    late_rows: LateRows = TAKE_LATE_ROWS
    initialize: RuleStatement | None = None
    update: RuleStatement | None = None
    plain: Sequence[Token] = ()


@dataclass(frozen=True, slots=True)
class Drop:
    """`DROP VIEW V`, with `IF EXISTS` or without."""

    kind: Kind
    name: Name
    if_exists: bool = False


def read_statements(text: str) -> list[Statement]:
    """Every statement of a script that defines something, in its order."""
    return [_StatementReader(text, item).read() for item in _split(text) if not _is_drop(item)]


def read_drops(text: str) -> list[Drop]:
    """Every DROP of a script, in its order."""
    return [_StatementReader(text, item).read_drop() for item in _split(text) if _is_drop(item)]


def _split(text: str) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in read_tokens(text):
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [item for item in statements if item]


def _is_drop(tokens: Sequence[Token]) -> bool:
    return tokens[0].text.upper() == "DROP"


class _StatementReader(ClauseReader):
    def read(self) -> Statement:
        words = [token.text.upper() for token in self.tokens[:2]]
        first = self.tokens[0]
        if words[0] != "CREATE":
            self._fail(
                f"A script consists of CREATE STREAM, CREATE TABLE, CREATE VIEW and DROP statements; "
                f"{first.text} begins none of them.",
                first,
            )
        if len(words) < 2:
            self._fail("STREAM, TABLE or VIEW is missing after CREATE.", first)
        self.position = 2
        if words[1] == "STREAM":
            return self._read_table("stream")
        if words[1] == "TABLE":
            return self._read_table("dimension")
        if words[1] == "VIEW":
            return self._read_view()
        self._fail(f"Only a STREAM, a TABLE or a VIEW can be created, not {self.tokens[1].text}.", self.tokens[1])

    def read_drop(self) -> Drop:
        kinds: dict[str, Kind] = {"STREAM": "stream", "TABLE": "dimension", "VIEW": "view"}
        words = [token.text.upper() for token in self.tokens[:2]]
        if len(words) < 2:
            self._fail("STREAM, TABLE or VIEW is missing after DROP.", self.tokens[0])
        if words[1] not in kinds:
            self._fail(f"Only a STREAM, a TABLE or a VIEW can be dropped, not {self.tokens[1].text}.", self.tokens[1])
        self.position = 2
        if_exists = self._peek_words("IF", "EXISTS")
        self.position += 2 if if_exists else 0
        name = self._name(f"The name of the {words[1].lower()}")
        if self.position < len(self.tokens):
            self._fail(
                f"{self._current.text} is not expected here; DROP {words[1]} {name.text} is a whole statement, "
                "and ends with a semicolon.",
                self._current,
            )
        return Drop(kinds[words[1]], name, if_exists)

    def _read_table(self, kind: Kind) -> Statement:
        name = self._name(f"The name of the {'stream' if kind == 'stream' else 'table'}")
        columns, keys, unique, ordered = self._columns(kind)
        files = ("LOCATION", "FORMAT", "OPTIONS")
        lateness = ("LATE", "QUARANTINE", "IGNORE")
        allowed = ("PARTITION", "RETAIN", *lateness, *files, "COMPLETE") if kind == "stream" else files
        clauses = self._clauses(allowed, f"CREATE {'STREAM' if kind == 'stream' else 'TABLE'}")
        if kind == "stream":
            if len(ordered) != 1:
                problem = "has no ORDERED column" if not ordered else f"has {len(ordered)} ORDERED columns"
                self._fail_at(
                    f"The stream {name.text} {problem}; mark the one TIMESTAMP column that is the time of a row, "
                    f"like ts TIMESTAMP ORDERED.",
                    ordered[1] if ordered else name,
                )
            declared = next(column for column in columns if column.name == ordered[0].text)
            if declared.type != "timestamp":
                self._fail_at(
                    f"The ORDERED column {declared.name} must be a TIMESTAMP, not {declared.type}.", ordered[0]
                )
            self._require_length(clauses, f"The stream {name.text}", name)
            if clauses.seen & {"LOCATION", "FORMAT", "OPTIONS", "COMPLETE"}:
                self._check_external(clauses, name)
        else:
            for clause, example in (("LOCATION", "LOCATION 'path'"), ("FORMAT", "FORMAT csv")):
                if clause not in clauses.seen:
                    self._fail_at(f"The table {name.text} has no {clause}; add {example}.", name)
        if clauses.location_token is not None and (fault := find_fault(clauses.location)):
            if has_password(clauses.location):
                self._fail_without_showing(fault, clauses.location_token)
            self._fail(fault, clauses.location_token)
        self._check_options(clauses)
        if unique:
            self._check_unique(unique, columns, name, is_external=bool(clauses.location) and kind == "stream")
        return Statement(
            kind,
            name,
            *self._extent(),
            length_seconds=clauses.length_seconds,
            length_place=clauses.length_place,
            columns=columns,
            # What is unique tells rows apart, as a key does.
            keys=self._find_columns(keys or unique, columns, name),
            unique=self._find_columns(unique, columns, name),
            ordered=ordered[0].text if ordered else "",
            location=clauses.location,
            format=clauses.format,
            options=clauses.options,
            retain_seconds=clauses.retain_seconds,
            late_rows=clauses.late_rows,
            complete_when=clauses.complete_when,
            complete_after_seconds=clauses.complete_after_seconds,
        )

    def _fail_without_showing(self, message: str, token: Token) -> NoReturn:
        text = f"{self.text[: token.start]}'...'"
        raise LanguageError(message, text=text, start=token.start, end=len(text))

    def _check_options(self, clauses: Clauses) -> None:
        """Options of the format only: others could name more files, or hold the keys to them."""
        known = {option.lower(): option for option in options_of(clauses.format)} if clauses.format else {}
        seen: set[str] = set()
        for token in clauses.option_tokens:
            option = token.text.lower()
            if option not in known:
                close = difflib.get_close_matches(option, known, n=1)
                hint = (
                    f"did you mean {known[close[0]]}?"
                    if close
                    else "it takes those that say how the files are written."
                )
                self._fail(f"FORMAT {clauses.format} has no option {token.text}; {hint}", token)
            if option in seen:
                self._fail(f"The option {token.text} is given twice.", token)
            seen.add(option)

    def _find_columns(self, names: Sequence[Name], columns: Sequence[Column], table: Name) -> tuple[Name, ...]:
        """These columns, as they are written where they are declared."""
        known = {column.name.lower(): column.name for column in columns}
        for name in names:
            if name.text.lower() not in known:
                self._fail_at(f"The key {name.text} is not a column of {table.text}.", name)
        return tuple(Name(known[name.text.lower()], name.start, name.end) for name in names)

    def _check_unique(
        self, unique: Sequence[Name], columns: Sequence[Column], table: Name, *, is_external: bool
    ) -> None:
        if is_external:
            self._fail_at(
                f"The files of the stream {table.text} are written by others, so that nothing can be UNIQUE in them; "
                "write KEY, which only says what tells rows apart.",
                unique[0],
            )
        types = {column.name.lower(): column.type for column in columns}
        for name in unique:
            if "map<" in types.get(name.text.lower(), "") or types.get(name.text.lower()) == "variant":
                self._fail_at(
                    f"The column {name.text} cannot be UNIQUE, since Spark cannot compare values of the type "
                    f"{types[name.text.lower()]}.",
                    name,
                )

    def _check_external(self, clauses: Clauses, name: Name) -> None:
        """A stream whose files others write needs a place for each part, and a format."""
        if clauses.location_token is None:
            self._fail_at(
                f"The stream {name.text} has no LOCATION; add one, like LOCATION 'events/{{yyyy-MM-dd}}', "
                "or leave out what only an external stream has.",
                name,
            )
        token = clauses.location_token
        try:
            LocationTemplate.parse(clauses.location).check(clauses.length_seconds)
        except LanguageError as error:
            # The text of the token begins behind its quote.
            place = (
                (token.start + 1 + error.start, token.start + 1 + error.end)
                if error.end
                else (token.start, token.end + 1)
            )
            raise LanguageError(error.reason, text=self.text, start=place[0], end=place[1]) from None
        if "FORMAT" not in clauses.seen:
            self._fail_at(f"The stream {name.text} has no FORMAT; add FORMAT csv, FORMAT json or FORMAT parquet.", name)
        if clauses.late_rows != TAKE_LATE_ROWS:
            self._fail_at(
                f"The files of the stream {name.text} are written by others, and are taken however late they are; "
                "leave out what is said of late rows.",
                name,
            )

    def _columns(self, kind: Kind) -> tuple[tuple[Column, ...], list[Name], list[Name], list[Name]]:
        opening = self._expect("(", "The columns are missing; write them in parentheses after the name")
        columns: list[Column] = []
        keys: list[Name] = []
        unique: list[Name] = []
        ordered: list[Name] = []
        while True:
            if self._peek_words("KEY", "("):
                self.position += 1
                keys.extend(self._names())
            elif self._peek_words("UNIQUE", "("):
                self._unique(kind, unique)
            else:
                self._column(kind, columns, keys, ordered)
            if self._take(")"):
                break
            if not self._take(","):
                if self.position >= len(self.tokens):
                    self._fail("This parenthesis is not closed.", opening)
                self._fail(f"A comma or ) is expected before {self._current.text}.", self._current)
        if not columns:
            self._fail("At least one column is needed.", opening)
        return tuple(columns), keys, unique, ordered

    def _unique(self, kind: Kind, unique: list[Name]) -> None:
        keyword = self._current
        self.position += 1
        if kind != "stream":
            self._fail(
                "Only a stream can have UNIQUE columns; what is in a table of CREATE TABLE is not ours.", keyword
            )
        if unique:
            self._fail("UNIQUE is given twice; name all the columns that together are unique in one.", keyword)
        unique.extend(self._names())

    def _column(self, kind: Kind, columns: list[Column], keys: list[Name], ordered: list[Name]) -> None:
        name = self._name("The name of a column")
        if name.text.upper() in RESERVED_COLUMNS or name.text.startswith("__"):
            self._fail_at(
                f"A column cannot be called {name.text}; PART, PART_TIMESTAMP and names that begin with __ are taken.",
                name,
            )
        if any(column.name.lower() == name.text.lower() for column in columns):
            self._fail_at(f"There are two columns {name.text}; column names are compared without regard to case.", name)
        first = self.position
        depth = 0
        while self.position < len(self.tokens):
            token = self._current
            word = token.text.upper()
            if depth == 0 and (word in (",", ")", "ORDERED", "KEY", "UNIQUE", "NOT", "COMMENT")):
                break
            depth += (word in ("(", "<")) - (word in (")", ">"))
            self.position += 1
        if self.position == first:
            self._fail_at(f"The type of the column {name.text} is missing.", name)
        start, end = self.tokens[first].start, self.tokens[self.position - 1].end + 1
        type_name = read_type(self.text[start:end])
        if type_name is None:
            raise LanguageError(
                f"{self.text[start:end]} is not a type that Spark knows.", text=self.text, start=start, end=end
            )
        columns.append(Column(name.text, type_name))
        while self.position < len(self.tokens) and self._current.text not in (",", ")"):
            if self._take("ORDERED"):
                if kind != "stream":
                    self._fail(
                        "Only a column of a stream can be ORDERED; a table of CREATE TABLE has no parts.",
                        self._previous,
                    )
                ordered.append(name)
            elif self._take("KEY"):
                keys.append(name)
            elif self._take("COMMENT"):
                self.position += 1
            elif self._peek_words("UNIQUE"):
                self._fail(f"Name what is unique after the columns: UNIQUE ({name.text}).", self._current)
            else:
                self._fail(
                    f"{self._current.text} is not expected here; a column has a name, a type, and ORDERED or KEY.",
                    self._current,
                )

    def _read_view(self) -> Statement:
        name = self._name("The name of the view")
        if not self._take("AS"):
            self._fail_at(f"AS is missing after the name of the view {name.text}.", name)
        end = self._find_clauses()
        body = self.tokens[self.position : end]
        if not body:
            self._fail_at(f"The query of the view {name.text} is missing.", name)
        initialize = update = None
        plain: Sequence[Token] = ()
        if body[0].text.upper() == "INITIALIZE":
            initialize, update = self._rules(name, body)
        else:
            if body[0].text.upper() == "UPDATE":
                self._fail(f"The view {name.text} has an UPDATE without an INITIALIZE before it.", body[0])
            plain = body
        self.position = end
        clauses = self._clauses(("PARTITION", "STARTING", "KEY", "WITH", "RETAIN"), "CREATE VIEW")
        if clauses.settings and not is_window(plain):
            self._fail_at(
                f"WITH (...) chooses how a [WINDOW ...] is computed, and the query of {name.text} has none; leave it out.",
                clauses.settings[0][0],
            )
        if initialize is not None:
            self._require_length(clauses, f"The view {name.text}", name)
        return Statement(
            "view",
            name,
            *self._extent(),
            length_seconds=clauses.length_seconds,
            length_place=clauses.length_place,
            keys=clauses.keys,
            starting=clauses.starting,
            starting_latest=clauses.starting_latest,
            settings=clauses.settings,
            retain_seconds=clauses.retain_seconds,
            initialize=initialize,
            update=update,
            plain=plain,
        )

    def _find_clauses(self) -> int:
        """The position at which the clauses behind the queries begin."""
        opened: list[Token] = []
        for position in range(self.position, len(self.tokens)):
            token = self.tokens[position]
            if token.token_type in _OPENING:
                opened.append(token)
            elif token.token_type in _CLOSING and opened:
                opened.pop()
            if not opened and self._is_clause(position):
                return position
        if opened:
            what = "parenthesis" if opened[-1].text == "(" else "bracket"
            self._fail(f"This {what} is not closed.", opened[-1])
        return len(self.tokens)

    def _is_clause(self, position: int) -> bool:
        token = self.tokens[position]
        following = self.tokens[position + 1] if position + 1 < len(self.tokens) else None
        if token.token_type == TokenType.PARTITION_BY:
            return True
        if following is None:
            return False
        if token.token_type == TokenType.PARTITION:
            return following.text.upper() == "LENGTH"
        if token.token_type == TokenType.WITH:
            # A common table expression has a name first.
            return following.token_type == TokenType.L_PAREN
        if token.token_type == TokenType.VAR and token.text.upper() == "RETAIN":
            return following.token_type == TokenType.STRING
        return (
            token.token_type == TokenType.VAR
            and token.text.upper() == "STARTING"
            and (following.token_type == TokenType.STRING or following.text.upper() == "LATEST")
        )

    def _rules(self, view: Name, body: Sequence[Token]) -> tuple[RuleStatement, RuleStatement]:
        depth = 0
        starts: list[int] = []
        for position, token in enumerate(body):
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth == 0 and position and self._is_rule(body, position):
                starts.append(position)
        if not starts or body[starts[0]].token_type != TokenType.UPDATE:
            self._fail(
                f"The view {view.text} has no UPDATE; write UPDATE {view.text}[j] AS and a query "
                f"after the one of INITIALIZE.",
                body[starts[0]] if starts else body[0],
            )
        if len(starts) > 1:
            self._fail(f"The view {view.text} has more than one INITIALIZE and one UPDATE.", body[starts[1]])
        return self._rule(view, body[: starts[0]]), self._rule(view, body[starts[0] :])

    @staticmethod
    def _is_rule(body: Sequence[Token], position: int) -> bool:
        """Whether `UPDATE V[` or `INITIALIZE V[` stands here."""
        words = [token.text.upper() for token in body[position : position + 3]]
        return len(words) == 3 and words[0] in ("INITIALIZE", "UPDATE") and words[2] == "["

    def _rule(self, view: Name, tokens: Sequence[Token]) -> RuleStatement:
        keyword = tokens[0]
        form = f"{keyword.text.upper()} {view.text}[{'i' if keyword.text.upper() == 'INITIALIZE' else 'j'}] AS"
        if [token.text for token in tokens[2:5:2]] != ["[", "]"] or len(tokens) < 6 or tokens[5].text.upper() != "AS":
            self._fail(f"Write {form} and a query.", keyword)
        head, variable = tokens[1], tokens[3]
        if head.text.lower() != view.text.lower():
            self._fail(f"{keyword.text.upper()} is for {head.text}, but the view is called {view.text}.", head)
        if not NAME.fullmatch(variable.text):
            self._fail(f"{variable.text} cannot be a subscript variable; write a name, as in {form}.", variable)
        if len(tokens) < 7:
            self._fail(f"The query of {keyword.text.upper()} is missing.", keyword)
        end = tokens[4].end + 1
        return RuleStatement(
            Name(f"{keyword.text.upper()} {head.text}[{variable.text}]", keyword.start, end), variable.text, tokens[6:]
        )
