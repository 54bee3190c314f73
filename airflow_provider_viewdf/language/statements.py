"""Reading the statements of a script: CREATE STREAM, CREATE TABLE, CREATE VIEW and DROP, each with its places in the text.

The clauses around a view's queries are found first, at the outermost level of parentheses, so that each query is parsed
alone and none of our words can be mistaken for an alias in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.definitions import TAKE_LATE_ROWS, Column, Kind, LateRows
from airflow_provider_viewdf.errors import LanguageError, TimeFormatError
from airflow_provider_viewdf.language.column_types import read_type
from airflow_provider_viewdf.language.dialect import read_tokens
from airflow_provider_viewdf.language.window_syntax import is_window
from airflow_provider_viewdf.locations import LocationTemplate
from airflow_provider_viewdf.parts import parse_length, parse_time
from airflow_provider_viewdf.translate.tree import PART, PART_TIMESTAMP

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED_COLUMNS = (PART, PART_TIMESTAMP)
FORMATS = ("csv", "json", "parquet")

# Words that begin a clause, so that none of them is taken for the unit of a length before it.
_CLAUSE_WORDS = (
    "STARTING",
    "KEY",
    "PARTITION",
    "LATE",
    "QUARANTINE",
    "IGNORE",
    "WITH",
    "RETAIN",
    "LOCATION",
    "FORMAT",
    "OPTIONS",
    "COMPLETE",
)

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, with its place."""

    text: str
    start: int
    end: int


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


@dataclass(slots=True)
class _Clauses:
    """What stands behind the columns or the queries of a statement."""

    length_seconds: int = 0
    length_place: tuple[int, int] = (0, 0)
    starting: datetime | None = None
    starting_latest: bool = False
    keys: tuple[Name, ...] = ()
    location: str = ""
    location_token: Token | None = None
    format: str = ""
    options: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[Name, Name], ...] = ()
    retain_seconds: int = 0
    late_rows: LateRows = TAKE_LATE_ROWS
    complete_when: str = ""
    complete_after_seconds: int | None = None
    seen: set[str] = field(default_factory=set)


