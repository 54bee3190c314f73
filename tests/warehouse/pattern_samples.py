"""Random patterns, predicates and outputs, each as text of the language and as Python."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from pattern_oracle import Bound, Check, Pattern

NAMES = ("a", "b", "c")


def compare(left: Any, sign: str, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return bool(
        {">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right, "=": left == right}[sign]
    )


def either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def figure(function: str, rows: list[dict[str, Any]], column: str) -> Any:
    values = [row[column] for row in rows if row[column] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    match function:
        case "sum":
            return sum(values)
        case "avg":
            return sum(values) / len(values)
        case "min":
            return min(values)
    return max(values)


signs = st.sampled_from([">", "<", ">=", "<="])
columns = st.sampled_from(["x", "y"])
limits = st.integers(0, 3)


@st.composite
def checks_of(draw: st.DrawFn, name: str, earlier: tuple[str, ...]) -> Check:
    v, sign, col, limit = name, draw(signs), draw(columns), draw(limits)
    kinds = ["limit", "limit", "limit", "null", "sum", "first", "before", "figure", "own_first", "in"]
    kinds += ["other", "other", "other_first", "or_other", "not_other", "unbound"] if earlier else []
    kind = draw(st.sampled_from(kinds))
    w = draw(st.sampled_from(earlier)) if earlier else ""
    match kind:
        case "limit":
            return Check(f"{v}.{col} {sign} {limit}", v, lambda b: compare(b.last(v, col), sign, limit))
        case "in":
            return Check(
                f"{v}[i].{col} IN (0, {limit})",
                v,
                lambda b: b.last(v, col) in (0, limit) if b.last(v, col) is not None else None,
            )
        case "null":
            return Check(
                f"({v}.{col} IS NULL OR {v}.{col} {sign} {limit})",
                v,
                lambda b: either(b.last(v, col) is None, compare(b.last(v, col), sign, limit)),
            )
        case "sum":
            return Check(
                f"{v}.x + {v}.y {sign} {limit}",
                v,
                lambda b: compare(
                    None if None in (b.last(v, "x"), b.last(v, "y")) else b.last(v, "x") + b.last(v, "y"), sign, limit
                ),
            )
        case "first":
            return Check(f"{v}[1].{col} {sign} {limit}", v, lambda b: compare(b.first(v, col), sign, limit))
        case "before":
            return Check(
                f"{v}[i].{col} {sign} {v}[i-1].{col}",
                v,
                lambda b: compare(b.last(v, col), sign, b.of(v)[-2][col]),
                from_second=True,
            )
        case "figure":
            function = draw(st.sampled_from(["sum", "avg", "min", "max", "count"]))
            return Check(
                f"{v}.{col} {sign} {function}({v}[..i-1].{col})",
                v,
                lambda b: compare(b.last(v, col), sign, figure(function, b.of(v)[:-1], col)),
                from_second=True,
            )
        case "own_first":
            return Check(f"{v}.{col} >= {v}[1].{col}", v, lambda b: compare(b.last(v, col), ">=", b.first(v, col)))
        case "other":
            return Check(f"{v}.{col} {sign} {w}.{col}", v, lambda b: compare(b.last(v, col), sign, b.last(w, col)))
        case "other_first":
            return Check(f"{w}[1].{col} {sign} {v}.{col}", v, lambda b: compare(b.first(w, col), sign, b.last(v, col)))
        case "or_other":
            return Check(
                f"({v}.x {sign} {limit} OR {v}.y > {w}.y)",
                v,
                lambda b: either(compare(b.last(v, "x"), sign, limit), compare(b.last(v, "y"), ">", b.last(w, "y"))),
            )
        case "not_other":

            def differs(b: Bound) -> bool | None:
                same = compare(b.last(v, col), "=", b.last(w, col))
                return None if same is None else not same

            return Check(f"NOT {v}.{col} = {w}.{col}", v, differs)
    return Check(
        f"({w}.{col} IS NULL OR {v}.{col} {sign} {w}.{col})",
        v,
        lambda b: either(b.last(w, col) is None, compare(b.last(v, col), sign, b.last(w, col))),
    )


@st.composite
def patterns(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> Pattern:
    """A pattern over these variables, each once, which binds at least one row."""

    def quantify(item: Pattern, can_vanish: bool) -> Pattern:
        choices = [None, None, (1, None), (2, 2), (1, 2), (2, None)] + (
            [(0, None), (0, 1), (0, 2)] if can_vanish else []
        )
        found = draw(st.sampled_from(choices))
        return item if found is None else ("rep", item, *found)

    solid = draw(st.integers(0, len(names) - 1))
    items = [quantify((name,), position != solid) for position, name in enumerate(names)]
    if len(items) == 1:
        return items[0]
    shape = draw(st.sampled_from(["flat", "flat", "group", "choice", "loop"]))
    match shape:
        case "flat":
            return ("seq", *items)
        case "choice":
            whole: Pattern = ("seq", items[0], ("alt", *items[1:])) if len(items) > 2 else ("alt", *items)
            return whole
        case "group":
            inner: Pattern = ("seq", *items[1:])
            group = (
                inner
                if _can_be_empty(inner)
                else ("rep", inner, *draw(st.sampled_from([(0, 1), (1, None), (1, 2), (0, None)])))
            )
            whole = ("seq", items[0], group)
            return whole if not _can_be_empty(whole) else ("seq", items[0], inner)
    inner = ("seq", *items)
    return ("rep", inner, 1, None)


def _can_be_empty(pattern: Pattern) -> bool:
    match pattern:
        case ("seq", *items):
            return all(_can_be_empty(item) for item in items)
        case ("alt", *items):
            return any(_can_be_empty(item) for item in items)
        case ("rep", item, least, _):
            return least == 0 or _can_be_empty(item)
    return False


@st.composite
def queries(draw: st.DrawFn) -> tuple[Pattern, list[Check], bool, int | None]:
    names = NAMES[: draw(st.integers(1, 3))]
    pattern = draw(patterns(names).filter(lambda pattern: not _can_be_empty(pattern)))
    checks: list[Check] = []
    for position, name in enumerate(names):
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
            checks.append(draw(checks_of(name, names[:position])))
    if not checks:
        checks.append(draw(checks_of(names[0], ())))
    across = draw(st.booleans())
    within = draw(st.sampled_from([None, None, None, 60, 130]))
    return pattern, checks, across, within


def outputs_of(bound: Bound, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What OUTPUTS selects, in Python."""
    rows = list(bound.rows)
    answer: list[Any] = [
        len(rows),
        figure("sum", rows, "x"),
        figure("avg", rows, "y"),
        rows[-1]["x"],
        rows[-1]["seq"] - rows[0]["seq"],
        figure("max", rows, "y"),
    ]
    for name in names:
        own = bound.of(name)
        answer += [
            len(own),
            figure("count", own, "x"),
            figure("sum", own, "x"),
            figure("min", own, "y"),
            own[0]["seq"] if own else None,
            own[-1]["x"] if own else None,
        ]
    return tuple(answer)


def write_outputs(names: tuple[str, ...]) -> str:
    texts = ["count(*) AS n", "sum(x) AS s", "avg(y) AS v", "x", "seq - first(seq) AS d", "max(y) AS m"]
    for name in names:
        texts += [
            f"count({name}.*) AS n_{name}",
            f"count({name}.x) AS c_{name}",
            f"sum({name}.x) AS s_{name}",
            f"min({name}.y) AS m_{name}",
            f"first({name}.seq) AS f_{name}",
            f"{name}.x AS l_{name}",
        ]
    return ", ".join(texts)
