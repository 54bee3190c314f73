"""Whether Parquet files have the columns that their external stream declares.

Spark reads a column that a Parquet file lacks as NULL, without a word; a misspelt name must not become a column of NULLs. CSV
files are checked by Spark when it reads them (their header), and in JSON a field that is left out is NULL by custom.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.engine.external_files import ExternalFiles, FoundPart
from airflow_provider_viewdf.errors import ExternalFilesError
from airflow_provider_viewdf.versions import PartFile


def check_columns(definition: Definition, files: ExternalFiles, part: FoundPart, new: Sequence[PartFile]) -> None:
    """Refuse a new file of a part that lacks a declared column."""
    if definition.format != "parquet" or not new:
        return
    import pyarrow
    import pyarrow.parquet

    for file in new:
        place = f"{part.directory}/{file.name}"
        try:
            with files.open(part, file) as opened:
                names = {name.lower() for name in pyarrow.parquet.read_schema(opened).names}
        except pyarrow.ArrowInvalid:
            raise ExternalFilesError(
                f"{place} is not a Parquet file, as {definition.name} declares; nothing was registered."
            ) from None
        except FileNotFoundError:
            raise ExternalFilesError(f"{place} was gone before it could be registered; look again.") from None
        lacking = [column.name for column in definition.columns if column.name.lower() not in names]
        if lacking:
            raise ExternalFilesError(
                f"{place} does not fit {definition.name}: it has no column {' and no column '.join(lacking)}; "
                "nothing was registered."
            )
