"""What a task makes of its script: which view is meant, and what its SQL is for one part. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.errors import MissingPartError, UnknownTableError, UsageError
from airflow_provider_viewdf.hooks.runs import RunSpan
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import ApplyPreview, PartsSetAside, StepReport


class Logger(Protocol):
    """Airflow's logger of a task, or Python's own."""

    def info(self, message: str, /, *arguments: Any) -> Any: ...


def choose_view(definitions: Sequence[Definition], view: str | None, task_id: str) -> Definition:
    """The view of a task: the one it names, the one named like the task, or the only one the person wrote."""
    views = [item for item in definitions if item.kind == "view"]
    named = {fold(item.name): item for item in views}
    if view is not None:
        if fold(view) in named:
            return named[fold(view)]
        raise UsageError(f"Task {task_id} is to refresh {view}, but the script has no such view; {_list_views(views)}.")
    label = fold(task_id.rpartition(".")[2])
    if label in named:
        return named[label]
    written = [item for item in views if not item.helper_of]
    if len(written) == 1:
        return written[0]
    raise UsageError(
        f"It is not clear which view task {task_id} is to refresh; {_list_views(written)}. "
        "Name the task like the view, or give view=..."
    )


def find_definition(definitions: Iterable[Definition], name: str) -> Definition | None:
    return next((item for item in definitions if fold(item.name) == fold(name)), None)


def require_definition(definitions: Iterable[Definition], name: str) -> Definition:
    definition = find_definition(definitions, name)
    if definition is None:
        raise UnknownTableError(f"{name} is not defined yet; give sql=... with its definition, or apply it beforehand.")
    return definition


def resolve_sql(view: Definition, definitions: Mapping[str, Definition], span: RunSpan, offset: int = 0) -> str:
    """The Spark SQL of the run's newest part, by UPDATE and, where that is another statement, by INITIALIZE.

    Views that were generated for the view come first, as they are computed first.
    """
    generated = [item for item in definitions.values() if fold(view.name) in {fold(owner) for owner in item.owners}]
    return "\n\n".join(
        section for item in (*generated, view) for section in _resolve_rules(item, definitions, span, offset)
    )


def _resolve_rules(
    view: Definition, definitions: Mapping[str, Definition], span: RunSpan, offset: int
) -> Iterable[str]:
    from airflow_provider_viewdf.compiler import compile_part

    index, remark = find_shown_part(view, span, offset)
    seen: set[str] = set()
    rules: tuple[Rule, ...] = ("update", "initialize")
    for rule in rules:
        sql = compile_part(view, rule, index, definitions).sql
        if sql not in seen:
            seen.add(sql)
            yield f"-- {view.describe_part(index)}, {rule.upper()}{remark}\n{sql}"


def find_shown_part(view: Definition, span: RunSpan, offset: int) -> tuple[int, str]:
    """The part of the view to show for a run, and a remark if the run does not compute it."""
    parts = span.parts(view.partitioning, offset)
    if not parts:
        return view.partitioning.index_at(span.start) + offset, " (not computed by this run)"
    others = len(parts) - 1
    return parts.last, f" (and {others} more part{'s' if others > 1 else ''})" if others else ""


def describe_step(step: StepReport, done: int, total: int, describe_part: str) -> str:
    """One line of a task's log: part, rule, reason, inputs with versions, rows, what became of it, seconds."""
    what = {"published": f"published as v{step.version}", "kept": f"same as v{step.version}, kept"}
    return (
        f"{describe_part} by {step.rule.upper()} ({step.reason}): read {', '.join(step.inputs) or 'no parts'}; "
        f"{step.rows} row{'' if step.rows == 1 else 's'}, {what.get(step.outcome, step.outcome)} "
        f"in {step.seconds:.1f} s [{done} of {total}]"
    )


def tell_preview(log: Logger, preview: ApplyPreview) -> None:
    """Say in a task's log what changed definitions make stale, before they do."""
    for name in preview.dropped:
        log.info("%s is dropped.", name)
    for name in preview.changed:
        log.info("%s is defined differently now.", name)
    if preview.lines:
        log.info("These parts become stale:")
    for line in preview.lines:
        log.info("  %s", line)


def blocked_parts(blocked: Iterable[PartsSetAside], view: str, parts: PartSet) -> dict[str, PartSet]:
    """What the view's blocked parts, of these, wait for: by table. Other parts may wait without anyone caring."""
    wanted: dict[str, PartSet] = {}
    for item in blocked:
        if fold(item.view) == fold(view) and item.parts & parts:
            for table, missing in item.missing:
                wanted[table] = wanted.get(table, PartSet()) | missing
    return wanted


def describe_blocked(blocked: Iterable[PartsSetAside], view: str, parts: PartSet) -> str:
    """Why the view's parts, of these, cannot be computed now; nothing if they can."""
    reasons = [item.reason for item in blocked if fold(item.view) == fold(view) and item.parts & parts]
    return "; ".join(dict.fromkeys(reasons))


def missing_parts_error(
    waiting: str, missing: Mapping[str, PartSet], definitions: Iterable[Definition], seconds: float
) -> MissingPartError:
    """The sentence with which a task gives up: what it waited for, how long, and what to do."""
    known = {fold(item.name): item for item in definitions}
    texts, remedies = [], []
    for table, parts in missing.items():
        definition = known.get(fold(table))
        if definition is None:
            texts.append(f"{table}, which is not defined")
            remedies.append(f"define and load {table}")
            continue
        texts.append(definition.describe_parts(parts))
        remedies.append(_remedy(definition, parts))
    return MissingPartError(
        f"{waiting} waited {seconds:.0f} seconds in vain for {'; '.join(texts)}. {_sentence('; '.join(remedies))}"
    )


def _remedy(definition: Definition, parts: PartSet) -> str:
    if definition.kind == "view":
        return f"refresh {definition.name}: viewdf refresh {definition.name}"
    at = definition.partitioning.format(parts.first)
    if definition.is_external:
        place = definition.location_template.directory_at(definition.partitioning.start_of(parts.first))
        ending = f", with a file {definition.complete_when}" if definition.complete_when else ""
        return (
            f"its files belong at {place}{ending}; put them there, or declare it empty: "
            f"viewdf declare-empty {definition.name} --at {at}"
        )
    return f"load it, or declare it empty: viewdf declare-empty {definition.name} --at {at}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _list_views(views: Sequence[Definition]) -> str:
    return f"it has {', '.join(item.name for item in views)}" if views else "it has no view at all"
