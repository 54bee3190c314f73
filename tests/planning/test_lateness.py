"""Which rows of a batch are late, and which are too late."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import LateRows
from airflow_provider_viewdf.parts import Partitioning, PartSet
from airflow_provider_viewdf.planning.lateness import Lateness, judge_parts

DAY = Partitioning(86400)
TWO_DAYS = LateRows("quarantine", 2 * 86400)
NOTHING = PartSet()


def judge(
    rows: PartSet,
    *,
    covers: PartSet = NOTHING,
    newest: int | None = None,
    before: PartSet = NOTHING,
    policy: LateRows = TWO_DAYS,
) -> tuple[str, str]:
    found = judge_parts(policy, DAY, rows, covers=covers, newest_before=newest, taken_before=before)
    return str(found.late), str(found.too_late)


def test_two_days_are_not_more_than_two_days() -> None:
    assert judge(PartSet.between(5, 10), newest=10) == ("5 .. 9", "5 .. 7")


def test_first_batch_is_not_late_for_anything() -> None:
    assert judge(PartSet.between(-400, 10)) == ("", "")


def test_batch_is_not_late_for_what_it_covers() -> None:
    assert judge(PartSet.between(3, 5), covers=PartSet.between(3, 5), newest=100) == ("", "")


def test_rows_outside_of_what_a_batch_covers_are_measured_against_that() -> None:
    assert judge(PartSet.between(0, 9), covers=PartSet.between(4, 5), newest=100) == ("0 .. 3", "0 .. 2")
    assert judge(PartSet.between(0, 5), covers=PartSet.between(5, 5)) == ("0 .. 4", "0 .. 2")


def test_catching_up_in_one_file_is_not_late_for_parts_that_nobody_has_brought_yet() -> None:
    assert judge(PartSet.between(8, 30), newest=10) == ("8 .. 9", "")


def test_batch_may_replace_what_it_brought_before() -> None:
    assert judge(PartSet.between(1, 10), newest=10, before=PartSet.between(2, 3)) == ("1 .. 9", "1, 4 .. 7")


def test_refresh_takes_everything_and_counts_it() -> None:
    assert judge(PartSet.between(1, 10), newest=10, policy=LateRows("refresh")) == ("1 .. 9", "")


def test_batch_without_rows_has_no_late_ones() -> None:
    found = judge_parts(TWO_DAYS, DAY, NOTHING, covers=NOTHING, newest_before=5, taken_before=NOTHING)
    assert found == Lateness(newest=5)


PARTS = st.frozensets(st.integers(-20, 20), max_size=8).map(PartSet.of_indexes)


@given(rows=PARTS, covers=PARTS, newest=st.none() | st.integers(-20, 20), before=PARTS, days=st.integers(0, 9))
def test_each_part_is_judged_by_its_distance_alone(
    rows: PartSet, covers: PartSet, newest: int | None, before: PartSet, days: int
) -> None:
    found = judge_parts(
        LateRows("ignore", days * 86400), DAY, rows, covers=covers, newest_before=newest, taken_before=before
    )
    reference = max(covers) if covers else newest
    for index in range(-20, 21):
        distance = 0 if reference is None or index in covers or index not in rows else reference - index
        assert (index in found.late) == (distance > 0)
        assert (index in found.too_late) == (distance > days and distance > 0 and index not in before)


class Stream:
    """What batches have brought, by id: the parts they cover, those they have rows in, and what they are late against."""

    def __init__(self, days: int) -> None:
        self.policy = LateRows("ignore", days * 86400)
        self.batches: dict[int, tuple[PartSet, PartSet, int | None]] = {}

    def load(self, batch: int, rows: PartSet, covers: PartSet) -> None:
        others = [index for item in self.batches.values() for parts in item[:2] for index in parts]
        before = self.batches.get(batch, (PartSet(), PartSet(), max(others, default=None)))
        found = judge_parts(self.policy, DAY, rows, covers=covers, newest_before=before[2], taken_before=before[1])
        taken = rows - found.too_late
        covered = covers or (PartSet.between(taken.first, taken.last) if taken else PartSet())
        self.batches[batch] = covered, taken, found.newest


LOADS = st.lists(st.tuples(st.integers(0, 4), PARTS, st.none() | st.integers(-20, 20)), max_size=8)


@settings(max_examples=500, deadline=None)
@given(loads=LOADS, days=st.integers(0, 5))
def test_last_load_of_a_batch_again_changes_nothing(loads: list[tuple[int, PartSet, int | None]], days: int) -> None:
    stream = Stream(days)
    last: dict[int, tuple[PartSet, PartSet]] = {}
    for batch, rows, cover in loads:
        covers = PartSet() if cover is None else PartSet.between(cover, cover)
        stream.load(batch, rows, covers)
        last[batch] = (rows, covers)
    before = dict(stream.batches)
    for batch, (rows, covers) in last.items():
        stream.load(batch, rows, covers)
        assert stream.batches == before


@given(rows=st.lists(PARTS, min_size=1, max_size=5), days=st.integers(0, 5), data=st.data())
def test_batches_that_say_what_they_cover_may_come_in_any_order(
    rows: list[PartSet], days: int, data: st.DataObject
) -> None:
    results = []
    for order in (range(len(rows)), data.draw(st.permutations(range(len(rows))))):
        stream = Stream(days)
        for batch in order:
            stream.load(batch, rows[batch], PartSet.between(batch * 3, batch * 3 + 2))
        results.append(stream.batches)
    assert results[0] == results[1]
