"""``Broker.group_settings``: what a group has of its own, beside the settings of the broker and of its clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Alter = Callable[[str, Mapping[str, str | int | None]], None]


class GroupSettings:
    """Settings of groups on a broker; ``Broker.reset`` removes all of them."""

    __slots__ = ("_alter",)

    def __init__(self, alter: Alter) -> None:
        self._alter = alter

    def set(self, group: str, **config: str | int | None) -> None:
        """Set a group's settings, with ``_`` for ``.``, as in ``share_auto_offset_reset="earliest"``; None removes one.

        The group may come later. ValueError with the reason when one is refused.
        """
        self._alter(group, config)
