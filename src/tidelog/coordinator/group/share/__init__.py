"""Share groups (KIP-932): members, their assignment, and the partitions whose state is initialized."""
