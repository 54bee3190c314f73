"""Whether every value of one type is a value of another."""

from __future__ import annotations

import re

INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "null": "void",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


def can_widen(from_type: str, to_type: str) -> bool:
    """Whether Spark's type `from_type` goes into `to_type` without loss."""
    source, target = _normalize(from_type), _normalize(to_type)
    if source == target or source == "void":
        return True
    if source in INTEGERS and target in INTEGERS:
        return INTEGERS[source] <= INTEGERS[target]
    if target == "double":
        return source in ("tinyint", "smallint", "int", "float")
    if target == "float":
        return source in ("tinyint", "smallint")
    if decimal := _DECIMAL.fullmatch(target):
        return _fits_decimal(source, int(decimal.group(1)), int(decimal.group(2)))
    if source == "date":
        return target in ("timestamp", "timestamp_ntz")
    return _can_widen_nested(source, target)


def _fits_decimal(source: str, precision: int, scale: int) -> bool:
    if source in INTEGERS:
        return INTEGERS[source] <= precision - scale
    if decimal := _DECIMAL.fullmatch(source):
        digits, decimals = int(decimal.group(1)), int(decimal.group(2))
        return decimals <= scale and digits - decimals <= precision - scale
    return False


def _can_widen_nested(source: str, target: str) -> bool:
    kind = source.split("<", 1)[0]
    if "<" not in source or "<" not in target or kind != target.split("<", 1)[0]:
        return False
    ours, theirs = _elements(source), _elements(target)
    if len(ours) != len(theirs):
        return False
    if kind == "struct":
        ours, theirs = [_field_type(item) for item in ours], [_field_type(item) for item in theirs]
    return all(can_widen(a, b) for a, b in zip(ours, theirs, strict=True))


def _field_type(element: str) -> str:
    """The type in `name:type`; the name may be quoted, and then hold anything."""
    if element.startswith("`"):
        return element[element.index("`:", 1) + 2 :]
    return element.split(":", 1)[1]


def _elements(text: str) -> list[str]:
    """What stands between the outermost angle brackets, split at its own commas."""
    inside = text[text.index("<") + 1 : -1]
    elements, depth, start, quoted = [], 0, 0, False
    for position, letter in enumerate(inside):
        quoted ^= letter == "`"
        if not quoted:
            depth += (letter in "<(") - (letter in ">)")
            if letter == "," and depth == 0:
                elements.append(inside[start:position])
                start = position + 1
    return [*elements, inside[start:]]


def _normalize(text: str) -> str:
    bare = text.strip()
    if "<" not in bare:
        bare = re.sub(r"\s+", "", bare.lower()) if "interval" not in bare.lower() else bare.lower()
        bare = _ALIASES.get(bare, bare)
        return "decimal(10,0)" if bare == "decimal" else re.sub(r"^decimal\((\d+)\)$", r"decimal(\1,0)", bare)
    kind, rest = bare.split("<", 1)
    return f"{kind.strip().lower()}<{re.sub(r', +', ',', rest.strip())}"
