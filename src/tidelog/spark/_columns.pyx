# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""``columns.PlainColumns``, compiled. What it does and which invariants hold is written there; a test holds the two equal.

Nothing is read that ``end`` of its record does not cover, and nothing written that was not reserved: before a batch, each buffer
gets room for all that its bytes could become, so that the loop over records needs no checks of its own on what it writes.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from tidelog.records.batch import CorruptBatch
from tidelog.spark.columns import MAX_COLUMN_BYTES, HeaderColumn, Strings, Taken

cdef int64_t MAX_MS = 9223372036854775
cdef Py_ssize_t LIMIT = MAX_COLUMN_BYTES


cdef class _Buffer:
    """Bytes that grow; ``used`` of them are filled. ``expected``: how many it has at least when it grows."""

    cdef bytearray data
    cdef char* p
    cdef Py_ssize_t used
    cdef Py_ssize_t expected

    def __cinit__(self):
        self.data = bytearray()
        self.p = PyByteArray_AS_STRING(self.data)
        self.used = 0
        self.expected = 0

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t size = PyByteArray_GET_SIZE(self.data)
        cdef Py_ssize_t needed = self.used + more
        if needed > size:
            PyByteArray_Resize(self.data, max(needed, 2 * size, self.expected))
            self.p = PyByteArray_AS_STRING(self.data)
        return 0

    cdef bytearray out(self):
        cdef bytearray data = self.data
        PyByteArray_Resize(data, self.used)
        self.data = bytearray()
        self.p = PyByteArray_AS_STRING(self.data)
        self.used = 0
        return data


cdef struct Texts:
    # A column of bytes while a batch is walked. On the stack: what is written into the buffers cannot alias it.
    int32_t* ends
    uint8_t* valid
    char* data
    Py_ssize_t used
    Py_ssize_t nulls


cdef inline void add_text(Texts* to, Py_ssize_t row, const uint8_t* start, Py_ssize_t size) noexcept nogil:
    """Row number ``row``; ``size`` -1 is null."""
    cdef uint8_t bits = to.valid[row >> 3] if row & 7 else 0
    to.ends[row] = <int32_t> to.used
    if size < 0:
        to.nulls += 1
    else:
        bits |= <uint8_t> (1 << (row & 7))
        if size > 0:
            memcpy(to.data + to.used, start, size)
            to.used += size
    to.valid[row >> 3] = bits


cdef class _Strings:
    """A column of bytes. ``rows`` and ``nulls`` count what ``offsets``, ``data`` and ``valid`` hold."""

    cdef _Buffer offsets
    cdef _Buffer data
    cdef _Buffer valid
    cdef Py_ssize_t rows
    cdef Py_ssize_t nulls

    def __cinit__(self):
        self.offsets = _Buffer()
        self.data = _Buffer()
        self.valid = _Buffer()
        self.rows = 0
        self.nulls = 0

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        self.offsets.used = 4 * self.rows
        self.valid.used = (self.rows + 7) >> 3
        self.offsets.reserve(4 * (rows + 1))
        self.data.reserve(size)
        # A whole byte more than the rows need: bits of the last one are set one by one.
        self.valid.reserve(((self.rows + rows + 7) >> 3) - self.valid.used + 1)
        return 0

    cdef inline void begin(self, Texts* texts) noexcept:
        texts.ends = <int32_t*> self.offsets.p
        texts.valid = <uint8_t*> self.valid.p
        texts.data = self.data.p
        texts.used = self.data.used
        texts.nulls = self.nulls

    cdef inline void end(self, Texts* texts, Py_ssize_t rows) noexcept:
        self.data.used = texts.used
        self.nulls = texts.nulls
        self.rows = rows

    cdef inline void add(self, const uint8_t* start, Py_ssize_t size) noexcept:
        """A row; ``size`` -1 is null."""
        cdef Texts texts
        self.begin(&texts)
        add_text(&texts, self.rows, start, size)
        self.end(&texts, self.rows + 1)

    cdef object out(self):
        cdef Py_ssize_t nulls = self.nulls
        self.reserve(0, 0)
        (<int32_t*> self.offsets.p)[self.rows] = <int32_t> self.data.used
        self.offsets.used = 4 * (self.rows + 1)
        self.valid.used = (self.rows + 7) >> 3
        self.rows = 0
        self.nulls = 0
        return Strings(self.offsets.out(), self.data.out(), self.valid.out(), nulls)


