"""Share groups on a broker: the share partitions that it leads, sessions with members, and where state is stored."""
