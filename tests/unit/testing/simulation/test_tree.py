"""Names and contents on a simulated disk: what is durable, and what a power loss keeps of the rest."""

import random

import pytest

from tidelog.testing.simulation.tree import SECTOR, DirNode, FileNode, Tree


def tree_with(file: FileNode) -> Tree:
    """/d/f, both names durable."""
    tree, below = Tree(), DirNode()
    tree.root.change(0, ("d", below))
    below.change(0, ("f", file))
    for each in (tree.root, below):
        each.sync()
    return tree


def test_a_path_leads_to_a_file_or_a_directory() -> None:
    file = FileNode()
    tree = tree_with(file)
    assert tree.file("/d/f") is tree.find("d//f") is file
    assert tree.parent("/d/f") is tree.directory("/d")
    assert file.path == "/d/f"
    assert tree.find("/d/f/below") is tree.find("/e") is None
    with pytest.raises(FileNotFoundError):
        tree.file("/d/g")
    with pytest.raises(IsADirectoryError):
        tree.file("/d")
    with pytest.raises(FileNotFoundError):
        tree.directory("/e")
    with pytest.raises(NotADirectoryError):
        tree.directory("/d/f")


def test_a_file_is_torn_at_sectors_until_its_sync() -> None:
    file = FileNode()
    file.write(0, b"x" * 2 * SECTOR, 5)
    x, zero = b"x" * SECTOR, bytes(SECTOR)
    found = {bytes(file.torn(random.Random(seed)).data) for seed in range(300)}
    assert found == {b"", x, x + x, zero + x}
    assert (file.modified_ms, len(file.safe)) == (5, 0)
    file.sync()
    assert {bytes(file.torn(random.Random(seed)).data) for seed in range(20)} == {x + x}


def test_a_gap_and_a_growth_are_zeroes() -> None:
    file = FileNode()
    file.write(2, b"a", 0)
    file.truncate(4, 0)
    assert file.data == b"\0\0a\0"
    file.truncate(1, 0)
    file.sync()
    assert file.safe == b"\0"


def test_forgotten_changes_are_not_made_durable_later() -> None:
    file = FileNode()
    file.write(0, b"lost", 0)
    file.forget_changes()
    file.write(4, b"kept", 0)
    file.sync()
    assert (file.data, file.safe) == (b"lostkept", b"\0\0\0\0kept")


def test_a_sync_writes_what_was_flipped_before_it() -> None:
    file = FileNode()
    file.write(0, b"abc", 0)
    file.write(1, b"xy", 0)
    file.flip(1, 0)
    file.sync()
    assert file.data == file.safe == b"ayy"


def test_a_flip_changes_both_contents() -> None:
    file = FileNode(bytearray(b"ab"), bytearray(b"a"))
    file.flip(0, 1)
    file.flip(1, 0)
    assert (file.data, file.safe) == (b"cc", b"c")


def test_first_changes_of_names_survive_and_a_rename_is_whole() -> None:
    directory = DirNode()
    directory.change(0, ("a", FileNode()))
    directory.change(0, ("a", None), ("b", FileNode()))
    directory.change(0, ("c", FileNode()))
    found = {tuple(directory.names_after_power_loss(random.Random(seed))) for seed in range(50)}
    assert found == {(), ("a",), ("b",), ("b", "c")}
    directory.sync()
    assert set(directory.names_after_power_loss(random.Random(0))) == {"b", "c"}


def test_a_copy_has_the_unsynced_changes_and_no_handles() -> None:
    file = FileNode(handles=1)
    tree = tree_with(file)
    file.write(0, b"x", 3)
    copy = tree.copy()
    twin = copy.file("/d/f")
    assert (twin.data, twin.safe, twin.pending, twin.modified_ms, twin.handles) == (b"x", b"", [(0, b"x")], 3, 0)
    twin.write(1, b"y", 4)
    assert (file.data, tree.size(), copy.size()) == (b"x", 1, 2)
    assert tree.after_power_loss(random.Random(1)).file("/d/f").pending == []
