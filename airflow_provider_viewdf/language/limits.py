"""How much text is read, and how deeply nested: enough for what people write, and little enough to be read in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.dialect import read_tokens

MOST_CHARACTERS = 1_000_000
MOST_WORDS = 20_000
MOST_DIGITS = 100


def check_size(text: str) -> None:
    """Refuse a text that is too long, or that has a statement or a number that is."""
    if len(text) > MOST_CHARACTERS:
        raise LanguageError(
            f"The text has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are read; split it up."
        )
    words = 0
    first: Token | None = None
    for token in read_tokens(text):
        if token.token_type == TokenType.SEMICOLON:
            words, first = 0, None
            continue
        words, first = words + 1, first or token
        if words > MOST_WORDS:
            _fail(
                f"This statement has more than {MOST_WORDS:,} words and signs; split it up, or put long lists of values "
                "into a table.",
                text,
                first,
            )
        if token.token_type == TokenType.NUMBER and len(token.text) > MOST_DIGITS:
            _fail(f"This number has {len(token.text):,} digits, and at most {MOST_DIGITS} are read.", text, token)


@contextmanager
def refuse_deep_nesting(text: str) -> Iterator[None]:
    """Say of a text that it is nested too deeply, where Python would run out of stack.

    sqlglot reports that as an error of its own where it reads a piece of text inside of another.
    """
    try:
        yield
    except RecursionError:
        pass
    except SqlglotError as error:
        if not isinstance(error.__cause__ or error.__context__, RecursionError):
            raise
    else:
        return
    raise LanguageError(
        "The text is nested too deeply, or has too long a chain of operators or of views; divide it into several views.",
        text=text,
        start=0,
        end=1,
    )


def _fail(message: str, text: str, token: Token) -> None:
    raise LanguageError(message, text=text, start=token.start, end=token.end + 1)
