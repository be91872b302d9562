"""Encoded answers to ApiVersions.

Every connection begins with this request, and the answer names every API that the node serves: building it costs more than all
else about the request.
"""

from __future__ import annotations

from tidelog.metadata.image import ClusterImage


class VersionAnswers:
    """The answers for one image, by version of the request."""

    __slots__ = ("_image", "_kept", "_kraft_version")

    def __init__(self) -> None:
        self._image: ClusterImage | None = None
        self._kraft_version = 0
        self._kept: dict[int, bytes] = {}

    def get(self, image: ClusterImage, kraft_version: int, version: int) -> bytes | None:
        """The kept answer, unless the image or the level of kraft.version has changed since."""
        if image is not self._image or kraft_version != self._kraft_version:
            self._image, self._kraft_version = image, kraft_version
            self._kept.clear()
        return self._kept.get(version)

    def keep(self, version: int, answer: bytes) -> None:
        """Keeps an answer for the image of the last ``get``."""
        self._kept[version] = answer
