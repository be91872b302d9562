"""The hardware of a simulated cluster."""

from tidelog.testing.simulation.cluster import Shape, SimCluster, image_of, newest_image


def started(shape: Shape) -> SimCluster:
    cluster = SimCluster(shape, 1)
    cluster.start()
    assert cluster.agenda.run_until(cluster.serving, 60), cluster.state()
    return cluster


def test_brokers_are_controllers_too_unless_there_are_controllers_apart() -> None:
    together, apart = Shape(brokers=4), Shape(brokers=4, controllers=3)
    assert (together.voter_ids, apart.voter_ids) == ([1, 2, 3], [101, 102, 103])
    assert [each.node_id for each in SimCluster(apart, 1).brokers] == [1, 2, 3, 4]


def test_a_fixed_quorum_and_one_that_can_change_both_elect_a_leader() -> None:
    for static in (False, True):
        cluster = started(Shape(static=static))
        voters = {each.node.replica.member.machine.kraft_version for each in cluster.controllers}  # type: ignore[union-attr]
        assert voters == {0 if static else 1}
        assert sum(each.leads_quorum for each in cluster.machines) == 1
        assert cluster.problem() is None
        cluster.end()


def test_a_node_with_several_disks_has_a_log_dir_on_each() -> None:
    cluster = SimCluster(Shape(brokers=1, log_dirs=2), 1)
    disk = cluster.machines[0].disk
    assert disk.exists("/data/meta.properties")
    assert disk.exists("/data2/meta.properties")


def test_a_broker_that_joins_later_serves_and_is_known_to_the_others() -> None:
    cluster = started(Shape(brokers=1))
    new = cluster.join(9, broker=True)
    assert cluster.agenda.run_until(cluster.serving, cluster.agenda.now + 60), cluster.state()

    def known() -> bool:
        images = [image_of(machine) for machine in cluster.brokers]
        return all(image is not None and set(image.brokers) == {1, 9} for image in images)

    assert cluster.agenda.run_until(known, cluster.agenda.now + 60)
    newest = newest_image(cluster.brokers)
    assert newest is not None and new.node_id in newest.brokers
    cluster.end()


def test_a_node_that_ends_by_itself_is_a_problem_unless_it_is_excused() -> None:
    cluster = started(Shape(brokers=1))
    (only,) = cluster.machines
    only.disk.fill("/data/", 0)
    assert cluster.agenda.run_until(lambda: only.ended is not None, cluster.agenda.now + 600)
    assert "node 1 ended" in (cluster.problem() or "")
    assert cluster.problem(lambda machine: machine is only) is None
    assert not cluster.healthy()
    assert cluster.why == "not every broker serves"
    cluster.end()
