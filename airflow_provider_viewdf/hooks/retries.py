"""Which errors Airflow is to try again, and which no retry can mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_viewdf.errors import DefinitionError, LanguageError, PartDateError, UnknownTableError


@contextmanager
def failing_for_good() -> Iterator[None]:
    """Around what depends on the script and the run alone: if these are wrong, they are so in the next try as well."""
    try:
        yield
    except UnknownTableError:
        raise  # somebody else may define it meanwhile
    except (LanguageError, DefinitionError, PartDateError) as error:
        raise AirflowFailException(str(error)) from error
