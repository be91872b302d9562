"""A console whose own user may not do everything on the cluster: what is denied is said, the rest is there."""

from __future__ import annotations

from tests.unit.console.web.browser import Browser, console
from tidelog.console.web.starting import ClusterOption
from tidelog.testing import Broker, allow


def test_what_the_cluster_denies_is_named_and_the_rest_is_shown() -> None:
    rules = [allow("console", "Describe", topic="*"), allow("console", "Describe", group="*")]
    with Broker(users={"console": "secret"}, acls=rules) as broker:
        broker.create_topic("orders")
        broker.produce("orders", "a")
        settings = {name: str(value) for name, value in broker.access.client_settings("console").items()}
        settings.pop("bootstrap.servers", None)
        option = ClusterOption("main", broker.bootstrap_servers, settings)

        async def job(browser: Browser) -> None:
            topics = (await browser.get("clusters/main/topics")).data
            assert [row["name"] for row in topics["rows"]] == ["orders"]
            topic = (await browser.get("clusters/main/topics/orders")).json
            assert topic["data"]["records"] == "1"
            health = (await browser.get("clusters/main/health")).json
            assert "each partition has a leader" in health["data"]["fine"]
            assert {each["what"] for each in health["partial"]} >= {"quorum"}
            lines = await browser.stream("clusters/main/topics/orders/records")
            problems = [line["error"] for line in lines if line["kind"] == "problem"]
            assert [each.partition(":")[0] for each in problems] == ["TOPIC_AUTHORIZATION_FAILED"]
            denied = await browser.post("clusters/main/topics", {"name": "mine", "dry_run": True})
            assert denied.status == 403
            config = await browser.get("clusters/main/topics/orders/config")
            assert (config.status, config.json["kafka"]["name"]) == (403, "TOPIC_AUTHORIZATION_FAILED")

        console(broker.bootstrap_servers, job, clusters=[option])
