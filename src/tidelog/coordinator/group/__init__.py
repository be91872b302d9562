"""Consumer groups: membership, assignments, committed offsets."""
