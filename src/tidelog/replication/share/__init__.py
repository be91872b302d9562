"""Share partitions (KIP-932): records of one partition that are given to the members of a share group one by one."""
