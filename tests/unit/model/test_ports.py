from tidelog.model.ports import FileSlice


class MemoryFile:
    path = "memory"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, position: int, length: int) -> bytes:
        return self.data[position : position + length]


def test_a_slice_reads_its_own_part_of_the_file() -> None:
    assert FileSlice(MemoryFile(b"0123456789"), 3, 4).read() == b"3456"  # type: ignore[arg-type]
