from tidelog.controller.record_batches import encoded_batches
from tidelog.metadata.records import decode_record
from tidelog.protocol.messages.config_record import ConfigRecord


def records(count: int) -> list[ConfigRecord]:
    return [ConfigRecord(resource_type=2, resource_name=f"t{each}", name="x", value="v" * 100) for each in range(count)]


def test_what_fits_is_one_batch() -> None:
    (batch,) = encoded_batches(records(3), 30, 10_000)
    assert [decode_record(each).resource_name for each in batch] == ["t0", "t1", "t2"]  # type: ignore[union-attr]


def test_what_does_not_fit_is_a_transaction_of_several() -> None:
    batches = encoded_batches(records(20), 30, 1_000)
    assert len(batches) > 2
    names = [decode_record(value).NAME for batch in batches for value in batch]
    assert (names[0], names[-1]) == ("BeginTransactionRecord", "EndTransactionRecord")
    assert names[1:-1] == ["ConfigRecord"] * 20
