"""A cluster in virtual time, for users' own code: real nodes on a simulated network and simulated disks, replayed by a seed.

    from tidelog.testing.simulation import Cluster, simulate

    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await cluster.produce("orders", "paid")
        cluster.nodes[cluster.leader("orders") or 1].kill()
        assert [record.value for record in await cluster.read("orders")] == [b"paid"]

    simulate(7, scenario)

Guide: docs/guide/testing.md. How it works: docs/adr/0017-whole-nodes-in-virtual-time.md.
"""

from tidelog.testing.simulation.client import Client, Later
from tidelog.testing.simulation.cluster import Shape
from tidelog.testing.simulation.faults import KINDS
from tidelog.testing.simulation.reading import DamagedBatch, Record
from tidelog.testing.simulation.running import Cluster, Run, SimulationFailed, simulate

__all__ = ["KINDS", "Client", "Cluster", "DamagedBatch", "Later", "Record", "Run", "Shape", "SimulationFailed", "simulate"]
