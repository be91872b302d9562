from pathlib import Path

from tests.unit.server.controllers import Controllers
from tidelog.broker.node import ControllerSide


def test_a_controllers_handlers_see_the_committed_image(tmp_path: Path) -> None:
    world = Controllers(tmp_path, voters=1)

    async def main() -> None:
        await world.start()
        await world.set("8")
        node = world.nodes[1]
        side = ControllerSide(
            node_id=1,
            cluster_id="c",
            config=node.config,
            images=node.runner.member,
            controller=node.runner.controller,
            quorum=node.runner.requests,
            runtime=world.runtime,
            rng=world.runtime.rng,
            apis={},
        )
        assert side.image is node.runner.member.image
        assert side.image.cluster_configs["num.partitions"] == "8"
        assert (side.quorum.leader_id, side.quorum.voters.ids) == (1, (1,))

    try:
        world.run(main)
    finally:
        world.close()
