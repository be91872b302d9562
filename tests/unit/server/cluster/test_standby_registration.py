from __future__ import annotations

from pathlib import Path

from tests.unit.server.controllers import Controllers


def test_every_controller_is_registered_with_the_incarnation_that_runs(tmp_path: Path) -> None:
    world = Controllers(tmp_path)

    def registered() -> bool:
        running = {node_id: node.runner.member.config.controller.incarnation_id for node_id, node in world.nodes.items()}
        images = [node.runner.member.image.controllers for node in world.nodes.values()]
        return all({each.id: each.incarnation_id for each in image.values()} == running for image in images)

    async def main() -> None:
        await world.start()
        await world.until(registered)
        active = await world.until(world.active)
        other = next(node_id for node_id in world.nodes if node_id != active)
        await world.stop(other)
        await world.start(other)
        await world.until(registered)

    try:
        world.run(main)
    finally:
        world.close()
