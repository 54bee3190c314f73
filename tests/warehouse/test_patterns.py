"""Pattern views in a warehouse: the papers' queries and their numbers."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from network import LOSSES, measurement, minute

from airflow_provider_viewdf.errors import DefinitionError
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT{key}) PARTITION LENGTH 60;\n"
VIEW1 = """
CREATE VIEW View1 AS
  SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
  FROM M PATTERN [a, b, c, d+]
  WHERE a.loss>10 AND b.loss>10 AND c.loss>10 AND d.loss>10
  GROUP BY src, dest;
"""


def load_losses(warehouse: Warehouse, losses: dict[int, list[int | None]], parts: int) -> None:
    """The rows of each minute, a second apart, in the order given."""
    rows = [
        {"ts": minute(number, second), "src": "a", "dest": "b", "loss": loss}
        for number, values in losses.items()
        for second, loss in enumerate(values)
    ]
    warehouse.load("M", rows, batch_id="losses", covers=(minute(0), minute(parts)))
    warehouse.refresh()


def answers(warehouse: Warehouse, view: str, columns: str) -> list[tuple[Any, ...]]:
    sql = f"SELECT minute(PART_TIMESTAMP) AS m, {columns} FROM {view} ORDER BY ALL"
    return [tuple(row) for row in warehouse.query(sql).collect()]


@pytest.mark.parametrize("key", ["", ", KEY (src, dest)"], ids=["no key", "key"])
def test_view1_of_the_paper_gives_its_numbers_and_a_late_row_heals_it(warehouse: Warehouse, key: str) -> None:
    warehouse.apply(STREAM.format(key=key) + VIEW1)
    for number, loss in LOSSES.items():
        rows = [] if number == 2 else [measurement(number, loss)]
        warehouse.load("M", rows, batch_id=f"minute {number}", covers=(minute(number), minute(number + 1)))
    warehouse.refresh()
    assert answers(warehouse, "View1", "ct, sum_loss") == []
    warehouse.load("M", [measurement(2, 15)], batch_id="late")
    warehouse.refresh()
    assert answers(warehouse, "View1", "src, dest, ct, sum_loss") == [(4, "a", "b", 4, 71), (5, "a", "b", 5, 87)]
    assert warehouse.refresh().steps == ()
    assert warehouse.verify().is_ok


def test_a_key_is_no_promise_that_a_group_has_one_row_in_a_part(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM.format(key=", KEY (src, dest)") + VIEW1)
    load_losses(warehouse, {0: [11, 12], 1: [13], 2: [14, 3], 3: [15], 4: [16, 17, 18]}, 5)
    assert answers(warehouse, "View1", "ct, sum_loss") == [(4, 4, 66)]


def test_the_queries_of_the_thesis(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM.format(key="")
        + """
        CREATE VIEW View2 AS SELECT ts, src, dest, count(*) as count, sum(loss) as sum_loss FROM M PATTERN (a, b, c, d+)
          WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d[1].loss > 10 AND d[i].loss > 10 GROUP BY src, dest;
        CREATE VIEW Rising AS SELECT src, count(*) AS ct, first(loss) AS low, loss AS high FROM M PATTERN (d+)
          WHERE d[i].loss > d[i-1].loss GROUP BY src HAVING ct > 1;
        CREATE VIEW Above AS SELECT src, count(*) AS ct FROM M PATTERN (a, d+)
          WHERE a.loss > 10 AND d[i].loss > avg(d[..i-1].loss) GROUP BY src;
        CREATE VIEW Step AS SELECT src, a.loss AS before, b.loss AS after FROM M PATTERN (a, b)
          WHERE b.loss > a.loss GROUP BY src;
        """
    )
    load_losses(warehouse, {number: [loss] for number, loss in LOSSES.items()}, 7)
    assert answers(warehouse, "View2", "unix_timestamp(ts) % 3600 div 60 AS t, count, sum_loss") == [
        (4, 4, 4, 71),
        (5, 5, 5, 87),
    ]
    assert answers(warehouse, "Rising", "ct, low, high") == [(1, 2, 6, 12), (2, 3, 6, 15), (3, 4, 6, 24)]
    # 12 15 24 20 16 7: at 10:04 from 12 on, d is 15 24 20; at 10:05 from 24 on, d is 20, and 16 is not above it.
    assert answers(warehouse, "Above", "ct") == [(2, 2), (3, 3), (4, 4), (5, 2), (6, 2)]
    assert answers(warehouse, "Step", "before, after") == [(1, 6, 12), (2, 12, 15), (3, 15, 24)]


def test_a_row_that_breaks_one_match_begins_another_and_runs_overlap(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM.format(key="")
        + "CREATE VIEW Pairs AS SELECT src, first(a.loss) AS x, last(b.loss) AS y FROM M PATTERN [a, b] "
        "WHERE a.loss > 10 AND b.loss > 10 GROUP BY src;"
        "CREATE VIEW Ends AS SELECT src, count(a.*) AS ct FROM M PATTERN [a+, b] "
        "WHERE a.loss > 10 AND b.loss > 15 GROUP BY src;"
    )
    load_losses(warehouse, {0: [11], 1: [12], 2: [16], 3: [17], 4: [5, 20], 5: [21]}, 6)
    assert answers(warehouse, "Pairs", "x, y") == [(1, 11, 12), (2, 12, 16), (3, 16, 17), (5, 20, 21)]
    assert answers(warehouse, "Ends", "ct") == [(2, 2), (3, 3), (5, 1)]


def test_a_gap_ends_runs_unless_they_go_across_gaps(warehouse: Warehouse) -> None:
    query = "SELECT src, count(*) AS ct FROM M PATTERN [a{2,}] {} WHERE a.loss > 10 GROUP BY src"
    warehouse.apply(
        STREAM.format(key="")
        + f"CREATE VIEW Strict AS {query.replace('{} ', '')}; CREATE VIEW Loose AS {query.replace('{} ', 'ACROSS GAPS ')};"
        + f"CREATE VIEW Short AS {query.replace('{} ', 'ACROSS GAPS WITHIN 150 seconds ')};"
    )
    load_losses(warehouse, {0: [11], 1: [12], 3: [13], 4: [14, 15], 6: [3], 7: [20]}, 8)
    assert answers(warehouse, "Strict", "ct") == [(1, 2), (4, 3)]
    assert answers(warehouse, "Loose", "ct") == [(1, 2), (3, 3), (4, 5)]
    assert answers(warehouse, "Short", "ct") == [(1, 2), (3, 2), (4, 3)]


def test_parts_of_another_length_give_the_same_matches_at_common_ends_across_gaps(warehouse: Warehouse) -> None:
    query = (
        "SELECT src, count(*) AS ct, sum(b.loss) AS s, first(ts) AS since FROM M PATTERN [a, b+, c?] ACROSS GAPS "
        "WHERE a.loss > 3 AND b.loss > b[i-1].loss AND b[1].loss > a.loss AND c.loss < b.loss GROUP BY src"
    )
    warehouse.apply(
        STREAM.format(key="")
        + f"CREATE VIEW One AS {query}; CREATE VIEW Three AS {query} PARTITION LENGTH '3 minutes';"
        + f"CREATE VIEW Six AS {query} PARTITION LENGTH '6 minutes';"
    )
    losses: dict[int, list[int | None]] = {
        0: [4, 5, 7],
        2: [9, 2],
        3: [None, 5],
        5: [6, 8],
        8: [9, 1],
        9: [4],
        11: [5, 6],
    }
    load_losses(warehouse, losses, 12)

    def at_ends(view: str, length: int) -> set[tuple[Any, ...]]:
        rows = warehouse.query(f"SELECT PART_TIMESTAMP AS t, ct, s, since FROM {view}").collect()
        found = set()
        for row in rows:
            found.add((row.t + timedelta(minutes=length), row.ct, row.s, row.since))
        return found

    one, three, six = at_ends("One", 1), at_ends("Three", 3), at_ends("Six", 6)
    assert one
    # The last minute of every longer part has rows, so both are asked about the same last row.
    ends = {minute(number).replace(tzinfo=None) for number in (3, 6, 9, 12)}
    assert {row for row in one if row[0].replace(tzinfo=None) in ends} == three
    half = {minute(number).replace(tzinfo=None) for number in (6, 12)}
    assert {row for row in three if row[0].replace(tzinfo=None) in half} == six


def test_rows_of_a_view_are_in_the_order_of_their_parts_also_within_longer_parts(warehouse: Warehouse) -> None:
    query = (
        "SELECT src, a.loss AS x, b.loss AS y FROM P PATTERN [a, b] ACROSS GAPS WHERE a.loss > 0 AND b.loss > 0 "
        "GROUP BY src ORDER BY nr"
    )
    warehouse.apply(
        STREAM.format(key="")
        + "CREATE VIEW P AS SELECT src, second(ts) - 30 * (unix_timestamp(ts) % 120 div 60) AS nr, loss FROM M;"
        + f"CREATE VIEW One AS {query}; CREATE VIEW Two AS {query} PARTITION LENGTH 120;"
    )
    # The numbers of the second minute are -30 and -29: they begin anew in every part.
    load_losses(warehouse, {0: [1, 2], 1: [3, 4]}, 2)
    assert answers(warehouse, "One", "x, y") == [(0, 1, 2), (1, 3, 4)]
    assert answers(warehouse, "Two", "x, y") == [(0, 3, 4)]


def test_rows_alike_in_the_order_column_come_in_the_same_order_however_they_are_loaded(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM.format(key="").replace("M (", "A (")
        + STREAM.format(key="").replace("M (", "B (")
        + "".join(
            f"CREATE VIEW V{name} AS SELECT src, a.loss AS x, b.loss AS y FROM {name} PATTERN [a, b] "
            f"WHERE a.loss > 0 AND b.loss > 0 GROUP BY src; "
            for name in "AB"
        )
    )
    rows = [{"ts": minute(0), "src": "a", "dest": "b", "loss": loss} for loss in (3, 1, 2)]
    warehouse.load("A", rows, batch_id="one")
    for row in reversed(rows):
        warehouse.load("B", [row], batch_id=f"loss {row['loss']}")
    warehouse.refresh()
    assert answers(warehouse, "VA", "x, y") == answers(warehouse, "VB", "x, y") == [(0, 2, 3)]


def test_figures_have_the_types_that_spark_gives_them(warehouse: Warehouse) -> None:
    warehouse.apply(
        "CREATE STREAM T (ts TIMESTAMP ORDERED, `order` STRING, state INT, d DECIMAL(10,2), f FLOAT, `select` INT) "
        "PARTITION LENGTH 60;\n"
        "CREATE VIEW V AS SELECT state, count(d) AS c, sum(state) AS i, sum(d) AS d, avg(d) AS m, sum(f) AS f, avg(state) AS a, "
        "min(`order`) AS s, last(ts) AS t, max(`select`) AS `from` FROM T PATTERN [start, end*] "
        "WHERE start.state > 0 AND end.state > 0 AND end.`select` > start.`select` "
        "GROUP BY state;"
    )
    rows = [
        {"ts": minute(0, number), "order": word, "state": 2147483647, "d": value, "f": 0.5, "select": number}
        for number, (word, value) in enumerate([("x", Decimal("99999999.99")), ("b", None), ("c", Decimal("0.02"))])
    ]
    warehouse.load("T", rows, batch_id="rows")
    warehouse.refresh()
    row = warehouse.query("SELECT * FROM V").collect()[0]
    assert (row.c, row.i, row.d, row.m, row.f, row.a, row.s) == (
        2, 3 * 2147483647, Decimal("100000000.01"), Decimal("50000000.005000"), 1.5, 2147483647.0, "b",
    )  # fmt: skip
    types = dict(warehouse.query("SELECT * FROM V").dtypes)
    assert types == {
        "state": "int", "c": "bigint", "i": "bigint", "d": "decimal(20,2)", "m": "decimal(14,6)", "f": "double",
        "a": "double", "s": "string", "t": "timestamp", "from": "int",
    }  # fmt: skip


def test_a_pattern_over_a_view_and_a_view_over_a_pattern(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM.format(key="")
        + """
        CREATE VIEW Worst AS SELECT src, max(loss) AS loss, sum(CAST(loss AS DECIMAL(10,1))) AS total FROM M GROUP BY src;
        CREATE VIEW Bad AS SELECT src, count(*) AS ct, sum(a.loss) AS s, sum(CAST(total AS DECIMAL(20,1))) AS t FROM Worst
          PATTERN [a{2,}] WHERE a.loss > 10 GROUP BY src;
        CREATE VIEW Worse AS SELECT src, ct * 10 AS x FROM Bad;
        """
    )
    load_losses(warehouse, {0: [1, 11], 1: [12], 2: [13, 2], 3: [4]}, 4)
    assert answers(warehouse, "Bad", "ct, s, t") == [(1, 2, 23, Decimal("24.0")), (2, 3, 36, Decimal("39.0"))]
    assert answers(warehouse, "Worse", "x") == [(1, 20), (2, 30)]


def test_one_sequence_without_groups_and_a_row_filter(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM.format(key="")
        + "CREATE VIEW Whole AS SELECT count(*) AS ct, max(ts) AS t FROM M PATTERN [a+] WHERE a.loss > 10 AND M.loss <> 7;"
    )
    load_losses(warehouse, {0: [11, 7, 12], 1: [7], 3: [13], 4: [1]}, 5)
    # The 7s are not part of the sequence; in the second minute it has no row at all, and that ends its runs.
    assert answers(warehouse, "Whole", "ct") == [(0, 2), (3, 1)]


def test_what_spark_refuses_is_said_of_the_piece_that_a_person_wrote(warehouse: Warehouse) -> None:
    tables = (
        "CREATE STREAM S (ts TIMESTAMP ORDERED, src STRING, x INT, m MAP<STRING, INT>) PARTITION LENGTH 60;\n"
        "CREATE VIEW P AS SELECT ts, src, x, m, CAST(x AS DECIMAL(10, 2)) AS d FROM S;\n"
    )
    wrong = {
        (
            "count(*) AS n",
            "a.x > 1 AND b.x",
            "src",
        ): "b.x is a condition, but of the type INT; compare it with something.",
        ("sum(b.d) AS s", "b.x > 1", "src"): (
            "sum(b.d) AS s sums values of the type DECIMAL(10,2), which cannot be seen from the query; write it there, as in "
            "sum(CAST(x AS DECIMAL(10,2)))."
        ),
        ("max(ts) AS t, max(m) AS z", "b.x > 1", "src"): (
            "max(m) AS z has a MAP, which a run cannot remember; take the value out in a plain view first and read that."
        ),
        ("count(*) AS n", "b.x > 1", "m"): (
            "m has a MAP, which a run cannot remember; take the value out in a plain view first and read that."
        ),
    }
    for (select, where, group), sentence in wrong.items():
        with pytest.raises(DefinitionError) as caught:
            warehouse.apply(
                f"{tables}CREATE VIEW V AS SELECT {select} FROM P PATTERN [a, b+]\nWHERE {where}\nGROUP BY {group}"
            )
        assert str(caught.value).splitlines()[0].split(": ", 1)[1] == sentence
    assert warehouse.status() == []
