"""The rows of a DataFrame that somebody loads into a table: cast to its columns, those that do not fit told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_viewdf.definitions import Column, fold
from airflow_provider_viewdf.engine.digests import name_type, quote_name
from airflow_provider_viewdf.errors import LoadError
from airflow_provider_viewdf.parts import EPOCH
from airflow_provider_viewdf.versions import RejectedRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from pyspark.sql.types import DataType

SOURCE = "DataFrame"
MOST_REJECTED = 1000

_LONGEST_ROW = 1000
_REASON = "__reason"


@dataclass(frozen=True, slots=True)
class StagedDataFrame:
    """What was staged, how far in time it reaches, and the rows that do not fit: a thousand, and their number."""

    rows: int
    first: datetime | None
    last: datetime | None
    rejected: tuple[RejectedRow, ...]
    rejected_rows: int


@dataclass(frozen=True, slots=True)
class PreparedRows:
    """A DataFrame's columns as they came (`__o0`, ...), cast (`__v0`, ...), and why a row does not fit (`__reason`)."""

    rows: DataFrame
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    ordered: str
    length_seconds: int


def prepare_rows(df: DataFrame, columns: tuple[Column, ...], ordered: str, length_seconds: int) -> PreparedRows:
    """LoadError if the columns of the DataFrame are not those of the table, or cannot be cast to them at all."""
    positions = match_columns(df.columns, columns)
    names = tuple(df.columns[position] for position in positions)
    came = df.toDF(*(f"__o{number}" for number in range(len(df.columns))))
    came = came.selectExpr(*(f"__o{position} AS __c{number}" for number, position in enumerate(positions)))
    came = came.toDF(*(f"__o{number}" for number in range(len(columns))))
    declared = df.sparkSession.range(0).selectExpr(*(f"CAST(NULL AS {column.type})" for column in columns)).schema
    # Never true, but the optimizer does not know. Where it can tell that every row is a misfit, it would drop the rows
    # before they are counted.
    misfits = ["WHEN spark_partition_id() < 0 THEN NULL"]
    casts = []
    for number, (column, given, wanted) in enumerate(zip(columns, came.schema.fields, declared.fields, strict=True)):
        value, is_misfit = _cast_exactly(came, f"__o{number}", column, given.dataType, wanted.dataType)
        casts.append(f"{value} AS __v{number}")
        if is_misfit:
            text = f"coalesce(CAST(__o{number} AS STRING), 'the value')" if _is_plain(given.dataType) else "'the value'"
            reason = f"concat('column {column.name}: ', {text}, ' does not fit {column.type}')"
            misfits.append(f"WHEN {is_misfit.format(old=f'__o{number}', new=f'__v{number}')} THEN {reason}")
    time = next(f"__v{number}" for number, column in enumerate(columns) if fold(column.name) == fold(ordered))
    misfits.append(f"WHEN {time} IS NULL THEN 'column {ordered}: no event time'")
    misfits.append(
        f"WHEN year({time}) NOT BETWEEN 1 AND 9999 THEN 'column {ordered}: the time is outside the years 1 to 9999'"
    )
    judged = came.selectExpr("*", *casts).selectExpr("*", f"CASE {' '.join(misfits)} END AS {_REASON}")
    return PreparedRows(judged, columns, names, time, length_seconds)


def observe_misfits(prepared: PreparedRows) -> tuple[DataFrame, Observation]:
    """The rows that fit, with their part, and a count of both kinds that is there once they have been written."""
    from pyspark.sql import Observation, functions

    observation = Observation()
    micros = f"CASE WHEN {_REASON} IS NULL THEN unix_micros({prepared.ordered}) END"
    figures = [f"count_if({_REASON} IS NULL) AS fitting", f"count_if({_REASON} IS NOT NULL) AS rejected"]
    figures += [f"min({micros}) AS first", f"max({micros}) AS last"]
    observed = prepared.rows.observe(observation, *(functions.expr(figure) for figure in figures))
    values = [f"__v{number} AS {quote_name(column.name)}" for number, column in enumerate(prepared.columns)]
    part = part_of_time(prepared.ordered, prepared.length_seconds)
    return observed.where(f"{_REASON} IS NULL").selectExpr(*values, f"{part} AS __part"), observation


