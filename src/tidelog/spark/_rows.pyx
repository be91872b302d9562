# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""``rows.PlainEncoder`` and ``rows.plain_partitions``, compiled. What they do is written there; a test holds the two equal.

Every offset is checked against the data that it points into before anything is read, and a record's size is known before room for it
is made: nothing is written that was not reserved.
"""

from array import array

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tidelog.spark.rows import BadRows

cdef int64_t LOWEST = INT64_MIN


cdef class _View:
    """The bytes of a Python object, held for as long as this lives."""

    cdef Py_buffer buffer
    cdef bint held
    cdef const uint8_t* p
    cdef Py_ssize_t size

    def __cinit__(self, found):
        self.held = False
        PyObject_GetBuffer(found, &self.buffer, PyBUF_SIMPLE)
        self.held = True
        self.p = <const uint8_t*> self.buffer.buf
        self.size = self.buffer.len

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.buffer)


cdef class _Column:
    """A column of bytes; ``there`` False: all null."""

    cdef _View offsets
    cdef _View data
    cdef _View valid
    cdef bint there
    cdef Py_ssize_t rows

    def __cinit__(self, column, Py_ssize_t rows):
        self.there = column is not None
        self.rows = rows
        self.valid = None
        if self.there:
            self.offsets = _View(column.offsets)
            self.data = _View(column.data)
            if self.offsets.size // 4 <= rows:
                raise BadRows(f"{self.offsets.size // 4} offsets for {rows} rows")
            if column.valid is not None:
                self.valid = _View(column.valid)
                if self.valid.size < (rows + 7) // 8:
                    raise BadRows(f"{self.valid.size} bytes of validity for {rows} rows")

    cdef Py_ssize_t find(self, Py_ssize_t row, const uint8_t** start) except -2:
        """Where a row's bytes are, and how many; -1 for null."""
        cdef const int32_t* offsets
        cdef int32_t begin, end
        if not self.there or (self.valid is not None and not self.valid.p[row >> 3] >> (row & 7) & 1):
            return -1
        offsets = <const int32_t*> self.offsets.p
        begin = offsets[row]
        end = offsets[row + 1]
        if not 0 <= begin <= end <= self.data.size:
            raise BadRows(f"row {row} lies at {begin} to {end} of {self.data.size} bytes")
        start[0] = self.data.p + begin
        return end - begin


cdef inline Py_ssize_t varint_size(int64_t value) noexcept:
    cdef uint64_t zigzag = (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)
    cdef Py_ssize_t size = 1
    while zigzag >= 0x80:
        zigzag >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* out, int64_t value) noexcept:
    cdef uint64_t zigzag = (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)
    while zigzag >= 0x80:
        out[0] = <uint8_t> (zigzag | 0x80)
        out += 1
        zigzag >>= 7
    out[0] = <uint8_t> zigzag
    return out + 1


cdef inline Py_ssize_t field_size(Py_ssize_t size) noexcept:
    return 1 if size < 0 else varint_size(size) + size


cdef inline uint8_t* put_field(uint8_t* out, const uint8_t* start, Py_ssize_t size) noexcept:
    out = put_varint(out, size)
    if size > 0:
        memcpy(out, start, size)
        out += size
    return out


cdef Py_ssize_t headers_size(list headers) except -1:
    cdef Py_ssize_t size = varint_size(len(headers))
    cdef bytes key
    for key, value in headers:
        if key is None:  # A variable of type bytes may hold it, and it has no size to look up.
            raise BadRows("a header without a key")
        size += field_size(PyBytes_GET_SIZE(key))
        size += 1 if value is None else field_size(len(<bytes?> value))
    return size


