"""What UNIQUE asks of a stream: no two rows of a part are alike in these columns. Checked in what a load has written."""

from __future__ import annotations

import json

from airflow_provider_viewdf.actions.workbench import Workbench
from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.engine.repeated_rows import RepeatedRows, find_repeated, take_out_repeated
from airflow_provider_viewdf.errors import RejectedRowsError
from airflow_provider_viewdf.versions import RejectedRow

SHOWN = 5


def check_unique(bench: Workbench, definition: Definition, written: str) -> RejectedRowsError | None:
    """What is wrong with the rows that a load has written, below `__part=<index>` for each part."""
    found, count = find_repeated(bench.open_engine(), definition.columns, definition.unique, written, SHOWN)
    if not found:
        return None
    shown = "; ".join(_describe(definition, item) for item in found)
    more = f"; and {count - len(found)} more" if count > len(found) else ""
    return RejectedRowsError(
        f"{definition.name} has UNIQUE ({', '.join(definition.unique)}), but {shown}{more}. Nothing was loaded; correct the "
        'rows, or load with on_error="quarantine" to set aside those of this batch.',
        tuple(found),
    )


def set_repeated_aside(
    bench: Workbench, definition: Definition, written: str, staging: str, source: str, kept: str
) -> tuple[RejectedRow, ...]:
    """The rows of a batch that are alike with each other or with rows of other batches, all of them: nobody can say which
    is the right one. The rest of the batch is at `kept` then."""
    found = take_out_repeated(bench.open_engine(), definition.columns, definition.unique, written, staging, kept)
    names = ", ".join(definition.unique)
    return tuple(
        RejectedRow(source, 0, f"another row of {definition.describe_part(index)} has the same {names}", row)
        for index, row in found
    )


def _describe(definition: Definition, item: RepeatedRows) -> str:
    values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in json.loads(item.values).items())
    return f"{item.rows} rows of {definition.describe_part(item.index)} have {values}"