cdef class CompiledColumns:
    """See ``columns.PlainColumns``."""

    cdef bint w_offset, w_timestamp, w_key, w_value, w_headers
    cdef _Buffer offsets
    cdef _Buffer timestamps
    cdef _Strings keys
    cdef _Strings values
    cdef _Buffer list_ends
    cdef _Buffer list_valid
    cdef Py_ssize_t list_nulls
    cdef _Strings header_keys
    cdef _Strings header_values
    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t nbytes

    def __cinit__(self, wanted):
        self.w_offset, self.w_timestamp, self.w_key, self.w_value, self.w_headers = wanted
        self.offsets = _Buffer()
        self.timestamps = _Buffer()
        self.keys = _Strings()
        self.values = _Strings()
        self.list_ends = _Buffer()
        self.list_valid = _Buffer()
        self.list_nulls = 0
        self.header_keys = _Strings()
        self.header_values = _Strings()
        self.rows = 0
        self.nbytes = 0

    def expect(self, Py_ssize_t rows, Py_ssize_t size):
        """See ``columns.PlainColumns.expect``."""
        self.offsets.expected = self.timestamps.expected = 8 * rows
        self.keys.offsets.expected = self.values.offsets.expected = 4 * (rows + 1)
        self.values.data.expected = size

    def append(self, body, Py_ssize_t count, int64_t base_offset, int64_t base_timestamp, append_time, int64_t first_offset,
               int64_t end_offset):
        cdef Py_buffer view
        PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
        try:
            return self._append(<const uint8_t*> view.buf, view.len, count, base_offset, base_timestamp, append_time, first_offset,
                                end_offset)
        finally:
            PyBuffer_Release(&view)

    cdef object _append(self, const uint8_t* body, Py_ssize_t size, Py_ssize_t count, int64_t base_offset, int64_t base_timestamp,
                        append_time, int64_t first_offset, int64_t end_offset):
        cdef bint fixed_time = append_time is not None
        cdef int64_t fixed = append_time if fixed_time else 0
        cdef Py_ssize_t before = self.rows
        cdef Py_ssize_t header_rows = self.header_keys.rows, header_used = self.header_keys.data.used
        cdef Py_ssize_t header_value_used = self.header_values.data.used, header_nulls = self.header_values.nulls
        cdef Py_ssize_t list_nulls = self.list_nulls
        if not 0 <= count <= size:
            raise CorruptBatch(f"{count} records claimed in {size} bytes")
        if self.nbytes + size > LIMIT:
            raise OverflowError(f"{self.nbytes} bytes of columns and {size} more: take the columns out first")
        try:
            if count:
                self._reserve(count, size)
                self._walk(body, size, count, base_offset, base_timestamp, fixed_time, fixed, first_offset, end_offset)
            elif size:
                raise CorruptBatch(f"{size} bytes after the last of 0 records")
        except BaseException:
            # As it was: headers that were added by this batch are taken back; of the other columns only bits were set, and those are cleared.
            self.header_keys.rows, self.header_keys.data.used = header_rows, header_used
            self.header_values.rows, self.header_values.data.used = header_rows, header_value_used
            self.header_values.nulls = header_nulls
            self.list_nulls = list_nulls
            self._clear_bits()
            raise
        if self.rows > before:
            self.nbytes += size
        return self.rows - before

    cdef void _clear_bits(self):
        """Bits beyond the last row, in the byte that the next row goes on with."""
        _clear_tail(self.keys.valid, self.keys.rows)
        _clear_tail(self.values.valid, self.values.rows)
        _clear_tail(self.header_keys.valid, self.header_keys.rows)
        _clear_tail(self.header_values.valid, self.header_values.rows)
        _clear_tail(self.list_valid, self.rows)

    cdef int _reserve(self, Py_ssize_t count, Py_ssize_t size) except -1:
        self.offsets.used = 8 * self.rows
        self.timestamps.used = 8 * self.rows
        if self.w_offset:
            self.offsets.reserve(8 * count)
        if self.w_timestamp:
            self.timestamps.reserve(8 * count)
        if self.w_key:
            self.keys.reserve(count, size)
        if self.w_value:
            self.values.reserve(count, size)
        if self.w_headers:
            self.list_ends.used = 4 * self.rows
            self.list_ends.reserve(4 * (count + 1))
            self.list_valid.used = (self.rows + 7) >> 3
            self.list_valid.reserve((count >> 3) + 2)
        return 0

    cdef int _walk(self, const uint8_t* data, Py_ssize_t size, Py_ssize_t count, int64_t base_offset, int64_t base_timestamp,
                   bint fixed_time, int64_t fixed, int64_t first_offset, int64_t end_offset) except -1:
        cdef const uint8_t* p = data
        cdef const uint8_t* stop = data + size
        cdef const uint8_t* end
        cdef const uint8_t* key
        cdef const uint8_t* value
        cdef int64_t length, time_delta, offset_delta, key_size, value_size, offset, timestamp, headers
        cdef Py_ssize_t index, rows = self.rows
        cdef int bad = 0
        cdef bint keep, w_offset = self.w_offset, w_timestamp = self.w_timestamp, w_key = self.w_key, w_value = self.w_value
        cdef int64_t* offsets = <int64_t*> self.offsets.p
        cdef int64_t* timestamps = <int64_t*> self.timestamps.p
        cdef Texts keys, values
        self.keys.begin(&keys)
        self.values.begin(&values)
        for index in range(count):
            p = _varint(p, stop, &length, &bad)
            if bad or length <= 0 or length > stop - p:
                raise CorruptBatch(f"record {index} of {count} does not fit into the {size} bytes of the batch")
            end = p + length
            p = _varint(p + 1, end, &time_delta, &bad)
            p = _varint(p, end, &offset_delta, &bad)
            p = _varint(p, end, &key_size, &bad)
            if bad or key_size < -1 or key_size > end - p:
                raise CorruptBatch(f"the key of record {index} has an impossible length")
            key = p
            if key_size > 0:
                p += key_size
            p = _varint(p, end, &value_size, &bad)
            if bad or value_size < -1 or value_size > end - p:
                raise CorruptBatch(f"the value of record {index} has an impossible length")
            value = p
            if value_size > 0:
                p += value_size
            offset = <int64_t> (<uint64_t> base_offset + <uint64_t> offset_delta)
            keep = first_offset <= offset < end_offset
            if p + 1 == end and p[0] == 0:
                p = end
                headers = 0
            else:
                p = _varint(p, end, &headers, &bad)
                if bad or headers < 0 or headers > (end - p) // 2:
                    raise CorruptBatch(f"the number of headers of record {index} is impossible")
                p = self._headers(p, end, headers, index, keep)
                if p != end:
                    raise CorruptBatch(f"record {index} ends before its length says")
            if not keep:
                continue
            if w_offset:
                offsets[rows] = offset
            if w_timestamp:
                timestamp = fixed if fixed_time else <int64_t> (<uint64_t> base_timestamp + <uint64_t> time_delta)
                if timestamp > MAX_MS:
                    timestamp = MAX_MS
                elif timestamp < -MAX_MS:
                    timestamp = -MAX_MS
                timestamps[rows] = timestamp * 1000
            if w_key:
                add_text(&keys, rows, key, key_size)
            if w_value:
                add_text(&values, rows, value, value_size)
            if self.w_headers:
                self._end_list(rows, headers)
            rows += 1
        if p != stop:
            raise CorruptBatch(f"{stop - p} bytes after the last of {count} records")
        self.rows = rows
        if w_key:
            self.keys.end(&keys, rows)
        if w_value:
            self.values.end(&values, rows)
        return 0

    cdef const uint8_t* _headers(self, const uint8_t* p, const uint8_t* end, int64_t count, Py_ssize_t index, bint keep) except NULL:
        """Past the headers, which are kept where they are wanted."""
        cdef int64_t i, key_size, value_size
        cdef const uint8_t* key
        cdef int bad = 0
        cdef bytes text
        keep = keep and self.w_headers
        if keep and count:
            if self.header_keys.data.used + 3 * (end - p) > LIMIT:
                raise OverflowError("more header keys than a column can hold: take the columns out first")
            self.header_keys.reserve(<Py_ssize_t> count, 3 * (end - p))
            self.header_values.reserve(<Py_ssize_t> count, end - p)
        for i in range(count):
            p = _varint(p, end, &key_size, &bad)
            if bad or key_size < 0 or key_size > end - p:
                raise CorruptBatch(f"a header key of record {index} has an impossible length")
            key = p
            p += key_size
            p = _varint(p, end, &value_size, &bad)
            if bad or value_size < -1 or value_size > end - p:
                raise CorruptBatch(f"a header value of record {index} has an impossible length")
            if keep:
                if _is_ascii(key, key_size):
                    self.header_keys.add(key, key_size)
                else:
                    # At most three bytes for each that was malformed, which is what was reserved.
                    text = (<const char*> key)[:key_size].decode("utf-8", "replace").encode()
                    self.header_keys.add(<const uint8_t*> <const char*> text, len(text))
                self.header_values.add(p, value_size)
            if value_size > 0:
                p += value_size
        return p

    cdef inline void _end_list(self, Py_ssize_t row, int64_t headers) noexcept:
        cdef uint8_t* byte = <uint8_t*> self.list_valid.p + (row >> 3)
        (<int32_t*> self.list_ends.p)[row] = <int32_t> (self.header_keys.rows - headers)
        if (row & 7) == 0:
            byte[0] = 0
        if headers:
            byte[0] |= <uint8_t> (1 << (row & 7))
        else:
            self.list_nulls += 1

    def take(self):
        """See ``columns.PlainColumns.take``."""
        cdef Py_ssize_t rows = self.rows
        cdef Py_ssize_t header_rows = self.header_keys.rows
        offset = timestamp = key = value = headers = None
        self._reserve(0, 0)
        if self.w_offset:
            offset = self.offsets.out()
        if self.w_timestamp:
            timestamp = self.timestamps.out()
        if self.w_key:
            key = self.keys.out()
        if self.w_value:
            value = self.values.out()
        if self.w_headers:
            (<int32_t*> self.list_ends.p)[rows] = <int32_t> header_rows
            self.list_ends.used = 4 * (rows + 1)
            headers = HeaderColumn(
                self.list_ends.out(), self.list_valid.out(), self.list_nulls, header_rows,
                self.header_keys.out(), self.header_values.out(),
            )
        self.list_nulls = 0
        self.rows = 0
        self.nbytes = 0
        return Taken(rows, offset, timestamp, key, value, headers)


