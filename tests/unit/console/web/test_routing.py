from __future__ import annotations

import pytest

from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem
from tidelog.console.web.routing import Route, Routes


async def nothing(context: Context) -> None:
    return


ROUTES = Routes(
    [
        Route("GET", "clusters/{c}/topics", nothing, None),
        Route("GET", "clusters/{c}/topics/facts", nothing, None),
        Route("GET", "clusters/{c}/topics/{t}", nothing, None),
        Route("POST", "clusters/{c}/topics", nothing, None),
    ]
)


def test_segments_are_decoded_after_the_path_was_split() -> None:
    route, segments = ROUTES.find("GET", "clusters/main/topics/a%2Fb")
    assert (route.path, segments) == ("clusters/{c}/topics/{t}", {"c": "main", "t": "a/b"})
    assert ROUTES.find("GET", "clusters/main/topics/facts")[0].path.endswith("facts")
    assert ROUTES.find("GET", "clusters/main/topics/%66acts")[1] == {"c": "main", "t": "facts"}


def test_methods_have_their_own_routes() -> None:
    assert ROUTES.find("POST", "clusters/main/topics")[0].method == "POST"
    with pytest.raises(Problem) as found:
        ROUTES.find("DELETE", "clusters/main/topics")
    assert (found.value.status, found.value.detail) == (405, "this path takes GET, POST")


@pytest.mark.parametrize(
    "path", ["", "clusters", "clusters/main/topics/", "clusters//topics", "clusters/main/topics/a/b", "xclusters/main/topics"]
)
def test_other_paths_are_not_there(path: str) -> None:
    with pytest.raises(Problem) as found:
        ROUTES.find("GET", path)
    assert found.value.status == 404
