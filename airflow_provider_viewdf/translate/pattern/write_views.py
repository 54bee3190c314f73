"""The helper view and the view of a pattern query, as statements of the language."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import format_time
from airflow_provider_viewdf.translate.pattern.dominance import Dominance
from airflow_provider_viewdf.translate.pattern.machine import Machine
from airflow_provider_viewdf.translate.pattern.memory import (
    BEFORE,
    CURRENT,
    MATCH,
    ROW,
    ROWS,
    RUN,
    RUNS,
    STATE,
    quote,
    write_sql,
)
from airflow_provider_viewdf.translate.pattern.query import PatternQuery
from airflow_provider_viewdf.translate.pattern.steps import (
    write_all_runs,
    write_among,
    write_no_run,
    write_one_run,
    write_struct,
)
from airflow_provider_viewdf.translate.translation import GeneratedView

Rows = Literal["one", "seen", "many"]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the views are computed; what they hold is always the same.

    `has_one_run`: one run per group is all that need be kept, so it is the helper's row, and not a list in it.
    `rows`: how many rows a group has in a part, if any: "one", or it is "seen" when the part is computed, or it may be "many". Of
    one row nothing need be collected and ordered.
    """

    has_one_run: bool
    rows: Rows


@dataclass(frozen=True, slots=True)
class Clauses:
    """What stands behind the queries of the statement: lengths in seconds, and the rest as the person has written it."""

    length_seconds: int
    source_length_seconds: int
    starting: datetime | None = None
    is_starting_latest: bool = False
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewWriter:
    query: PatternQuery
    machine: Machine
    dominance: Dominance
    shape: Shape
    clauses: Clauses

    @property
    def helper(self) -> str:
        return f"{self.query.view}_runs"

    def write_helper(self) -> GeneratedView:
        keys = f" KEY ({', '.join(self._columns)})" if self._columns else ""
        starting = " STARTING LATEST" if self.clauses.is_starting_latest else ""
        if self.shape.rows == "many":
            update = self._fold_rows("j", False)
        elif self.shape.rows == "seen":
            update = f"{self._join_rows('j')}\n  UNION ALL\n{self._fold_rows('j', False)}"
        else:
            update = self._join_rows("j")
        return self._write_view(self.helper, self._fold_rows("i", True), update, f"{starting}{keys}")

    def write_view(self) -> GeneratedView:
        keys = self.clauses.keys or self._find_keys()
        ending = f" KEY ({', '.join(quote(key) for key in keys)})" if keys else ""
        return self._write_view(self.query.view, self._report("i"), self._report("j"), ending)

    def _write_view(self, name: str, initialize: str, update: str, ending: str) -> GeneratedView:
        starting = f" STARTING '{format_time(self.clauses.starting)}'" if self.clauses.starting else ""
        return GeneratedView(
            name,
            f"CREATE VIEW {name} AS\n"
            f"INITIALIZE {name}[i] AS\n{initialize}\n"
            f"UPDATE {name}[j] AS\n{update}\n"
            f"PARTITION LENGTH {self.clauses.length_seconds}{starting}{ending}",
        )

    def _find_keys(self) -> tuple[str, ...]:
        """The outputs that are the grouped attributes, if all of them are there."""
        found = {fold(output.tree.name): output.name for output in self.query.outputs if output.tree.name}
        names = [found.get(fold(name), "") for name in self.query.groups]
        return tuple(names) if all(names) else ()

    # The rows of the source.

    def _source(self, variable: str) -> str:
        times = self.clauses.length_seconds // self.clauses.source_length_seconds
        if times == 1:
            return f"{self.query.source}[{variable}]"
        return f"{self.query.source}[{variable} * {times} .. {variable} * {times} + {times - 1}]"

    def _order(self) -> list[str]:
        # Rows are ordered by their part first, which the time of a stream's row implies.
        several = self.clauses.length_seconds != self.clauses.source_length_seconds
        return ["PART", *self.query.order] if several and not self.query.is_ordered_by_time else [*self.query.order]

    def _where(self, *more: str) -> str:
        texts = [write_sql(tree) for tree in self.query.filters] + [text for text in more if text]
        if not texts:
            return ""
        return f" WHERE {texts[0] if len(texts) == 1 else ' AND '.join(f'({text})' for text in texts)}"

    def _groups(self, prefix: str = "") -> str:
        return "".join(f"{prefix}{name}, " for name in self._columns)

    @property
    def _columns(self) -> list[str]:
        """What the helper calls the grouped attributes."""
        return list(self.machine.memory.columns.values())

    def _read_groups(self) -> list[str]:
        pairs = [(quote(name), column) for name, column in self.machine.memory.columns.items()]
        return [name if name == column else f"{name} AS {column}" for name, column in pairs]

    # Many rows per group: collect them, put them in order, fold the machine over them.

    def _fold_rows(self, variable: str, is_beginning: bool) -> str:
        groups = self._groups()
        group_by = f"\n    GROUP BY {groups.removesuffix(', ')}" if groups else ""
        kept = "" if is_beginning else f", any_value({RUNS if not self.shape.has_one_run else RUN}, TRUE) AS {BEFORE}"
        if is_beginning:
            none = write_no_run(self.machine, f"{ROWS}[0]")
            zero = none if self.shape.has_one_run else f"filter(array({none}), q -> q IS NOT NULL)"
        else:
            zero = BEFORE if self.shape.has_one_run else f"coalesce({BEFORE}, array())"
        if self.shape.has_one_run:
            step = f"({RUN}, {ROW}) -> {write_one_run(self.machine, frozenset(), '    ')}"
        else:
            step = f"({RUNS}, {ROW}) -> {write_all_runs(self.machine, self.dominance, frozenset(), '    ')}"
        across = self.query.is_across_gaps
        flag = f"size({ROWS}) > 0 AS {CURRENT}, " if across else ""
        # A group of the part before may have no rows now; and without groups there is a row even of none at all.
        has_empty = not across and (not is_beginning or not groups)
        only = f"\n  WHERE size({ROWS}) > 0" if has_empty else ""
        folded = f"aggregate({ROWS}, {zero},\n    {step})"
        return (
            f"  SELECT {groups}{flag}{self._unfold(folded)}\n"
            f"  FROM (\n"
            f"    SELECT {groups}array_sort(collect_list({ROW})) AS {ROWS}{kept}\n"
            f"    FROM {self._union_rows(variable, is_beginning)}{group_by}\n"
            f"  ){only}"
        )

    def _unfold(self, result: str) -> str:
        """The columns of what a fold gives, if it gives anything. A filter would compute it a second time."""
        if self.shape.has_one_run:
            return f"inline(array_compact(array({result})))"
        return f"inline(filter(array(named_struct('{RUNS}', {result})), q -> size(q.{RUNS}) > 0))"

    def _union_rows(self, variable: str, is_beginning: bool) -> str:
        groups = self._groups()
        only = self._several(variable) if self.shape.rows == "seen" and not is_beginning else self._taken(variable)
        if only:
            rows = f"SELECT {self._groups(f'{MATCH}.')}{MATCH}.{ROW} AS {ROW}"
            source = f" FROM ({self._read_rows(variable)}) AS {MATCH}{self._semi_join(only)}"
        else:
            rows, source = self._read_rows(variable), ""
        if is_beginning:
            return f"({rows}{source})"
        if self.shape.has_one_run:
            names = [STATE, *self.machine.memory.fields]
            before = write_struct((name, name) for name in names)
            column = RUN
        else:
            before, column = RUNS, RUNS
        helper = f"{self.helper}[{variable} - 1] AS {MATCH}{self._semi_join(only) if self.shape.rows == 'seen' else ''}"
        if only:
            rows = f"{rows}, NULL AS {column}{source}"
        else:
            rows = f"SELECT *, NULL AS {column} FROM ({rows})"
        return f"(\n      {rows}\n      UNION ALL\n      SELECT {groups}NULL, {before} FROM {helper})"

    def _read_rows(self, variable: str) -> str:
        columns = ", ".join([*self._read_groups(), self._row_struct()])
        return f"SELECT {columns} AS {ROW} FROM {self._source(variable)}{self._where()}"

    def _semi_join(self, groups: str, kind: str = "SEMI", left: str = MATCH) -> str:
        return f"\n      LEFT {kind} JOIN ({groups}) AS q ON {self._is_same_group(left, 'q')}"

    def _is_same_group(self, left: str, right: str) -> str:
        # Spark makes two keys of each <=>, and such a join is slow; one number is a key that it is fast with. What else has
        # to be compared is inside of LEAST, so that it stays a mere condition.
        keys = " = ".join(f"xxhash64({self._groups(f'{side}.').removesuffix(', ')})" for side in (left, right))
        same = ", ".join(f"{left}.{name} <=> {right}.{name}" for name in self._columns)
        return f"{keys} AND least(TRUE, {same})"

    def _taken(self, variable: str) -> str:
        """The groups that have a row which some variable may take. Of the others no rows need be collected."""
        passing = self._passing()
        if not self._columns or not passing or self.query.is_across_gaps:
            return ""
        return f"SELECT {', '.join(self._read_groups())} FROM {self._source(variable)}{self._where(passing)}"

    def _several(self, variable: str) -> str:
        """Those of these groups that have several rows."""
        taken = self._taken(variable)
        groups = self._groups(f"{MATCH}.").removesuffix(", ")
        rows = f"(SELECT {', '.join(self._read_groups())} FROM {self._source(variable)}{self._where()}) AS {MATCH}"
        join = self._semi_join(taken) if taken else ""
        return f"SELECT {groups} FROM {rows}{join} GROUP BY {groups} HAVING count(*) > 1"

    def _passing(self) -> str:
        """The condition under which some variable may take a row, or "" if it is not known from the row alone."""
        names = sorted({name for _, name in self.machine.tests})
        if not all(names):
            return ""
        texts = [self.machine.memory.tests[name] for name in names]
        return texts[0] if len(texts) == 1 else " OR ".join(f"({text})" for text in texts)

    def _row_struct(self) -> str:
        # What stands first orders the rows; the rest decides between rows that are alike in it, so that the order of
        # files never does.
        fields = [(f"o{number}", sql) for number, sql in enumerate(self._order(), start=1)]
        fields += list(self.machine.memory.row.items())
        return write_struct(fields or [("o", "0")])

    def _flat_columns(self) -> str:
        return ", ".join(f"{RUN}.{name} AS {name}" for name in [STATE, *self.machine.memory.fields])

    # A row that is alone in its group and part: one outer join with the part before.

    def _join_rows(self, variable: str) -> str:
        tests = {name for _, name in self.machine.tests}
        # A row that no variable takes ends its group's runs; here that is done by leaving it out.
        only = self._passing()
        known = frozenset(f"{ROW}.{name}" for name in tests) if only and len(tests) == 1 else frozenset()
        held = {name: sql for name, sql in self.machine.memory.row.items() if f"{ROW}.{name}" not in known}
        values = ", ".join([*self._read_groups(), *(f"{sql} AS {name}" for name, sql in held.items())])
        several = self._semi_join(self._several(variable), "ANTI", ROW) if self.shape.rows == "seen" else ""
        rows = (
            f"(SELECT {values} FROM {self._source(variable)}{self._where(only)}) AS {ROW}"
            f"{several}"
            f"\n      LEFT JOIN {self.helper}[{variable} - 1] AS {RUN} ON {self._is_same_group(ROW, RUN)}"
        )
        groups, outer = self._groups(f"{ROW}."), self._groups()
        if self.shape.has_one_run:
            step = write_one_run(self.machine, known, "      ")
            return (
                f"  SELECT {outer}{self._flat_columns()} FROM (\n"
                f"    SELECT {groups}{step} AS {RUN}\n"
                f"    FROM {rows}\n"
                f"  ) WHERE {RUN} IS NOT NULL"
            )
        struct = write_struct([(name, f"{ROW}.{name}") for name in held] or [("o", "0")])
        step = write_all_runs(self.machine, self.dominance, known, "    ")
        folded = f"aggregate(array({struct}), coalesce({RUN}.{RUNS}, array()),\n    ({RUNS}, {ROW}) -> {step})"
        return f"  SELECT {groups}{self._unfold(folded)}\n  FROM {rows}"

    # The view itself.

    def _report(self, variable: str) -> str:
        accepting = write_among(self.machine.accepting)
        if self.shape.has_one_run:
            source, groups, tests = f"{self.helper}[{variable}] AS {RUN}", RUN, [f"{RUN}.{STATE} {accepting}"]
            if self.query.is_across_gaps:
                tests.append(f"{RUN}.{CURRENT}")
        else:
            inner = f"get(filter({RUNS}, q -> q.{STATE} {accepting}), 0) AS {RUN}"
            where = f" WHERE {CURRENT}" if self.query.is_across_gaps else ""
            source = f"(SELECT {self._groups()}{inner} FROM {self.helper}[{variable}]{where}) AS {MATCH}"
            groups, tests = MATCH, [f"{RUN} IS NOT NULL"]
        memory = self.machine.memory
        outputs = [
            f"{memory.write_output(item.tree, groups)} AS {_quote_output(item.name)}" for item in self.query.outputs
        ]
        if self.query.having is not None:
            tests.append(f"({memory.write_output(self.query.having, groups)})")
        return f"  SELECT {', '.join(outputs)}\n  FROM {source}\n  WHERE {' AND '.join(tests)}"


def _quote_output(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if quote(name) != name else name