def collect_misfits(prepared: PreparedRows, observation: Observation) -> StagedDataFrame:
    figures = observation.get
    rejected: tuple[RejectedRow, ...] = ()
    if figures["rejected"]:
        values = ", ".join(f"__o{number} AS {quote_name(name)}" for number, name in enumerate(prepared.names))
        text = f"left(to_json(struct({values}), map('ignoreNullFields', 'false')), {_LONGEST_ROW})"
        found = prepared.rows.where(f"{_REASON} IS NOT NULL").limit(MOST_REJECTED).selectExpr(_REASON, text).collect()
        rejected = tuple(RejectedRow(SOURCE, 0, row[0], row[1]) for row in found)
    return StagedDataFrame(
        figures["fitting"], _time(figures["first"]), _time(figures["last"]), rejected, figures["rejected"]
    )


def part_of_time(time: str, length_seconds: int) -> str:
    """An expression for the part of a time: rounded down, also before 1970, where `div` rounds up."""
    micros, length = f"unix_micros({time})", f"{length_seconds * 1_000_000}L"
    return f"({micros} - pmod({micros}, {length})) div {length}"


def match_columns(names: Sequence[str], columns: Sequence[Column]) -> list[int]:
    """The position of each column among the names, without regard to case."""
    folded = [fold(name) for name in names]
    declared = ", ".join(column.name for column in columns)
    wanted = {fold(column.name) for column in columns}
    repeated = [name for name in dict.fromkeys(names) if folded.count(fold(name)) > 1]
    if repeated:
        raise LoadError(f"{SOURCE}: the column {repeated[0]} is there twice; name it once.")
    extra = [name for name in names if fold(name) not in wanted]
    if extra:
        raise LoadError(
            f"{SOURCE}: {_enumerate(extra)} not among the columns of the table, which are {declared}; "
            "drop what is too much."
        )
    missing = [column.name for column in columns if fold(column.name) not in folded]
    if missing:
        raise LoadError(f"{SOURCE}: {_enumerate(missing)} missing; add what is missing, as NULLs if there is nothing.")
    return [folded.index(fold(column.name)) for column in columns]


def _enumerate(names: Sequence[str]) -> str:
    return f"the column {names[0]} is" if len(names) == 1 else f"the columns {', '.join(names)} are"


def _cast_exactly(rows: DataFrame, old: str, column: Column, given: DataType, wanted: DataType) -> tuple[str, str]:
    """The cast of a column, and a condition on {old} and {new} that holds where it loses something ("": nowhere)."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import DecimalType, DoubleType, FloatType, StringType

    if name_type(given) == name_type(wanted):
        return old, ""
    cast = f"try_cast({old} AS {column.type})"
    back = f"try_cast({cast} AS {name_type(given)})"
    try:
        if _has_map(given):
            raise LoadError(_refuse_cast(column, given))
        _ = rows.selectExpr(cast, *([] if isinstance(given, StringType) else [back])).schema
    except AnalysisException:
        raise LoadError(_refuse_cast(column, given)) from None
    if isinstance(given, StringType):
        lost = "{old} IS NOT NULL AND {new} IS NULL"
        if isinstance(wanted, DecimalType):
            # A text with more digits than the column has would be rounded.
            scale = min(38 - (wanted.precision - wanted.scale), wanted.scale + 10)
            exact = f"decimal(38,{scale})"
            lost += f" OR NOT try_cast({{old}} AS {exact}) <=> CAST({{new}} AS {exact})"
        return cast, lost
    if isinstance(given, DoubleType) and isinstance(wanted, FloatType):
        # Rounding is what such a column is for; becoming infinite is not.
        return cast, "abs({new}) = CAST('Infinity' AS FLOAT) AND abs({old}) <> CAST('Infinity' AS DOUBLE)"
    return cast, f"NOT try_cast({{new}} AS {name_type(given)}) <=> {{old}}"


def _refuse_cast(column: Column, given: DataType) -> str:
    return (
        f"{SOURCE}: the column {column.name} is {name_type(given)}, which cannot become {column.type}; cast it first."
    )


def _has_map(type: DataType) -> bool:
    return "map<" in name_type(type)


def _is_plain(type: DataType) -> bool:
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

    return not isinstance(type, (ArrayType, BinaryType, MapType, StructType))


def _time(micros: Any) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