cdef uint8_t* put_headers(uint8_t* out, list headers) except NULL:
    cdef bytes key
    out = put_varint(out, len(headers))
    for key, value in headers:
        out = put_field(out, <const uint8_t*> PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
        if value is None:
            out = put_varint(out, -1)
        else:
            out = put_field(out, <const uint8_t*> PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    return out


cdef class Encoder:
    """``rows.PlainEncoder``."""

    cdef _Column key
    cdef _Column value
    cdef _View timestamps
    cdef list headers
    cdef Py_ssize_t rows

    def __init__(self, rows):
        self.rows = rows.rows
        self.key = _Column(rows.key, self.rows)
        self.value = _Column(rows.value, self.rows)
        self.timestamps = _View(rows.timestamps)
        if self.timestamps.size // 8 < self.rows:
            raise BadRows(f"{self.timestamps.size // 8} timestamps for {self.rows} rows")
        self.headers = None if rows.headers is None else [list(found or ()) for found in rows.headers]
        if self.headers is not None and len(self.headers) < self.rows:
            raise BadRows(f"headers of {len(self.headers)} rows for {self.rows}")

    def append(
        self,
        bytearray body,
        chosen,
        Py_ssize_t start,
        int64_t base_timestamp,
        int64_t first_delta,
        Py_ssize_t max_bytes,
    ):
        cdef _View picked = _View(chosen)
        cdef const int32_t* rows = <const int32_t*> picked.p
        cdef Py_ssize_t count = picked.size // 4
        cdef Py_ssize_t position = start
        cdef Py_ssize_t used = PyByteArray_GET_SIZE(body)
        cdef Py_ssize_t room = used
        cdef Py_ssize_t row, inner, whole, key_size, value_size
        cdef const uint8_t* key_start = NULL
        cdef const uint8_t* value_start = NULL
        cdef const int64_t* times = <const int64_t*> self.timestamps.p
        cdef int64_t highest = LOWEST
        cdef int64_t timestamp, timestamp_delta, delta
        cdef uint8_t* out
        cdef list headers = None
        try:
            while position < count:
                row = rows[position]
                if not 0 <= row < self.rows:
                    raise BadRows(f"there is no row {row} among {self.rows}")
                timestamp = times[row]
                timestamp_delta = <int64_t> (<uint64_t> timestamp - <uint64_t> base_timestamp)
                delta = first_delta + position - start
                key_size = self.key.find(row, &key_start)
                value_size = self.value.find(row, &value_start)
                inner = 1 + varint_size(timestamp_delta) + varint_size(delta) + field_size(key_size) + field_size(value_size)
                if self.headers is None:
                    inner += 1
                else:
                    headers = self.headers[row]
                    inner += headers_size(headers)
                whole = varint_size(inner) + inner
                if used and used + whole > max_bytes:
                    break
                if used + whole > room:
                    room = max(used + whole, min(2 * room, max_bytes), 4096)
                    PyByteArray_Resize(body, room)
                out = put_varint(<uint8_t*> PyByteArray_AS_STRING(body) + used, inner)
                out[0] = 0
                out = put_varint(out + 1, timestamp_delta)
                out = put_varint(out, delta)
                out = put_field(out, key_start, key_size)
                out = put_field(out, value_start, value_size)
                if self.headers is None:
                    out[0] = 0
                else:
                    put_headers(out, headers)
                used += whole
                if timestamp > highest:
                    highest = timestamp
                position += 1
        finally:
            PyByteArray_Resize(body, used)
        return position, highest


cdef uint32_t murmur2(const uint8_t* data, Py_ssize_t size) noexcept:
    cdef uint32_t multiplier = 0x5BD1E995
    cdef uint32_t hashed = 0x9747B28CU ^ <uint32_t> size
    cdef uint32_t word
    cdef Py_ssize_t left = size
    while left >= 4:
        word = data[0] | <uint32_t> data[1] << 8 | <uint32_t> data[2] << 16 | <uint32_t> data[3] << 24
        word *= multiplier
        word ^= word >> 24
        hashed = (hashed * multiplier) ^ (word * multiplier)
        data += 4
        left -= 4
    if left:
        if left > 2:
            hashed ^= <uint32_t> data[2] << 16
        if left > 1:
            hashed ^= <uint32_t> data[1] << 8
        hashed ^= data[0]
        hashed *= multiplier
    hashed ^= hashed >> 13
    hashed *= multiplier
    return hashed ^ (hashed >> 15)


def partitions_of(key, Py_ssize_t count, uint32_t partitions):
    """``rows.plain_partitions``."""
    if partitions == 0:  # A division by zero would end the process.
        raise ZeroDivisionError("a topic without partitions")
    found = array("i", [-1]) * count
    cdef _Column column = _Column(key, count)
    cdef const uint8_t* start = NULL
    cdef Py_ssize_t row, size
    cdef int32_t[:] out
    if count and column.there:
        out = found
        for row in range(count):
            size = column.find(row, &start)
            if size >= 0:
                out[row] = <int32_t> ((murmur2(start, size) & 0x7FFFFFFFU) % partitions)
    return found
