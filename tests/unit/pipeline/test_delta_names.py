from tidelog.pipeline.delta_names import delta_name, quoted


class _Qualifying:
    """Of Hadoop's classes what is asked here: relative paths lie in ``file:/work``."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self._jvm = self.org = self.apache = self.hadoop = self.fs = self.sparkContext = self._jsc = self
        self.Path = _Qualifying if not path else None

    def hadoopConfiguration(self) -> None:
        return None

    def getFileSystem(self, _: None) -> "_Qualifying":
        return self

    def makeQualified(self, place: "_Qualifying") -> "_Qualifying":
        return _Qualifying(place.path if ":" in place.path else f"file:/here/{place.path}")

    def toString(self) -> str:
        return self.path


def test_a_relative_path_is_made_absolute() -> None:
    assert delta_name(_Qualifying(), "lake/events") == "delta.`file:/here/lake/events`"
    assert delta_name(_Qualifying(), "hdfs://host/lake") == "delta.`hdfs://host/lake`"


def test_quotes_in_a_path_stay_within_the_name() -> None:
    assert quoted("file:/a`b") == "delta.`file:/a``b`"
