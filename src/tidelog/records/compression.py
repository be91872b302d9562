"""The codecs of record batches: which number is which, how Kafka's clients frame them, and how much may come out.

Reading accepts what every client in the field writes: gzip of several members, snappy with and without the xerial frame, LZ4 of
several frames and with the header checksum of early Java clients (KAFKA-3160), zstd of several frames. Writing is what the Java
client reads: xerial snappy in 32 KiB blocks, LZ4 in independent 64 KiB blocks.

Invariant: no more than ``max_size`` bytes (plus one step of a decoder) are ever allocated for a result, whatever the input
claims; what would exceed it raises ``DecompressionBomb``. Libraries are imported on first use: most brokers see one codec.
Which libraries, and why: docs/adr/0009-compression-libraries.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any

from tidelog.records.batch import Buffer, CorruptBatch

DEFAULT_MAX_DECOMPRESSED = 32 * 1024 * 1024
"""Bytes one batch may decompress to unless the caller says otherwise; a Java producer has 32 MiB for all of its batches."""
_STEP = 1 << 20
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_SNAPPY_BLOCK = 32 * 1024
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_ZSTD_MAX_WINDOW = 1 << 27
_ZSTD_RATIO = 8
"""Room for the first step, in sizes of what the content was compressed to."""
_I32 = Struct(">i")


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionBomb(CorruptBatch):
    """A batch that decompresses to more than it may."""


CODEC_NAMES: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "none": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""Values of ``compression.type``; ``producer`` keeps whatever the producer chose."""


def codec_from_name(name: str) -> Codec | None:
    """The codec that ``compression.type=name`` asks for, None for ``producer``. KeyError for a name that is no codec."""
    return CODEC_NAMES[name]


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """``data`` as one compressed blob; ``level`` None is Kafka's default for the codec. Snappy has no levels."""
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: Buffer, max_size: int = DEFAULT_MAX_DECOMPRESSED) -> bytes:
    """The bytes in the blob. CorruptBatch when it is not the codec's format, DecompressionBomb past ``max_size``."""
    if codec == Codec.NONE:
        if len(data) > max_size:
            raise DecompressionBomb(f"{len(data)} bytes of records: at most {max_size} are read at once")
        return bytes(data)
    decoder = _DECOMPRESSORS.get(codec)
    if decoder is None:
        raise CorruptBatch(f"codec {codec} does not exist: 0 to 4 do")
    return decoder(data, max_size)


def _bomb(codec: str, max_size: int) -> DecompressionBomb:
    return DecompressionBomb(f"{codec} data that decompresses to more than {max_size} bytes: send smaller batches")


