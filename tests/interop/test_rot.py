"""One flipped bit in the directory of a node that stands alone: nothing that was flushed is lost in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.rot import BATCHES, DAMAGES, RECORDS, TOPIC, run

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
ALL = list(range(BATCHES * RECORDS))
WITHOUT_ONE = [*ALL[:RECORDS], *ALL[2 * RECORDS :]]


@pytest.mark.parametrize("damage", ["segment, records", "segment, length", "segment, base offset"])
def test_after_a_crash_only_the_damaged_batch_cannot_be_read(tmp_path: Path, damage: str) -> None:
    seen = run("tidelog", tmp_path / "n", None, DAMAGES[damage], clean=False)
    assert [*seen.offsets, *seen.behind] == WITHOUT_ONE
    assert (seen.end, set(seen.errors)) == (len(ALL), {"INVALID_MSG"})
    assert any("ERROR" in line and "offsets 300 to 599" in line for line in seen.said)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
def test_a_single_controller_with_a_damaged_metadata_log_does_not_start(tmp_path: Path, clean: bool) -> None:
    seen = run("tidelog", tmp_path / "n", None, DAMAGES["metadata log"], clean=clean)
    assert not seen.started
    text = "\n".join(seen.said)
    assert "are damaged" in text
    assert "unclean stop" not in text
    assert list((tmp_path / "n" / "data").glob(f"{TOPIC}-0")), "no directory was set aside"


def test_a_damaged_topic_id_is_no_other_topic(tmp_path: Path) -> None:
    seen = run("tidelog", tmp_path / "n", None, DAMAGES["partition.metadata"], clean=True)
    # Where the character is none of base64 any more, the node refuses.
    assert seen.offsets == ALL if seen.started else "partition.metadata" in "".join(seen.said)
    assert not list((tmp_path / "n" / "data").glob("*-stray"))


@pytest.mark.parametrize("damage", ["index", "producer snapshot", "leader-epoch-checkpoint"])
def test_what_can_be_rebuilt_is(tmp_path: Path, damage: str) -> None:
    seen = run("tidelog", tmp_path / "n", None, DAMAGES[damage], clean=True)
    assert (seen.offsets, seen.errors) == (ALL, [])
