"""The clauses behind the columns or the queries of a statement: PARTITION LENGTH, STARTING, RETAIN, LATE ROWS and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.definitions import TAKE_LATE_ROWS, LateRows, fold
from airflow_provider_viewdf.errors import LanguageError, TimeFormatError
from airflow_provider_viewdf.language.token_reader import NAME, Name, TokenReader
from airflow_provider_viewdf.parts import parse_length, parse_time

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


@dataclass(slots=True)
class Clauses:
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
    option_tokens: tuple[Token, ...] = ()
    settings: tuple[tuple[Name, Name], ...] = ()
    retain_seconds: int = 0
    late_rows: LateRows = TAKE_LATE_ROWS
    complete_when: str = ""
    complete_after_seconds: int | None = None
    seen: set[str] = field(default_factory=set)


class ClauseReader(TokenReader):
    def _clauses(self, allowed: tuple[str, ...], statement: str) -> Clauses:
        clauses = Clauses()
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

    def _partition_clause(self, clauses: Clauses, keyword: Token) -> None:
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
        length = self._length(first.start)
        place = (first.start, self._previous.end + 1)
        if is_negative or length < 1:
            written = self.text[place[0] : place[1]]
            raise LanguageError(
                f"A partition length must be at least one second, not {written}.",
                text=self.text,
                start=place[0],
                end=place[1],
            )
        clauses.length_seconds, clauses.length_place = length, place

    def _starting_clause(self, clauses: Clauses, keyword: Token) -> None:
        if self._take("LATEST"):
            clauses.starting_latest = True
            return
        value = self._string("A time is missing after STARTING; write STARTING '2015-01-01', or STARTING LATEST.")
        try:
            clauses.starting = parse_time(value)
        except TimeFormatError as error:
            self._fail(str(error), self._previous)

    def _with_clause(self, clauses: Clauses, keyword: Token) -> None:
        opening = self._expect("(", "Write WITH (strategy = 'merge')")
        settings: list[tuple[Name, Name]] = []
        while not self._take(")"):
            name = self._name("The name of a setting")
            if any(fold(name.text) == fold(other.text) for other, _ in settings):
                self._fail(f"{name.text} is given twice.", self._previous)
            self._expect("=", f"The value of {name.text} is missing; write {name.text} = 'value'")
            self._string(f"The value of {name.text} is missing; write it in quotes.")
            value = self._previous
            settings.append((name, Name(value.text, value.start, value.end + 1)))
            if not self._take(",") and (self.position >= len(self.tokens) or self._current.text != ")"):
                self._fail("This parenthesis is not closed.", opening)
        clauses.settings = tuple(settings)

    def _retain_clause(self, clauses: Clauses, keyword: Token) -> None:
        value = self._string("A length of time is missing after RETAIN; write RETAIN '7 days'.")
        try:
            clauses.retain_seconds = parse_length(value)
        except TimeFormatError as error:
            self._fail(str(error), self._previous)
        if not clauses.retain_seconds:
            self._fail("A length of time must be at least one second; write RETAIN '7 days'.", self._previous)

    def _late_clause(self, clauses: Clauses, keyword: Token) -> None:
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

    def _quarantine_clause(self, clauses: Clauses, keyword: Token) -> None:
        self._set_late_rows(clauses, LateRows("quarantine", self._lateness("QUARANTINE")), keyword)

    def _ignore_clause(self, clauses: Clauses, keyword: Token) -> None:
        self._set_late_rows(clauses, LateRows("ignore", self._lateness("IGNORE")), keyword)

    def _set_late_rows(self, clauses: Clauses, policy: LateRows, keyword: Token) -> None:
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
        self.position += 1
        return self._length(self._previous.start)

    def _length(self, start: int) -> int:
        """A length of time whose first word has been taken: quoted, or a number, with or without a unit behind it."""
        number = self._previous
        words = number.text
        if number.token_type != TokenType.STRING and self.position < len(self.tokens):
            unit = self._current
            if NAME.fullmatch(unit.text) and unit.text.upper() not in _CLAUSE_WORDS:
                words = f"{words} {unit.text}"
                self.position += 1
        try:
            return parse_length(words)
        except TimeFormatError as error:
            raise LanguageError(str(error), text=self.text, start=start, end=self._previous.end + 1) from None

    def _key_clause(self, clauses: Clauses, keyword: Token) -> None:
        clauses.keys = tuple(self._names())

    def _location_clause(self, clauses: Clauses, keyword: Token) -> None:
        clauses.location = self._string("A path in quotes is missing after LOCATION.")
        clauses.location_token = self._previous

    def _format_clause(self, clauses: Clauses, keyword: Token) -> None:
        if self.position >= len(self.tokens) or self._current.text.lower() not in FORMATS:
            token = self._current if self.position < len(self.tokens) else keyword
            self._fail("The FORMAT must be csv, json or parquet.", token)
        clauses.format = self._current.text.lower()
        self.position += 1

    def _options_clause(self, clauses: Clauses, keyword: Token) -> None:
        self._expect("(", "Write OPTIONS (name 'value', ...)")
        options: list[tuple[str, str]] = []
        tokens: list[Token] = []
        while not self._take(")"):
            if self.position >= len(self.tokens):
                self._fail("This parenthesis is not closed.", keyword)
            tokens.append(self._current)
            option = self._current.text
            self.position += 1
            self._take("=")
            options.append((option, self._string(f"The value of the option {option} is missing; write it in quotes.")))
            self._take(",")
        clauses.options = tuple(sorted(options))
        clauses.option_tokens = tuple(tokens)

    def _complete_clause(self, clauses: Clauses, keyword: Token) -> None:
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

    def _require_length(self, clauses: Clauses, what: str, name: Name) -> None:
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
