"""Window queries that are refused: the whole sentence, and the place, which is marked by « and »."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language import parse_script

STREAMS = """CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT, part_loss DOUBLE) PARTITION LENGTH 60;
CREATE TABLE city (src STRING, name STRING) LOCATION 'c' FORMAT csv;
CREATE VIEW P AS SELECT src, loss FROM M;
"""

CASES = {
    "no multiple": (
        "SELECT sum(loss) FROM M [WINDOW «90 seconds»]",
        "A window of 90 seconds is no multiple of 1 minute, the length of M; the nearest are 1 minute or 2 minutes.",
    ),
    "too short": (
        "SELECT sum(loss) FROM M [WINDOW «30 seconds»]",
        "A window of 30 seconds is no multiple of 1 minute, the length of M; the nearest is 1 minute.",
    ),
    "slide is no multiple": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes SLIDE «150 seconds»]",
        "A slide of 150 seconds is no multiple of 1 minute, the length of M; the nearest are 2 minutes or 3 minutes.",
    ),
    "partition length is no multiple": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes] PARTITION LENGTH «90»",
        "A partition length of 90 seconds is no multiple of 1 minute, the length of M; "
        "the nearest are 1 minute or 2 minutes.",
    ),
    "slide and another length": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes SLIDE 5 minutes] PARTITION LENGTH «60»",
        "The view slides by 5 minutes, so that is the length of its parts; leave PARTITION LENGTH out.",
    ),
    "no length": (
        "SELECT sum(loss) FROM M [«WINDOW»]",
        "A length of time is missing after WINDOW; write WINDOW 5 minutes.",
    ),
    "no time": (
        "SELECT sum(loss) FROM M [WINDOW «10 rows»]",
        "'10 rows' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
    ),
    "nothing": (
        "SELECT sum(loss) FROM M [WINDOW «0 minutes»]",
        "A WINDOW must be at least one second long.",
    ),
    "twice partial": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes PARTIAL «PARTIAL»]",
        "PARTIAL is not expected here; write [WINDOW 60 minutes], [WINDOW 60 minutes PARTIAL] or "
        "[WINDOW 60 minutes SLIDE 5 minutes].",
    ),
    "two windows": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes], P «[»WINDOW 10 minutes]",
        "A view has one window; write a view for each, and join these.",
    ),
    "join": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes] «JOIN P ON true»",
        "A window slides over one table; write a view that joins the tables first, and let the window slide over that.",
    ),
    "subquery": (
        "SELECT sum(loss) FROM (SELECT loss FROM «M» [WINDOW 10 minutes])",
        "A window stands behind the one table that the view reads: SELECT ... FROM S [WINDOW 60 minutes] GROUP BY ...; "
        "for anything between them, write a view first and let the window slide over that.",
    ),
    "dimension": (
        "SELECT count(*) FROM «city» [WINDOW 10 minutes]",
        "city is a dimension table, which has no parts, so no window can slide over it.",
    ),
    "unknown aggregate": (
        "SELECT src, «frobnicate(loss)» FROM M [WINDOW 10 minutes] GROUP BY src",
        "frobnicate is no aggregate that a window can have; there are any, approx_count_distinct, approx_percentile, avg, "
        "bit_and, bit_or, bit_xor, bool_and, bool_or, collect_set, corr, count, count_if, covar_pop, covar_samp, every, "
        "first, first_value, kurtosis, last, last_value, max, max_by, median, min, min_by, percentile, percentile_cont, "
        "percentile_disc, regr_avgx, regr_avgy, regr_count, regr_intercept, regr_r2, regr_slope, regr_sxx, regr_sxy, "
        "regr_syy, skewness, some, stddev, stddev_pop, stddev_samp, sum, var_pop, var_samp, variance.",
    ),
    "order dependent aggregate": (
        "SELECT src, «collect_list(loss)» FROM M [WINDOW 10 minutes] GROUP BY src",
        "collect_list depends on the order in which rows are read, which nothing determines; use collect_set.",
    ),
    "order dependent aggregate of several groupings": (
        "SELECT src, «any_value(loss)» FROM M [WINDOW 10 minutes] GROUP BY ROLLUP(src)",
        "any_value depends on the order in which rows are read, which nothing determines; use min, or first.",
    ),
    "column that is not grouped": (
        "SELECT src, «loss» FROM M [WINDOW 10 minutes] GROUP BY src",
        "loss is neither in GROUP BY nor inside an aggregate; put it into one of the two.",
    ),
    "star": (
        "SELECT «*» FROM M [WINDOW 10 minutes]",
        "A window query names its columns one by one; * is none of them.",
    ),
    "aggregate of an aggregate": (
        "SELECT «sum(max(loss))» FROM M [WINDOW 10 minutes]",
        "sum cannot contain another aggregate, max.",
    ),
    "group by an aggregate": (
        "SELECT src FROM M [WINDOW 10 minutes] GROUP BY «sum(loss)»",
        "GROUP BY cannot contain the aggregate sum.",
    ),
    "group by a number": (
        "SELECT src FROM M [WINDOW 10 minutes] GROUP BY 3",
        "GROUP BY 3 names no column; there are 1.",
    ),
    "first of a view": (
        "SELECT src, «first(loss)» FROM P [WINDOW 10 minutes] GROUP BY src",
        "P has no ORDERED column, so its rows have no first and no last; use min_by(value, column) to say what they are "
        "ordered by.",
    ),
    "too few arguments": (
        "SELECT «min_by(loss)» FROM M [WINDOW 10 minutes]",
        "min_by needs two arguments.",
    ),
    "too many arguments": (
        "SELECT «sum(loss, part_loss)» FROM M [WINDOW 10 minutes]",
        "sum needs one argument.",
    ),
    "as many least values as one likes": (
        "SELECT «min_by(loss, ts, 3)» FROM M [WINDOW 10 minutes]",
        "min_by needs two arguments.",
    ),
    "percentage of each row": (
        "SELECT approx_percentile(loss, «part_loss») FROM M [WINDOW 10 minutes]",
        "The percentage is the same for all rows, so it cannot be part_loss; write a number.",
    ),
    "more than all": (
        "SELECT approx_percentile(loss, «array(0.5, 1.5)») FROM M [WINDOW 10 minutes]",
        "array(0.5, 1.5) is no percentage; write a number from 0 to 1.",
    ),
    "subscript": (
        "SELECT sum(loss) FROM «M[j]» [WINDOW 10 minutes]",
        "The window says which parts of M are read, so a subscript has no place here; leave it out.",
    ),
    "setting twice": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes] WITH (strategy = 'merge', «strategy» = 'delta')",
        "strategy is given twice.",
    ),
    "chance": (
        "SELECT src, sum(loss * «rand()») FROM M [WINDOW 10 minutes] GROUP BY src",
        "rand() cannot be used in the view V: its value is not determined by what the view reads.",
    ),
    "reserved name": (
        "SELECT src, «sum»(loss) AS part FROM M [WINDOW 10 minutes] GROUP BY src",
        "A column of the view V cannot be called part; give it another name with AS.",
    ),
    "unknown setting": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes] WITH («speed» = 'fast')",
        "WITH knows strategy only, not speed.",
    ),
    "unknown strategy": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes] WITH (strategy = «'fast'»)",
        "There is no strategy fast; use delta, dyadic, merge, prefix or recompute.",
    ),
    "strategy that cannot": (
        "SELECT sum(loss), sum(part_loss) FROM M [WINDOW 10 minutes] WITH (strategy = «'delta'»)",
        "The strategy delta cannot compute V: sum(part_loss) cannot be subtracted; use dyadic or merge or recompute.",
    ),
    "strategy for a median": (
        "SELECT median(loss) FROM M [WINDOW 10 minutes] WITH (strategy = «'merge'»)",
        "The strategy merge cannot compute V: median needs all rows of the window; use recompute.",
    ),
    "settings of a view without a window": (
        "SELECT loss FROM M WITH («strategy» = 'merge')",
        "WITH (...) chooses how a [WINDOW ...] is computed, and the query of V has none; leave it out.",
    ),
    "retain": (
        "SELECT sum(loss) FROM M [WINDOW 10 minutes] RETAIN «'soon'»",
        "'soon' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
    ),
    "nothing to slide": (
        "«SELECT 1 AS one FROM M» [WINDOW 10 minutes]",
        "A window query has aggregates or GROUP BY; without them there is nothing to slide.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_window_is_refused_with_one_sentence_and_the_place(name: str) -> None:
    query, message = CASES[name]
    marked = f"{STREAMS}CREATE VIEW V AS {query}"
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(LanguageError) as caught:
        parse_script(text)
    assert caught.value.reason == message
    if "«" in marked:
        start = marked.index("«")
        assert (caught.value.start, caught.value.end) == (start, marked.index("»") - 1)
