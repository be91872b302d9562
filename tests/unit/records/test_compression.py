"""Codecs: every framing that clients in the field write is read, no output is larger than allowed, garbage is named as such."""

import gzip
import random
import zlib
from contextlib import suppress

import cramjam
import lz4.block
import lz4.frame
import pytest
import zstandard

from tidelog.records.batch import CorruptBatch
from tidelog.records.compression import Codec, DecompressionBomb, codec_from_name, compress, decompress

TEXT = b"".join(b"record %d of a batch that compresses well; " % i for i in range(5000))
PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
LIMIT = len(TEXT)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["nothing", "a byte", "much"])
def test_what_was_compressed_is_read(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), LIMIT) == data
    assert decompress(codec, memoryview(bytearray(compress(codec, memoryview(data)))), LIMIT) == data


@pytest.mark.parametrize(
    ("codec", "level"), [(Codec.GZIP, 1), (Codec.GZIP, 9), (Codec.LZ4, 9), (Codec.LZ4, 12), (Codec.ZSTD, 1), (Codec.ZSTD, 19)]
)
def test_levels_change_the_blob_not_the_data(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT, level), LIMIT) == TEXT


@pytest.mark.parametrize("codec", PACKED)
def test_the_same_data_compresses_to_the_same_bytes(codec: Codec) -> None:
    assert compress(codec, TEXT) == compress(codec, TEXT)


def test_gzip_of_several_members_and_padding() -> None:
    data = gzip.compress(TEXT[:1000]) + gzip.compress(b"") + gzip.compress(TEXT[1000:]) + bytes(5)
    assert decompress(Codec.GZIP, data, LIMIT) == TEXT


def test_snappy_without_a_frame() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), LIMIT) == TEXT


def test_snappy_framed_as_xerial_does_with_any_block_size() -> None:
    header = b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1"
    blocks = [bytes(cramjam.snappy.compress_raw(TEXT[i : i + 1000])) for i in range(0, len(TEXT), 1000)]
    framed = [len(block).to_bytes(4, "big") + block for block in blocks]
    assert decompress(Codec.SNAPPY, header + b"".join(framed), LIMIT) == TEXT
    # Streams appended to one another bring their headers along.
    assert decompress(Codec.SNAPPY, header + b"".join(framed[:7]) + header + b"".join(framed[7:]), LIMIT) == TEXT


def test_snappy_is_written_in_blocks_of_32_kib() -> None:
    packed = compress(Codec.SNAPPY, TEXT)
    position, sizes = 16, []
    while position < len(packed):
        length = int.from_bytes(packed[position : position + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(packed[position + 4 : position + 4 + length]))
        position += 4 + length
    assert set(sizes[:-1]) == {32 * 1024}
    assert sum(sizes) == len(TEXT)


@pytest.mark.parametrize(
    "settings",
    [
        {"block_linked": True},
        {"content_checksum": True},
        {"store_size": True},
        {"block_size": lz4.frame.BLOCKSIZE_MAX4MB},
        {"block_checksum": True},
    ],
    ids=str,
)
def test_lz4_frames_of_every_flavour(settings: dict[str, int]) -> None:
    assert decompress(Codec.LZ4, lz4.frame.compress(TEXT, **({"store_size": False} | settings)), LIMIT) == TEXT


def test_lz4_of_several_frames() -> None:
    data = compress(Codec.LZ4, TEXT[:1000]) + compress(Codec.LZ4, TEXT[1000:])
    assert decompress(Codec.LZ4, data, LIMIT) == TEXT


def test_lz4_is_written_in_independent_blocks_of_64_kib_without_a_size() -> None:
    info = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert (info["block_size"], info["block_linked"], info["content_size"]) == (65536, False, 0)
    assert not info["content_checksum"]


@pytest.mark.parametrize("store_size", [False, True], ids=["short header", "header with size"])
def test_lz4_with_the_header_checksum_of_old_java_clients(store_size: bool) -> None:
    data = bytearray(lz4.frame.compress(TEXT, block_linked=False, store_size=store_size))
    end = 14 if store_size else 6
    right = data[end]
    wrong = xxh32(bytes(data[:end])) >> 8 & 0xFF  # KAFKA-3160: the magic was hashed too
    assert wrong != right
    assert xxh32(bytes(data[4:end])) >> 8 & 0xFF == right
    data[end] = wrong
    assert decompress(Codec.LZ4, data, LIMIT) == TEXT
    data[end] = (wrong + 1) & 0xFF if (wrong + 1) & 0xFF != right else (wrong + 2) & 0xFF
    with pytest.raises(CorruptBatch):
        decompress(Codec.LZ4, data, LIMIT)


def xxh32(data: bytes) -> int:
    """XXH32 of short data as an LZ4 frame with a content checksum carries it: an oracle that is not our own code."""
    frame = lz4.frame.compress(data, content_checksum=True, store_size=False)
    return int.from_bytes(frame[-4:], "little")


def test_zstd_of_several_frames_and_skippable_ones() -> None:
    streaming = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0skip"
    data = streaming.compress(TEXT[:700]) + streaming.flush() + skippable + compress(Codec.ZSTD, TEXT[700:])
    assert decompress(Codec.ZSTD, data, LIMIT) == TEXT


def test_a_damaged_zstd_batch_does_not_harm_the_next() -> None:
    packed = compress(Codec.ZSTD, random.Random(3).randbytes(200_000) + TEXT)
    damaged = bytearray(packed)
    damaged[150_000:150_010] = b"\xff" * 10
    for bad in (bytes(damaged), packed[:-20], packed[:100_000], b"", packed[:3]):
        with suppress(CorruptBatch):
            decompress(Codec.ZSTD, bad, 1 << 20)
        assert decompress(Codec.ZSTD, packed, 1 << 20)[200_000:] == TEXT


@pytest.mark.parametrize("codec", list(Codec))
def test_output_is_bounded(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 1, 0):
        with pytest.raises(DecompressionBomb):
            decompress(codec, packed, limit)


def test_a_raw_snappy_block_that_claims_four_gigabytes_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(DecompressionBomb):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\x00a" * 10, 1 << 20)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
def test_data_cut_short_is_corrupt(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    for length in (0, 3, 8, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:length], LIMIT)


@pytest.mark.parametrize("codec", PACKED)
def test_another_codecs_data_is_corrupt(codec: Codec) -> None:
    for wrong in (zlib.compress(TEXT), b"\xff" * 100, lz4.block.compress(TEXT)):
        with pytest.raises(CorruptBatch):
            decompress(codec, wrong, LIMIT)


@pytest.mark.parametrize(
    "framed", [b"\x82SNAPPY\x00", b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1\0\0", b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1\xff\xff\xff\xff\0"]
)
def test_a_broken_xerial_frame_is_corrupt(framed: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(Codec.SNAPPY, framed, LIMIT)


def test_codecs_that_do_not_exist_are_corrupt() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(CorruptBatch, match=f"codec {codec}"):
            decompress(codec, b"data", LIMIT)


def test_names_of_compression_type() -> None:
    names = ["none", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
    assert [codec_from_name(name) for name in names] == [0, 0, 1, 2, 3, 4]
    assert codec_from_name("producer") is None
    with pytest.raises(KeyError):
        codec_from_name("brotli")