def _as_is(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _gzip(data: Buffer, level: int | None) -> bytes:
    encoder = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return encoder.compress(data) + encoder.flush()


def _gunzip(data: Buffer, max_size: int) -> bytes:
    out = bytearray()
    rest: Buffer = data
    while True:
        decoder = zlib.decompressobj(31)
        try:
            while not decoder.eof:
                chunk = decoder.decompress(rest, min(_STEP, max_size + 1 - len(out)))
                rest = decoder.unconsumed_tail
                if not chunk and not rest and not decoder.eof:
                    raise CorruptBatch("gzip data ends inside a member")
                out += chunk
                if len(out) > max_size:
                    raise _bomb("gzip", max_size)
        except zlib.error as error:
            raise CorruptBatch(f"gzip data cannot be read: {error}") from None
        rest = decoder.unused_data
        # As the JVM reads it: another member follows only where it announces itself, anything else is padding.
        if rest[:2] != b"\x1f\x8b":
            return bytes(out)


def _snappy(data: Buffer, level: int | None) -> bytes:
    import cramjam

    view = memoryview(data)
    parts: list[bytes] = [_XERIAL_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(bytes(view[start : start + _SNAPPY_BLOCK])))
        parts += (_I32.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy_block(block: memoryview, room: int, max_size: int) -> bytes:
    import cramjam

    raw = bytes(block)
    try:
        if cramjam.snappy.decompress_raw_len(raw) > room:
            raise _bomb("snappy", max_size)
        return bytes(cramjam.snappy.decompress_raw(raw))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"snappy data cannot be read: {error}") from None


def _unsnappy(data: Buffer, max_size: int) -> bytes:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        return _unsnappy_block(view, max_size, max_size)
    out = bytearray()
    position, end = len(_XERIAL_HEADER), len(view)
    if end < position:
        raise CorruptBatch("snappy data ends inside its xerial header")
    while position < end:
        if view[position : position + 8] == _XERIAL_MAGIC:  # streams written one after another
            position += len(_XERIAL_HEADER)
            continue
        if end - position < 4:
            raise CorruptBatch("snappy data ends inside a block length")
        (length,) = _I32.unpack_from(view, position)
        position += 4
        if not 0 <= length <= end - position:
            raise CorruptBatch(f"snappy block of {length} bytes: {end - position} are left")
        out += _unsnappy_block(view[position : position + length], max_size - len(out), max_size)
        position += length
    return bytes(out)


def _lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    # Kafka's default level, 9, means the fast compressor; other levels mean the high compression one.
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None or level == 9 else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _unlz4(data: Buffer, max_size: int) -> bytes:
    import lz4.frame

    out = bytearray()
    rest: Buffer = _with_right_header_checksum(data)
    while True:
        decoder = lz4.frame.LZ4FrameDecompressor()
        try:
            while not decoder.eof:
                out += decoder.decompress(rest, max_length=min(_STEP, max_size + 1 - len(out)))
                if len(out) > max_size:
                    raise _bomb("lz4", max_size)
                rest = b""
                if decoder.needs_input and not decoder.eof:
                    raise CorruptBatch("lz4 data ends inside a frame")
        except (RuntimeError, ValueError, EOFError) as error:
            if isinstance(error, CorruptBatch):
                raise
            raise CorruptBatch(f"lz4 data cannot be read: {error}") from None
        rest = decoder.unused_data or b""
        # As the Java client reads it: what follows the last frame is not looked at.
        if rest[:4] != _LZ4_MAGIC:
            return bytes(out)
        rest = _with_right_header_checksum(rest)


def _with_right_header_checksum(data: Buffer) -> Buffer:
    """The frame, its header checksum put right when it is the one that Java clients before 0.10 computed (magic included)."""
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        return data
    end = 6 + (8 if data[4] & 0x08 else 0) + (4 if data[4] & 0x01 else 0)
    if len(data) <= end:
        return data
    right = _xxh32_short(bytes(data[4:end])) >> 8 & 0xFF
    if data[end] == right or data[end] != _xxh32_short(bytes(data[:end])) >> 8 & 0xFF:
        return data
    patched = bytearray(data)
    patched[end] = right
    return patched


def _rotate(value: int, count: int) -> int:
    return (value << count | value >> (32 - count)) & 0xFFFFFFFF


def _xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0 of up to 31 bytes, which is all that an LZ4 frame header can have."""
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    position = 0
    if len(data) < 16:
        total = p5
    else:
        lanes = (p1 + p2, p2, 0, -p1)
        words = (int.from_bytes(data[i : i + 4], "little") for i in (0, 4, 8, 12))
        mixed = [_rotate((lane + word * p2) & 0xFFFFFFFF, 13) * p1 for lane, word in zip(lanes, words, strict=True)]
        total = sum(_rotate(lane & 0xFFFFFFFF, turn) for lane, turn in zip(mixed, (1, 7, 12, 18), strict=True))
        position = 16
    total += len(data)
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        total = _rotate((total + word * p3) & 0xFFFFFFFF, 17) * p4
        position += 4
    for byte in data[position:]:
        total = _rotate((total + byte * p5) & 0xFFFFFFFF, 11) * p1
    total &= 0xFFFFFFFF
    total = (total ^ total >> 15) * p2 & 0xFFFFFFFF
    total = (total ^ total >> 13) * p3 & 0xFFFFFFFF
    return total ^ total >> 16


def _zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)


_zstd_decoders: list[Any] = []
"""Idle decoders: making one costs as much as a small batch, and two threads must not share one."""


def _unzstd(data: Buffer, max_size: int) -> bytes:
    try:
        decoder = _zstd_decoders.pop()
    except IndexError:
        import zstandard

        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
    try:
        return _unzstd_by(decoder, data, max_size)
    finally:
        _zstd_decoders.append(decoder)


def _unzstd_by(decoder: Any, data: Buffer, max_size: int) -> bytes:
    import zstandard

    reader = decoder.stream_reader(data, read_across_frames=True)
    try:
        # Mostly all of it, then without a copy. A result is allocated before it is filled, and small batches are the rule.
        first: bytes = reader.read(min(max(1 << 16, _ZSTD_RATIO * len(data)), _STEP, max_size + 1))
        size = len(first)
        if size <= max_size and not (chunk := reader.read(1)):
            return first
        out = bytearray(first)
        while size <= max_size and chunk:
            out += chunk
            size = len(out)
            chunk = reader.read(min(_STEP, size, max_size + 1 - size))
    except zstandard.ZstdError as error:
        raise CorruptBatch(f"zstd data cannot be read: {error}") from None
    if size > max_size:
        raise _bomb("zstd", max_size)
    return bytes(out)


_COMPRESSORS: dict[int, Callable[[Any, int | None], bytes]] = {
    Codec.NONE: _as_is,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: dict[int, Callable[[Any, int], bytes]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
