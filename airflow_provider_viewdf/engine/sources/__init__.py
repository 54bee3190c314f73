"""Reading what a load brings: CSV, JSON lines, Parquet or dicts become typed rows in staged Parquet files.

    files          which files a source names, and how each is read
    spark_types    Spark's type names as Arrow types
    texts          the texts that count as an integer, a boolean, a time, ...: the one place that says so
    values         one value at a time, exactly, with the reason if it does not fit
    columns        a column of texts at once, where that provably gives the same values
    layouts        the columns of a table, and rows on their way into it
    *_rows         one reader for each kind of source
    staging        the rows of all files, written with the part each belongs to
    digests        what a source is called, and a digest of what it holds

Each reader of text has two paths. The fast one hands a block of rows to Arrow and gives up if anything in it
is unusual; the exact one reads the same block row by row and finds the rows that do not fit.
"""

from __future__ import annotations

from airflow_provider_viewdf.engine.sources.digests import describe_source, digest_source
from airflow_provider_viewdf.engine.sources.files import Source
from airflow_provider_viewdf.engine.sources.staging import PART_COLUMN, StagedRows, stage_rows

__all__ = ["PART_COLUMN", "Source", "StagedRows", "describe_source", "digest_source", "stage_rows"]
