"""Spark's SQL with subscripts on tables, as a dialect of sqlglot.

Only queries are parsed here; the statements around them are read by `statements`. Two things differ from Spark's
dialect:

- `M[j - 1]` in FROM becomes a PartTable. (sqlglot makes a Bracket of it, whose alias its generator then drops.)
- Functions stay as they are written. sqlglot's own functions are for translating between databases: they would come
  out as other functions of Spark, and not all of them mean quite the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.outside import refuse_outside
from airflow_provider_viewdf.language.subscript_syntax import parse_subscript
from airflow_provider_viewdf.translate.tree import PartTable

# Legal aliases in Spark, but here they begin a clause: FROM V[j - 1] PARTITION LENGTH 60.
CLAUSE_WORDS = {TokenType.UPDATE, TokenType.PARTITION}


NO_CONDITION = "no condition"


class PlacedParseError(ParseError):
    """sqlglot's ParseError, which its parser catches when it tries things out, with the place of the token."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message, errors=[{"description": message}])
        self.reason = message
        self.token = token


class ViewDFParser(SparkParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    # What remains has a grammar of its own, such as EXTRACT(hour FROM ts).
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser
        for name, parser in SparkParser.FUNCTION_PARSERS.items()
        if name
        not in (
            "APPROX_PERCENTILE",
            "PERCENTILE_APPROX",
            "PERCENTILE",
            "DECODE",
            "CHR",
            "CHAR",
            "STRING_AGG",
            "LISTAGG",
            "MAX_BY",
            "MIN_BY",
        )
    }
    ADD_JOIN_ON_TRUE = False
    ID_VAR_TOKENS = SparkParser.ID_VAR_TOKENS - CLAUSE_WORDS
    ALIAS_TOKENS = SparkParser.ALIAS_TOKENS - CLAUSE_WORDS
    TABLE_ALIAS_TOKENS = SparkParser.TABLE_ALIAS_TOKENS - CLAUSE_WORDS
    COMMENT_TABLE_ALIAS_TOKENS = SparkParser.COMMENT_TABLE_ALIAS_TOKENS - CLAUSE_WORDS
    UPDATE_ALIAS_TOKENS = SparkParser.UPDATE_ALIAS_TOKENS - CLAUSE_WORDS
    WINDOW_ALIAS_TOKENS = SparkParser.WINDOW_ALIAS_TOKENS - CLAUSE_WORDS
    UNNEST_OFFSET_ALIAS_TOKENS = SparkParser.UNNEST_OFFSET_ALIAS_TOKENS - CLAUSE_WORDS

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        raise PlacedParseError(message, token or self._curr or self._prev or Token(TokenType.STRING, ""))

    def _parse_table_parts(
        self, schema: bool = False, is_db_reference: bool = False, wildcard: bool = False, fast: bool = False
    ) -> Any:
        first = self._curr
        table = super()._parse_table_parts(schema=schema, is_db_reference=is_db_reference, wildcard=wildcard, fast=fast)
        if not isinstance(table, exp.Table) or schema:
            return table
        table.meta["place"] = (first.start, self._prev.end + 1)
        if self._curr.token_type != TokenType.L_BRACKET or not isinstance(table.this, exp.Identifier):
            return table
        return self._parse_part_subscript(table, first)

    def _parse_part_subscript(self, table: exp.Table, first: Token) -> PartTable:
        opening = self._curr
        self._advance()
        if self._curr.text.upper() == "WINDOW":
            raise LanguageError(
                "A [WINDOW ...] is for a view without INITIALIZE, UPDATE and PATTERN: CREATE VIEW V AS SELECT ... FROM S [WINDOW ...].",
                text=self.sql,
                start=opening.start,
                end=self._curr.end + 1,
            )
        while self._curr and self._curr.token_type != TokenType.R_BRACKET:
            self._advance()
        if not self._curr:
            raise LanguageError("This bracket is not closed.", text=self.sql, start=opening.start, end=opening.end + 1)
        node = PartTable(**table.args)
        node.meta["place"] = (first.start, self._curr.end + 1)
        node.meta["subscript"] = parse_subscript(self.sql, opening.end + 1, self._curr.start)
        self._advance()
        return node

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        first = self._curr
        join = super()._parse_join(*args, **kwargs)
        if join is not None:
            if self._prev.token_type in (TokenType.ON, TokenType.USING):
                self.raise_error(NO_CONDITION, self._prev)
            # In the tree, `FROM a, b` and `FROM a JOIN b` look the same.
            join.meta["is_comma"] = first.token_type == TokenType.COMMA
            join.meta["place"] = (first.start, self._prev.end + 1)
        return join

    def _parse_function(self, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        node = super()._parse_function(*args, **kwargs)
        if node is not None and first:
            node.meta.setdefault("place", (first.start, self._prev.end + 1))
        return node

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        node = super()._parse_select(*args, **kwargs)
        if node is not None and first:
            node.meta.setdefault("place", (first.start, self._prev.end + 1))
        return node

    def parse_query(self, tokens: Sequence[Token], text: str) -> exp.Expr | None:
        """The tree of one query, whose tokens are a run of the tokens of `text`."""
        trees = self._parse(type(self)._parse_statement, list(tokens), text)
        return trees[0] if trees else None


def _write_part_table(generator: SparkGenerator, node: PartTable) -> str:
    name, low, high = fold(node.name), node.args.get("low"), node.args.get("high")
    if node.args.get("partial"):
        high = f"{high} PARTIAL"
    table = exp.Table(
        **{
            argument: value
            for argument, value in node.copy().args.items()
            if argument not in ("low", "high", "partial")
        }
    )
    table.set("this", exp.to_identifier(f"{name}[{low}]" if low == high else f"{name}[{low}..{high}]"))
    return generator.sql(table)


class ViewDFGenerator(SparkGenerator):
    """Writes trees that still have part tables in them, for digests."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {**SparkGenerator.TRANSFORMS, PartTable: _write_part_table}


class ViewDF(Spark):
    Parser = ViewDFParser
    Generator = ViewDFGenerator


def read_tokens(text: str) -> list[Token]:
    """The tokens of a text; an unclosed quote or comment is a LanguageError."""
    try:
        return list(ViewDF().tokenize(text))
    except TokenError:
        start, what = _find_unclosed(text)
        raise LanguageError(f"This {what} is not closed.", text=text, start=start, end=start + 1) from None


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts differ in layout, comments and the case of words only."""
    return _words(one) == _words(other)


def _words(text: str) -> list[tuple[bool, str]]:
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    return [
        (token.token_type in quoted, token.text if token.token_type in quoted else fold(token.text))
        for token in read_tokens(text)
    ]


_PIECE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|(/\*|['\"`])|.", re.DOTALL
)


def _find_unclosed(text: str) -> tuple[int, str]:
    for match in _PIECE.finditer(text):
        if match.group(1):
            return match.start(), {"/*": "comment", "`": "quoted name"}.get(match.group(1), "string")
    return 0, "text"


def parse_query(tokens: Sequence[Token], text: str) -> exp.Expr:
    """The tree of one query. Whatever Spark's grammar does not allow is a LanguageError."""
    _refuse_misplaced_clauses(tokens, text)
    parser = ViewDFParser(dialect=ViewDF(), error_level=ErrorLevel.IMMEDIATE)
    first, last = tokens[0], tokens[-1]
    if first.token_type not in QUERY_STARTS:
        raise LanguageError(
            f"A query begins with SELECT or WITH, not with {first.text}.",
            text=text,
            start=first.start,
            end=first.end + 1,
        )
    try:
        tree = parser.parse_query(tokens, text)
    except PlacedParseError as error:
        token = error.token
        raise LanguageError(
            _explain(error.reason, token, last), text=text, start=token.start, end=token.end + 1
        ) from None
    except RecursionError:
        raise LanguageError(
            "The query is nested too deeply.", text=text, start=first.start, end=first.end + 1
        ) from None
    if not isinstance(tree, exp.Query):
        raise LanguageError("A query is expected here.", text=text, start=first.start, end=last.end + 1)
    refuse_outside(tree, text)
    return tree


def _refuse_misplaced_clauses(tokens: Sequence[Token], text: str) -> None:
    """Clauses of ours, and those that people expect of other databases, where they would be read as something else."""
    before = None
    for word, following in pairwise(tokens):
        name = word.text.upper() if word.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) else ""
        is_open = before is not None and before.token_type == TokenType.L_BRACKET
        before, reason = word, ""
        if name == "PATTERN" and following.token_type == TokenType.L_BRACKET:
            reason = "A PATTERN query can only be a view of its own, CREATE VIEW ... AS SELECT ... PATTERN [...]; read that view here."
        elif name == "WINDOW" and following.token_type in (TokenType.NUMBER, TokenType.STRING) and not is_open:
            reason = "A sliding window stands in brackets, right behind the table: FROM S [WINDOW 60 minutes]."
        elif name == "MATCH_RECOGNIZE":
            reason = "MATCH_RECOGNIZE is not known here; write the pattern behind the table, and conditions in WHERE: FROM S PATTERN [a, b+] WHERE b.x > a.x."
        if reason:
            raise LanguageError(reason, text=text, start=word.start, end=following.end + 1)


QUERY_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM, TokenType.VALUES}


def _explain(reason: str, token: Token, last: Token) -> str:
    if reason == NO_CONDITION:
        return f"A condition is missing after {token.text}."
    if token.start >= last.start and reason.startswith(("Expecting", "Required", "Expected")):
        return f"The query ends too early, after {token.text}."
    if reason.startswith("Expecting "):
        return f"{reason.removeprefix('Expecting ')} is expected before {token.text}."
    if reason.startswith("Required argument"):
        return f"Something is missing before {token.text}."
    return f"{token.text} is not expected here."
