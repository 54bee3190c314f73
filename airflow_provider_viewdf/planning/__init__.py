"""Planning: which parts have to be computed, by which rule, in which order, and why. Pure: it reads a snapshot."""

from airflow_provider_viewdf.planning.agenda import Agenda, Step
from airflow_provider_viewdf.planning.ahead import find_computable
from airflow_provider_viewdf.planning.asked import ask_between, ask_for_everything, ask_for_stale
from airflow_provider_viewdf.planning.bounds import Bounds
from airflow_provider_viewdf.planning.plan import Plan, explain, plan_refresh
from airflow_provider_viewdf.planning.snapshot import Snapshot

__all__ = [
    "Agenda",
    "Bounds",
    "Plan",
    "Snapshot",
    "Step",
    "ask_between",
    "ask_for_everything",
    "ask_for_stale",
    "explain",
    "find_computable",
    "plan_refresh",
]