cdef inline const uint8_t* _varint(const uint8_t* p, const uint8_t* end, int64_t* out, int* bad) noexcept nogil:
    """A zig-zag varint of up to 10 bytes, and where it ends. ``bad`` is set, and never unset, when there is none before ``end``."""
    cdef uint64_t value
    cdef int shift
    if p < end and p[0] < 0x80:
        value = p[0]
        out[0] = <int64_t> (value >> 1) ^ -<int64_t> (value & 1)
        return p + 1
    if end - p >= 2 and p[1] < 0x80:
        value = (p[0] & 0x7F) | <uint64_t> p[1] << 7
        out[0] = <int64_t> (value >> 1) ^ -<int64_t> (value & 1)
        return p + 2
    value = 0
    shift = 0
    while p < end and shift < 70:
        value |= <uint64_t> (p[0] & 0x7F) << shift
        shift += 7
        if p[0] < 0x80:
            out[0] = <int64_t> (value >> 1) ^ -<int64_t> (value & 1)
            return p + 1
        p += 1
    bad[0] = 1
    out[0] = 0
    return p


cdef inline bint _is_ascii(const uint8_t* p, int64_t size) noexcept nogil:
    cdef int64_t i
    cdef uint8_t seen = 0
    for i in range(size):
        seen |= p[i]
    return seen < 0x80


cdef void _clear_tail(_Buffer valid, Py_ssize_t rows):
    if rows & 7 and PyByteArray_GET_SIZE(valid.data) > rows >> 3:
        valid.p[rows >> 3] = valid.p[rows >> 3] & <char> ((1 << (rows & 7)) - 1)