class _StatementReader:
    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.position = text, tokens, 0

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
        columns, keys, ordered = self._columns(kind)
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
        known = {column.name.lower(): column.name for column in columns}
        for key in keys:
            if key.text.lower() not in known:
                self._fail_at(f"The key {key.text} is not a column of {name.text}.", key)
        return Statement(
            kind,
            name,
            *self._extent(),
            length_seconds=clauses.length_seconds,
            length_place=clauses.length_place,
            columns=columns,
            keys=tuple(Name(known[key.text.lower()], key.start, key.end) for key in keys),
            ordered=ordered[0].text if ordered else "",
            location=clauses.location,
            format=clauses.format,
            options=clauses.options,
            retain_seconds=clauses.retain_seconds,
            late_rows=clauses.late_rows,
            complete_when=clauses.complete_when,
            complete_after_seconds=clauses.complete_after_seconds,
        )

    def _check_external(self, clauses: _Clauses, name: Name) -> None:
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

    def _columns(self, kind: Kind) -> tuple[tuple[Column, ...], list[Name], list[Name]]:
        opening = self._expect("(", "The columns are missing; write them in parentheses after the name")
        columns: list[Column] = []
        keys: list[Name] = []
        ordered: list[Name] = []
        while True:
            if self._peek_words("KEY", "("):
                self.position += 1
                keys.extend(self._names())
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
        return tuple(columns), keys, ordered

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
            if depth == 0 and (word in (",", ")", "ORDERED", "KEY", "NOT", "COMMENT")):
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

    def _clauses(self, allowed: tuple[str, ...], statement: str) -> _Clauses:
        clauses = _Clauses()
        while self.position < len(self.tokens):
            token = self._current
            word = "PARTITION" if token.token_type == TokenType.PARTITION_BY else token.text.upper()
            if word not in allowed:
                hint = ""
                if word == "PARTITION":
                    hint = " A table without a subscript has no parts; for one with parts, write CREATE STREAM."
                self._fail(f"{token.text} is not expected here in {statement}.{hint}", token)
            if word in clauses.seen:
                self._fail(f"{token.text.upper()} is given twice.", token)
            clauses.seen.add(word)
            self.position += 1
            getattr(self, f"_{word.lower()}_clause")(clauses, token)
        return clauses

    def _partition_clause(self, clauses: _Clauses, keyword: Token) -> None:
        if keyword.token_type != TokenType.PARTITION_BY and not self._take("LENGTH"):
            self._fail(
                "LENGTH is missing after PARTITION; write PARTITION LENGTH 60, or PARTITION LENGTH '1 minute'.", keyword
            )
        if self.position >= len(self.tokens):
            self._fail(
                "The length is missing; write PARTITION LENGTH 60, or PARTITION LENGTH '1 minute'.", self._previous
            )
        first = self._current
        is_negative = first.text == "-"
        self.position += 2 if is_negative else 1
        number = self._previous
        words = number.text
        if number.token_type != TokenType.STRING and self.position < len(self.tokens):
            unit = self._current
            if NAME.fullmatch(unit.text) and unit.text.upper() not in _CLAUSE_WORDS:
                words = f"{words} {unit.text}"
                self.position += 1
        place = (first.start, self._previous.end + 1)
        try:
            length = parse_length(words)
        except TimeFormatError as error:
            raise LanguageError(str(error), text=self.text, start=place[0], end=place[1]) from None
        if is_negative or length < 1:
            written = self.text[place[0] : place[1]]
            raise LanguageError(
                f"A partition length must be at least one second, not {written}.",
                text=self.text,
                start=place[0],
                end=place[1],
            )
        clauses.length_seconds, clauses.length_place = length, place

    def _starting_clause(self, clauses: _Clauses, keyword: Token) -> None:
        if self._take("LATEST"):
            clauses.starting_latest = True
            return
        value = self._string("A time is missing after STARTING; write STARTING '2015-01-01', or STARTING LATEST.")
        try:
            clauses.starting = parse_time(value)
        except TimeFormatError as error:
            self._fail(str(error), self._previous)

    def _with_clause(self, clauses: _Clauses, keyword: Token) -> None:
        opening = self._expect("(", "Write WITH (strategy = 'merge')")
        settings: list[tuple[Name, Name]] = []
        while not self._take(")"):
            name = self._name("The name of a setting")
            self._expect("=", f"The value of {name.text} is missing; write {name.text} = 'value'")
            self._string(f"The value of {name.text} is missing; write it in quotes.")
            value = self._previous
            settings.append((name, Name(value.text, value.start, value.end + 1)))
            if not self._take(",") and (self.position >= len(self.tokens) or self._current.text != ")"):
                self._fail("This parenthesis is not closed.", opening)
        clauses.settings = tuple(settings)

    def _retain_clause(self, clauses: _Clauses, keyword: Token) -> None:
        value = self._string("A length of time is missing after RETAIN; write RETAIN '7 days'.")
        try:
            clauses.retain_seconds = parse_length(value)
        except TimeFormatError as error:
            self._fail(str(error), self._previous)
        if not clauses.retain_seconds:
            self._fail("A length of time must be at least one second; write RETAIN '7 days'.", self._previous)

    def _late_clause(self, clauses: _Clauses, keyword: Token) -> None:
        if not self._take("ROWS"):
            self._fail("ROWS is missing after LATE; write LATE ROWS QUARANTINE AFTER '2 days'.", keyword)
        if self._take("REFRESH"):
            if self._peek_words("AFTER"):
                self._fail("LATE ROWS REFRESH takes rows however late they are; leave out AFTER.", self._current)
            self._set_late_rows(clauses, TAKE_LATE_ROWS, keyword)
        elif self._take("QUARANTINE"):
            self._quarantine_clause(clauses, keyword)
        elif self._take("IGNORE"):
            self._ignore_clause(clauses, keyword)
        else:
            self._fail(
                "LATE ROWS is followed by REFRESH, QUARANTINE AFTER '2 days' or IGNORE AFTER '2 days'.", self._previous
            )

    def _quarantine_clause(self, clauses: _Clauses, keyword: Token) -> None:
        self._set_late_rows(clauses, LateRows("quarantine", self._lateness("QUARANTINE")), keyword)

    def _ignore_clause(self, clauses: _Clauses, keyword: Token) -> None:
        self._set_late_rows(clauses, LateRows("ignore", self._lateness("IGNORE")), keyword)

    def _set_late_rows(self, clauses: _Clauses, policy: LateRows, keyword: Token) -> None:
        if "late rows" in clauses.seen:
            self._fail("A stream has one policy for late rows; this is a second one.", keyword)
        clauses.seen.add("late rows")
        clauses.late_rows = policy

    def _lateness(self, word: str) -> int:
        """The length of time after AFTER, quoted or not."""
        form = f"write {word} AFTER '2 days'"
        self._expect("AFTER", f"AFTER is missing after {word}; {form}")
        if self.position >= len(self.tokens):
            self._fail(f"The length of time is missing after AFTER; {form}.", self._previous)
        first = self._current
        self.position += 1
        words = first.text
        if first.token_type != TokenType.STRING and self.position < len(self.tokens):
            unit = self._current
            if NAME.fullmatch(unit.text) and unit.text.upper() not in _CLAUSE_WORDS:
                words = f"{words} {unit.text}"
                self.position += 1
        try:
            return parse_length(words)
        except TimeFormatError as error:
            raise LanguageError(str(error), text=self.text, start=first.start, end=self._previous.end + 1) from None

    def _key_clause(self, clauses: _Clauses, keyword: Token) -> None:
        clauses.keys = tuple(self._names())

    def _location_clause(self, clauses: _Clauses, keyword: Token) -> None:
        clauses.location = self._string("A path in quotes is missing after LOCATION.")
        clauses.location_token = self._previous

    def _format_clause(self, clauses: _Clauses, keyword: Token) -> None:
        if self.position >= len(self.tokens) or self._current.text.lower() not in FORMATS:
            token = self._current if self.position < len(self.tokens) else keyword
            self._fail("The FORMAT must be csv, json or parquet.", token)
        clauses.format = self._current.text.lower()
        self.position += 1

    def _options_clause(self, clauses: _Clauses, keyword: Token) -> None:
        self._expect("(", "Write OPTIONS (name 'value', ...)")
        options: list[tuple[str, str]] = []
        while not self._take(")"):
            if self.position >= len(self.tokens):
                self._fail("This parenthesis is not closed.", keyword)
            option = self._current.text
            self.position += 1
            self._take("=")
            options.append((option, self._string(f"The value of the option {option} is missing; write it in quotes.")))
            self._take(",")
        clauses.options = tuple(sorted(options))

    def _complete_clause(self, clauses: _Clauses, keyword: Token) -> None:
        form = "write COMPLETE WHEN '_SUCCESS', or COMPLETE AFTER '10 minutes'"
        if self._take("WHEN"):
            name = self._string(f"The name of a file is missing after COMPLETE WHEN; {form}.")
            if not name.strip() or name in (".", "..") or "/" in name or "\\" in name:
                self._fail(f"{name!r} is not the name of a file in the directory of a part; {form}.", self._previous)
            clauses.complete_when = name
        elif self._take("AFTER"):
            text = self._string(f"A length of time in quotes is missing after COMPLETE AFTER; {form}.")
            try:
                clauses.complete_after_seconds = parse_length(text)
            except TimeFormatError as error:
                self._fail(str(error), self._previous)
        else:
            self._fail(f"WHEN or AFTER is missing after COMPLETE; {form}.", keyword)

    def _require_length(self, clauses: _Clauses, what: str, name: Name) -> None:
        if not clauses.length_seconds:
            self._fail_at(f"{what} has no PARTITION LENGTH; add one, like PARTITION LENGTH 60.", name)

    def _names(self) -> list[Name]:
        opening = self._expect("(", "Write the key columns in parentheses: KEY (a, b)")
        names = [self._name("The name of a key column")]
        while self._take(","):
            names.append(self._name("The name of a key column"))
        if not self._take(")"):
            self._fail("This parenthesis is not closed.", opening)
        return names

    def _name(self, what: str) -> Name:
        if self.position >= len(self.tokens) or self._current.text in ("(", ")", ","):
            self._fail(f"{what} is missing.", self._previous)
        token = self._current
        self.position += 1
        following = self.tokens[self.position] if self.position < len(self.tokens) else None
        if not NAME.fullmatch(token.text) or (following is not None and following.text == "."):
            written = token.text if following is None or following.text != "." else self._dotted(self.position - 1)
            self._fail(
                f"{written} cannot be a name; a name consists of letters, digits and _, "
                f"and does not begin with a digit.",
                token,
            )
        return Name(token.text, token.start, token.end + 1)

    def _dotted(self, position: int) -> str:
        """The name of several words, such as db.x, that begins at a position."""
        written = self.tokens[position].text
        while position + 2 < len(self.tokens) and self.tokens[position + 1].text == ".":
            position += 2
            written += f".{self.tokens[position].text}"
        return written

    def _string(self, problem: str) -> str:
        if self.position >= len(self.tokens) or self._current.token_type != TokenType.STRING:
            self._fail(problem, self._previous)
        self.position += 1
        return self._previous.text

    def _expect(self, word: str, problem: str) -> Token:
        if not self._take(word):
            self._fail(f"{problem}.", self._previous)
        return self._previous

    def _take(self, word: str) -> bool:
        if (
            self.position < len(self.tokens)
            and self._current.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
            and self._current.text.upper() == word
        ):
            self.position += 1
            return True
        return False

    def _peek_words(self, *words: str) -> bool:
        return tuple(token.text.upper() for token in self.tokens[self.position : self.position + len(words)]) == words

    @property
    def _current(self) -> Token:
        return self.tokens[self.position]

    @property
    def _previous(self) -> Token:
        return self.tokens[max(0, self.position - 1)]

    def _extent(self) -> tuple[int, int]:
        return self.tokens[0].start, self.tokens[-1].end + 1

    def _fail(self, message: str, token: Token) -> NoReturn:
        raise LanguageError(message, text=self.text, start=token.start, end=token.end + 1)

    def _fail_at(self, message: str, name: Name) -> NoReturn:
        raise LanguageError(message, text=self.text, start=name.start, end=name.end)
