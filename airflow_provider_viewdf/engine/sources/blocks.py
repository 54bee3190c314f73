"""Blocks of whole rows from a file of text, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from airflow_provider_viewdf.errors import LoadError

BLOCK_BYTES = 4 * 2**20
LONGEST_ROW_BYTES = 64 * 2**20

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_blocks(
    handle: BinaryIO, name: str, find_cut: Callable[[bytes], int], block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Blocks that end where `find_cut` says, each with the number of its first line.

    Every block ends with a newline; the last one holds whatever is left, whole rows or not.
    """
    line, rest = 1, b""
    is_first = True
    while chunk := handle.read(block_bytes):
        if is_first:
            chunk, is_first = chunk.removeprefix(_BYTE_ORDER_MARK), False
        rest += chunk
        cut = find_cut(rest)
        if cut:
            yield line, rest[:cut]
            line += rest.count(b"\n", 0, cut)
            rest = rest[cut:]
        elif len(rest) > LONGEST_ROW_BYTES:
            raise LoadError(
                f"{name}, line {line}: a row of more than {LONGEST_ROW_BYTES // 2**20} MB begins here; "
                "close the quotation mark that was left open, or split the row."
            )
    if rest:
        yield line, rest if rest.endswith(b"\n") else rest + b"\n"


def find_last_line_end(block: bytes) -> int:
    return block.rfind(b"\n") + 1
