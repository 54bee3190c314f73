"""Run one SQL statement over part files, and write one part version.

The engine is handed a Spark session, classic or Spark Connect, and never asks which: it uses only what both can do.
Expressions are SQL text throughout, because that means the same in both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow_provider_viewdf.definitions import Column
from airflow_provider_viewdf.engine.digests import hash_row, name_type, quote_name, read_digest, sum_hashes
from airflow_provider_viewdf.engine.file_readers import (
    ExternalInput,
    escape_glob,
    prepare_reader,
    unlike_any_other,
    write_schema,
)
from airflow_provider_viewdf.engine.part_files import PartFiles
from airflow_provider_viewdf.engine.rounding import differ_only_by_rounding
from airflow_provider_viewdf.engine.sessions import configure_session
from airflow_provider_viewdf.engine.shared_files import group_shared
from airflow_provider_viewdf.engine.spark_errors import (
    condition_of,
    describe_damage,
    is_spark_error,
    parameters_of,
    translate,
    translated,
)
from airflow_provider_viewdf.errors import (
    DamagedPartError,
    MissingDimensionError,
    SparkUnavailableError,
    StepFailedError,
    UsageError,
)
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import ContentDigest

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from airflow_provider_viewdf.engine.dataframe_rows import StagedDataFrame

# Columns of ours in files: the part of a staged row, and the batch that brought a row of a stream.
PART_COLUMN = "__part"
BATCH_COLUMN = "__batch"

_HASH = "__hash"

# A file of fewer rows is read by a single task, whatever else it is cut into: it has one group of rows.
_ROWS_PER_FILE = 500_000

# From <table>/<index>/<version>/<file>, so that neither the names above nor their encoding in the URL matter.
# It is computed for every row, and a regular expression would take longer than all else.
_PART_OF_FILE = "CAST(substring_index(substring_index(_metadata.file_path, '/', -3), '/', 1) AS BIGINT)"

# More runs of parts than this become a list of their indexes: a long chain of ORs overflows the parser's stack.
_MOST_RANGES = 50

_locks: WeakKeyDictionary[SparkSession, threading.RLock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class InputTable:
    """A temporary view to be made over part files.

    `locations` are pairs of a part's index and its location in the warehouse; parts without rows are left out. Those of an
    external stream are the URLs of their directories, and `external` says how to read which files in them.
    """

    name: str
    columns: tuple[Column, ...]
    locations: tuple[tuple[int, str], ...]
    has_part_column: bool = False
    external: ExternalInput | None = None


@dataclass(frozen=True, slots=True)
class DimensionTable:
    """A temporary view to be made over files that are read as they are now."""

    name: str
    columns: tuple[Column, ...]
    location: str
    format: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamPart:
    """A part of a stream that a batch changes, and which rows its new version has."""

    index: int
    current_location: str
    has_other_rows: bool
    has_new_rows: bool


class Engine:
    """Spark, for one warehouse. `warehouse` is a path or a URL."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self.files = PartFiles(warehouse)
        self._spark = spark
        self._query_views: list[str] = []
        self._hashes: dict[tuple[Column, ...], str] = {}
        configure_session(spark)
        # Whole microseconds of UTC, which every reader of Parquet understands. Not an option of a single write.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        with _locks_lock:
            self._lock = _locks.setdefault(spark, threading.RLock())

    # What computing many parts at once (batch_writes.py) is made of.

    @property
    def spark(self) -> SparkSession:
        return self._spark

    def exclusively(self) -> AbstractContextManager[bool]:
        """Keep other threads off the session's temporary views and settings."""
        return self._lock

    def temporary_views(
        self, inputs: Sequence[InputTable], dimensions: Sequence[DimensionTable]
    ) -> AbstractContextManager[None]:
        return self._temporary_views((*inputs, *dimensions), self._read_table)

    def read_parts(self, columns: Sequence[Column], locations: Sequence[tuple[int, str]]) -> DataFrame:
        """The rows of parts, with the part of each in the column `__part`."""
        return self._read_files(columns, locations, part_column=PART_COLUMN)

    def read_directory(self, columns: Sequence[Column], location: str) -> DataFrame:
        """Every file below a location."""
        return self._read_parquet(columns, [location])

    def analyze(
        self, sql: str, inputs: Sequence[InputTable], dimensions: Sequence[DimensionTable]
    ) -> tuple[Column, ...]:
        """The columns that a statement yields, from Spark's analyzer. No file is read or looked for."""
        with (
            self._lock,
            self._temporary_views((*inputs, *dimensions), lambda table: self._empty(_columns_of(table))),
            translated(),
        ):
            schema = self._spark.sql(sql).schema
            return tuple(Column(field.name, name_type(field.dataType)) for field in schema.fields)

    def compute(
        self,
        sql: str,
        inputs: Sequence[InputTable],
        dimensions: Sequence[DimensionTable],
        columns: tuple[Column, ...],
        location: str,
    ) -> ContentDigest:
        """Write the rows of a statement, cast to `columns` by position, at a new location; nothing, if there are none.

        QueryRefusedError if Spark does not accept the statement, StepFailedError if it fails while it runs;
        either way nothing stays behind.
        """
        with (
            self._lock,
            self._temporary_views((*inputs, *dimensions), self._read_table),
            self.cleaning_up(location),
            translated(sql),
        ):
            digest = self._write(sql, columns, location)
        if digest.rows == 0:
            self.files.delete(location)
        return digest

    def query(self, sql: str, inputs: Sequence[InputTable], dimensions: Sequence[DimensionTable]) -> DataFrame:
        """The answer to a query, not yet computed. Its temporary views stay until `release`: actions may need them."""
        with self._lock:
            created: list[str] = []
            try:
                self._create_views((*inputs, *dimensions), self._read_table, created)
                with translated():
                    answer = self._spark.sql(sql)
                    _ = answer.schema  # Spark Connect would otherwise say only later what is wrong with the query
            except BaseException:
                self._drop_views(created)
                raise
            self._query_views += created
            return answer

    def add_rows(self, name: str, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> None:
        """Make rows of our own readable by queries under a name, until `release`."""
        with self._lock, translated():
            frame = self._spark.createDataFrame(list(rows), write_schema(columns)) if rows else self._empty(columns)
            frame.createOrReplaceTempView(name)
            self._query_views.append(name)

    def release(self) -> None:
        """Drop the temporary views of all queries; their DataFrames cannot be used any more."""
        with self._lock:
            views, self._query_views = self._query_views, []
            self._drop_views(views)

    def read_digest(self, table: InputTable) -> ContentDigest:
        """The digest of part files, from their rows."""
        with translated():
            rows = self._read_input(table)
            figures = rows.selectExpr(f"{hash_row(rows.schema)} AS {_HASH}").selectExpr(*sum_hashes(_HASH)).collect()
        return read_digest(figures[0].asDict())

    def digest_batches(self, columns: tuple[Column, ...], location: str) -> dict[str, ContentDigest]:
        """The digest of the rows that each batch brought into the files of a stream's part."""
        with translated():
            rows = self._read_parquet((*columns, Column(BATCH_COLUMN, "string")), [location])
            hashes = rows.selectExpr(BATCH_COLUMN, f"{hash_row(rows.drop(BATCH_COLUMN).schema)} AS {_HASH}")
            found = hashes.groupBy(BATCH_COLUMN).agg(*_columns_from(sum_hashes(_HASH))).collect()
        return {row[BATCH_COLUMN]: read_digest(row.asDict()) for row in found}

    def differences(
        self, stored: InputTable, recomputed: InputTable, columns: tuple[Column, ...], limit: int = 5
    ) -> tuple[list[str], list[str]]:
        """Rows, as JSON, that only the one has, and that only the other has. Twice here, once there is one.

        There are none if they differ by nothing but the last digits of floating-point numbers.
        """
        with translated():
            sides = [
                self._read_files(columns, table.locations).selectExpr("*", f"{number} AS __copies")
                for table, number in ((stored, 1), (recomputed, -1))
            ]
            names = ", ".join(quote_name(column.name) for column in columns)
            both = sides[0].unionAll(sides[1])
            schema = both.drop("__copies").schema
            counted = (
                both.selectExpr(
                    f"{hash_row(schema)} AS {_HASH}",
                    f"to_json(struct({names}), map('ignoreNullFields', 'false')) AS __row",
                    "__copies",
                )
                .groupBy(_HASH)
                .agg({"__copies": "sum", "__row": "min"})
                .toDF(_HASH, "__copies", "__row")
            )
            found = [
                counted.where(condition).orderBy("__row").limit(limit).selectExpr("__row", "abs(__copies)").collect()
                for condition in ("__copies > 0", "__copies < 0")
            ]
            if any(found) and differ_only_by_rounding(sides[0], sides[1], columns):
                return [], []
        only_stored, only_recomputed = ([row[0] for row in rows for _ in range(row[1])][:limit] for rows in found)
        return only_stored, only_recomputed

    def summarize_staging(self, staging_location: str, columns: tuple[Column, ...]) -> dict[int, ContentDigest]:
        """The digest of the staged rows of each part."""
        with translated():
            rows = self.read_staging(staging_location, columns)
            schema = rows.drop(PART_COLUMN).schema
            hashes = rows.selectExpr(PART_COLUMN, f"{hash_row(schema)} AS {_HASH}")
            found = hashes.groupBy(PART_COLUMN).agg(*_columns_from(sum_hashes(_HASH))).collect()
        return {row[PART_COLUMN]: read_digest(row.asDict()) for row in found}

    def read_staged_rows(
        self, staging_location: str, columns: tuple[Column, ...], parts: PartSet
    ) -> list[tuple[int, str]]:
        """The staged rows of these parts, as JSON, each with its part; in an order that is always the same."""
        with translated():
            rows = self.read_staging(staging_location, columns).where(_among(parts))
            found = (
                rows.selectExpr(PART_COLUMN, f"{write_json(columns)} AS __row").orderBy(PART_COLUMN, "__row").collect()
            )
        return [(row[0], row[1]) for row in found]

    def write_stream_parts(
        self,
        staging_location: str | None,
        batch_id: str,
        columns: tuple[Column, ...],
        parts: Sequence[StreamPart],
        out_location: str,
    ) -> None:
        """Write new contents of parts of a stream, each below `<out_location>/__part=<index>`.

        A part then has the staged rows, marked with the batch, and those rows of its current version that other
        batches brought. Parts that have neither get no directory.
        """
        new = PartSet.of_indexes(part.index for part in parts if part.has_new_rows)
        old = tuple((part.index, part.current_location) for part in parts if part.has_other_rows)
        if not old and (staging_location is None or not new):
            return
        names = [quote_name(column.name) for column in columns]
        batch = quote_text(batch_id)
        sources: list[DataFrame] = []
        with translated():
            if staging_location is not None and new:
                staged = self.read_staging(staging_location, columns).where(_among(new))
                sources.append(staged.selectExpr(*names, f"{batch} AS {BATCH_COLUMN}", PART_COLUMN))
            if old:
                present = self._read_files((*columns, Column(BATCH_COLUMN, "string")), old, part_column=PART_COLUMN)
                sources.append(present.where(f"NOT {BATCH_COLUMN} <=> {batch}"))
            rows = sources[0] if len(sources) == 1 else sources[0].unionAll(sources[1])
        with self.cleaning_up(out_location), translated():
            writer = rows.repartition(PART_COLUMN).write.option("maxRecordsPerFile", _ROWS_PER_FILE)
            self.save(writer.partitionBy(PART_COLUMN), out_location)

    def stage_dataframe(
        self, df: DataFrame, columns: tuple[Column, ...], ordered: str, length_seconds: int, staging_location: str
    ) -> StagedDataFrame:
        """Write the rows of someone's DataFrame that fit `columns`, with their parts; return those that do not."""
        from airflow_provider_viewdf.engine.dataframe_rows import collect_misfits, observe_misfits, prepare_rows

        with translated():
            prepared = prepare_rows(df, columns, ordered, length_seconds)
            observed, observation = observe_misfits(prepared)
        with self.cleaning_up(staging_location), translated():
            self.save(observed.write, staging_location)
            staged = collect_misfits(prepared, observation)
        if staged.rows == 0:
            self.files.delete(staging_location)
        return staged

    def _write(self, sql: str, columns: tuple[Column, ...], location: str) -> ContentDigest:
        from pyspark.sql import Observation

        observation = Observation()
        # The hash is a column for a moment, so that it is computed once, in generated code.
        hashed = self._select(sql, columns, f"{self._hash_row(columns)} AS {_HASH}")
        names = [quote_name(column.name) for column in columns]
        # Nothing but a choice of columns may stand above: what the optimizer removes is never observed.
        observed = hashed.observe(observation, *_columns_from(sum_hashes(_HASH))).selectExpr(*names)
        self.save(observed.write, location)
        return read_digest(observation.get)

    def save(self, writer: DataFrameWriter, location: str) -> None:
        """Write files at a location where nothing is: whoever calls this is `cleaning_up`."""
        self.files.make_room(location)
        writer.mode("append").option(*_NO_SUCCESS_FILE).parquet(self.files.url(location))

    def _select(self, sql: str, columns: Sequence[Column], *more: str) -> DataFrame:
        """The rows of a statement, cast to `columns` by position, and more. One text, since Spark analyzes each step anew."""
        places = [f"__{number}" for number in range(len(columns))]
        casts = ", ".join(
            f"CAST({place} AS {column.type}) AS {quote_name(column.name)}"
            for place, column in zip(places, columns, strict=True)
        )
        rows = f"SELECT {casts} FROM (\n{sql}\n) AS __rows({', '.join(places)})"
        return self._spark.sql(f"SELECT {', '.join(['*', *more])} FROM ({rows})" if more else rows)

    def _hash_row(self, columns: tuple[Column, ...]) -> str:
        if columns not in self._hashes:
            self._hashes[columns] = hash_row(self._empty(columns).schema)
        return self._hashes[columns]

    @contextmanager
    def cleaning_up(self, location: str) -> Iterator[None]:
        """Remove what was half written at a new location; but never what somebody else has already there."""
        if self.files.exists(location):
            raise UsageError(f"There is something at {location} already; a version is written to a new place.")
        try:
            yield
        except BaseException:
            with suppress(Exception):  # a failed clean-up must not hide what went wrong; gc finds the files
                self.files.delete(location)
            raise

    def _read_table(self, table: InputTable | DimensionTable) -> DataFrame:
        return self._read_input(table) if isinstance(table, InputTable) else self._read_dimension(table)

    @contextmanager
    def _named_if_missing(self, table: InputTable | DimensionTable) -> Iterator[None]:
        """Classic Spark looks for the files when it is told of them, Spark Connect when a view is made of them."""
        try:
            yield
        except Exception as error:
            if not is_spark_error(error):
                raise
            if condition_of(error) != "PATH_NOT_FOUND":
                raise translate(error) from error
            if isinstance(table, DimensionTable):
                raise MissingDimensionError(
                    f"The dimension table {table.name} has no files at {self.files.resolve(table.location)}: "
                    "put them there, or correct its LOCATION."
                ) from None
            if table.external is not None:
                path = parameters_of(error).get("path", "files")
                raise StepFailedError(table.external.explain_missing(path)) from None
            raise translate(error) from None

    def _read_input(self, table: InputTable) -> DataFrame:
        if not table.locations:
            return self._empty(_columns_of(table))
        if table.external is not None:
            return table.external.read(self._spark, table.columns, "PART" if table.has_part_column else "")
        return self._read_files(table.columns, table.locations, part_column="PART" if table.has_part_column else "")

    def _read_files(
        self, columns: Sequence[Column], locations: Sequence[tuple[int, str]], part_column: str = ""
    ) -> DataFrame:
        if not locations:
            return self._empty([*columns, *([Column(part_column, "bigint")] if part_column else [])])
        own = [location for _, location in locations if "#" not in location]
        shared = group_shared(locations)
        for location in [*own, *(directory for directories, _ in shared for directory in directories)]:
            if not self.files.has_files(location):
                # To Spark, an empty directory is a part without rows.
                raise DamagedPartError(describe_damage(location, "is not there"))
        frames = []
        if own:
            rows = self._read_parquet(columns, own)
            frames.append(rows.selectExpr("*", f"{_PART_OF_FILE} AS {part_column}") if part_column else rows)
        for directories, parts in shared:
            # Sorted by part and with statistics of it: rows of other parts are passed over without being read.
            rolled = self._read_parquet([*columns, Column(PART_COLUMN, "bigint")], directories).where(_among(parts))
            names = [quote_name(column.name) for column in columns]
            frames.append(rolled.selectExpr(*names, *([f"{PART_COLUMN} AS {part_column}"] if part_column else [])))
        return reduce(lambda left, right: left.unionAll(right), frames)

    def read_staging(self, location: str, columns: Sequence[Column]) -> DataFrame:
        """The rows of a batch on their way in, with the part of each in the column `__part`."""
        return self._read_parquet([*columns, Column(PART_COLUMN, "bigint")], [location])

    def _read_parquet(self, columns: Sequence[Column], locations: Sequence[str]) -> DataFrame:
        # A recursive read takes no directory name such as __part=5 for a column.
        reader = self._spark.read.schema(write_schema(columns)).options(
            **unlike_any_other(), recursiveFileLookup="true"
        )
        return reader.parquet(*(escape_glob(self.files.url(location)) for location in locations))

    def _read_dimension(self, dimension: DimensionTable) -> DataFrame:
        reader = prepare_reader(self._spark, dimension.columns, dimension.format, dimension.options)
        return reader.load(self.files.resolve(dimension.location))

    def _empty(self, columns: Sequence[Column]) -> DataFrame:
        nulls = [f"CAST(NULL AS {column.type}) AS {quote_name(column.name)}" for column in columns]
        return self._spark.range(0).selectExpr(*nulls)

    @contextmanager
    def _temporary_views(
        self, tables: Sequence[InputTable | DimensionTable], read: Callable[[InputTable | DimensionTable], DataFrame]
    ) -> Iterator[None]:
        created: list[str] = []
        try:
            self._create_views(tables, read, created)
            yield
        except SparkUnavailableError:
            created.clear()  # they are gone with it, and asking would only take time
            raise
        finally:
            self._drop_views(created)

    def _create_views(
        self,
        tables: Sequence[InputTable | DimensionTable],
        read: Callable[[InputTable | DimensionTable], DataFrame],
        created: list[str],
    ) -> None:
        for table in tables:
            with self._named_if_missing(table):
                self._create_view(table.name, read(table))
            created.append(table.name)

    def _create_view(self, name: str, rows: DataFrame) -> None:
        try:
            # Not createOrReplaceTempView: the session may be a person's, with views of their own.
            rows.createTempView(name)
        except Exception as error:
            if not is_spark_error(error) or condition_of(error) != "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS":
                raise
            raise StepFailedError(
                f"The Spark session already has a temporary view with the name {name}: drop it, or use another session."
            ) from None

    def _drop_views(self, names: Sequence[str]) -> None:
        for name in names:
            with suppress(Exception):  # the session may be gone, and its views with it
                self._spark.catalog.dropTempView(name)


_JSON_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_NO_SUCCESS_FILE = ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")


def write_json(columns: Sequence[Column]) -> str:
    """An expression for a row as JSON, from which it can be loaded again."""
    names = ", ".join(quote_name(column.name) for column in columns)
    # By default, to_json cuts times to milliseconds.
    options = f"'ignoreNullFields', 'false', 'timestampFormat', {quote_text(_JSON_TIME)}"
    return f"to_json(struct({names}), map({options}))"


def quote_text(text: str) -> str:
    """A text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _columns_of(table: InputTable | DimensionTable) -> tuple[Column, ...]:
    if isinstance(table, InputTable) and table.has_part_column:
        return (*table.columns, Column("PART", "bigint"))
    return table.columns


def _columns_from(expressions: Sequence[str]) -> list[SparkColumn]:
    from pyspark.sql import functions

    return [functions.expr(expression) for expression in expressions]


def _among(parts: PartSet) -> str:
    """A condition on `__part`."""
    if len(parts.ranges) <= _MOST_RANGES:
        return " OR ".join(f"{PART_COLUMN} BETWEEN {item.low} AND {item.high}" for item in parts.ranges)
    return f"{PART_COLUMN} IN ({', '.join(map(str, parts))})"
