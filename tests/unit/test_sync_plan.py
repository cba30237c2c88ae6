"""What a sync plans: carried out, it makes the known documents agree with the folder, and touches nothing twice."""

from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.ingest.sync import Known, plan

SOURCES = st.sampled_from([f"kit/{letter}.txt" for letter in "abcdefgh"])
BYTES = st.sampled_from(["1", "2", "3", "4"])
FOLDERS = st.dictionaries(SOURCES, BYTES)


def _known(sources: dict[str, str]) -> list[Known]:
    return [Known(uuid4(), source, sha) for source, sha in sources.items()]


@given(folder=FOLDERS, before=FOLDERS)
def test_a_plan_carried_out_makes_both_agree(folder: dict[str, str], before: dict[str, str]) -> None:
    planned = plan(folder, _known(before))
    after = dict(before)
    for moved in planned.moved:
        after[moved.source] = after.pop(moved.before)
    for source in (*planned.new, *planned.changed):
        assert (source in after) == (source in planned.changed)
        after[source] = folder[source]
    for gone in planned.gone:
        del after[gone.source]

    assert after == folder
    assert planned.same == sum(before.get(source) == sha for source, sha in folder.items())


@given(folder=FOLDERS)
def test_what_agrees_needs_nothing(folder: dict[str, str]) -> None:
    assert plan(folder, _known(folder)).is_empty


def test_the_same_bytes_elsewhere_are_a_move_and_a_failed_version_is_brought_in_again() -> None:
    moved, failed = _known({"kit/old.txt": "1", "kit/failed.txt": ""})
    planned = plan({"kit/new.txt": "1", "kit/copy.txt": "1", "kit/failed.txt": "2"}, [moved, failed])

    assert [(one.document_id, one.source) for one in planned.moved] == [(moved.document_id, "kit/copy.txt")]
    assert (planned.new, planned.changed, planned.gone) == (("kit/new.txt",), ("kit/failed.txt",), ())
