# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Values of records, JSON objects and Avro records without nested types, into columns in Arrow's layout. ``values`` says what for.

Of each value this decides whether it is *plain*: whether every reader takes it for the same row. A value that is plain becomes a row;
any other is left to the caller, whose own reader says what is in it or what is wrong with it. So nothing here has to be lenient, and
nothing that is in doubt is accepted: an unknown, double or escaped name, a number of another form or out of range, text that is not
UTF-8, bytes that are left over.

Nothing is read behind the end of its value, and nothing written that was not reserved: a value of n bytes adds at most n bytes to
the texts of a column.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

cdef extern from "Python.h":
    # Unlike strtod it reads a dot as a dot in every locale.
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0

KINDS = ("boolean", "int", "long", "float", "double", "text", "bytes", "date", "millis", "micros")
"""``values.KINDS``: that module cannot be imported without pyarrow, this one can."""

cdef enum:
    BOOLEAN = 0
    INT = 1
    LONG = 2
    FLOAT = 3
    DOUBLE = 4
    TEXT = 5
    BYTES = 6
    DATE = 7
    MILLIS = 8
    MICROS = 9

cdef int64_t DAY_US = 86400000000
cdef int64_t FIRST_DAY = -719162  # 0001-01-01
cdef int64_t LAST_DAY = 2932896  # 9999-12-31
cdef Py_ssize_t LONGEST = 1 << 20
"""A longer value is not plain."""
cdef int LONGEST_NUMBER = 40
cdef double[23] POWERS
for _index in range(23):
    POWERS[_index] = 10.0 ** _index


cdef struct Slot:
    # What a value says of one field.
    bint there
    int64_t number
    double real
    const uint8_t* start
    Py_ssize_t size
    bint escaped


cdef class _Buffer:
    """Bytes that grow; ``used`` of them are filled."""

    cdef bytearray data
    cdef char* p
    cdef Py_ssize_t used

    def __cinit__(self):
        self.data = bytearray()
        self.p = PyByteArray_AS_STRING(self.data)
        self.used = 0

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t size = PyByteArray_GET_SIZE(self.data)
        cdef Py_ssize_t needed = self.used + more
        if needed > size:
            PyByteArray_Resize(self.data, needed if needed > 2 * size else 2 * size)
            self.p = PyByteArray_AS_STRING(self.data)
        return 0

    cdef bytearray out(self):
        cdef bytearray data = self.data
        PyByteArray_Resize(data, self.used)
        return data


cdef class _Column:
    """A column that grows row by row. ``data``: numbers or bits, or a text's bytes, which ``ends`` divide."""

    cdef int kind
    cdef _Buffer data
    cdef _Buffer ends
    cdef _Buffer valid
    cdef Py_ssize_t nulls

    def __cinit__(self, int kind):
        self.kind = kind
        self.data = _Buffer()
        self.ends = _Buffer()
        self.valid = _Buffer()
        self.nulls = 0

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        self.valid.reserve((rows + 7) // 8)
        memset(self.valid.p, 0, (rows + 7) // 8)
        self.valid.used = (rows + 7) // 8
        if self.kind == TEXT or self.kind == BYTES:
            self.ends.reserve(4 * (rows + 1))
            (<int32_t*> self.ends.p)[0] = 0
            self.data.reserve(size)
        elif self.kind == BOOLEAN:
            self.data.reserve((rows + 7) // 8)
            memset(self.data.p, 0, (rows + 7) // 8)
            self.data.used = (rows + 7) // 8
        else:
            self.data.reserve(8 * rows)
        return 0

    cdef inline void add(self, Py_ssize_t row, Slot* slot) noexcept:
        cdef uint8_t bit = <uint8_t> (1 << (row & 7))
        if slot.there:
            self.valid.p[row >> 3] = <char> (<uint8_t> self.valid.p[row >> 3] | bit)
        else:
            self.nulls += 1
        if self.kind == TEXT or self.kind == BYTES:
            if slot.there and slot.size > 0:
                if slot.escaped:
                    self.data.used += unescape(slot.start, slot.size, <uint8_t*> self.data.p + self.data.used)
                else:
                    memcpy(self.data.p + self.data.used, slot.start, slot.size)
                    self.data.used += slot.size
            (<int32_t*> self.ends.p)[row + 1] = <int32_t> self.data.used
        elif self.kind == BOOLEAN:
            if slot.there and slot.number:
                self.data.p[row >> 3] = <char> (<uint8_t> self.data.p[row >> 3] | bit)
        elif self.kind == INT or self.kind == DATE:
            (<int32_t*> self.data.p)[row] = <int32_t> slot.number if slot.there else 0
        elif self.kind == FLOAT:
            (<float*> self.data.p)[row] = <float> slot.real if slot.there else 0
        elif self.kind == DOUBLE:
            (<double*> self.data.p)[row] = slot.real if slot.there else 0
        else:
            (<int64_t*> self.data.p)[row] = slot.number if slot.there else 0

    cdef object out(self, Py_ssize_t rows):
        """(validity bitmap, or None without nulls; ends, or None; data; nulls)."""
        self.valid.used = (rows + 7) // 8
        if self.kind == TEXT or self.kind == BYTES:
            self.ends.used = 4 * (rows + 1)
            return self.valid.out() if self.nulls else None, self.ends.out(), self.data.out(), self.nulls
        if self.kind == BOOLEAN:
            self.data.used = (rows + 7) // 8
        else:
            self.data.used = rows * (4 if self.kind in (INT, DATE, FLOAT) else 8)
        return self.valid.out() if self.nulls else None, None, self.data.out(), self.nulls


cdef class ValueDecoder:
    """``fields``: (name as UTF-8, kind, required, index of null in an Avro union, or -1), in the order of the columns and of Avro.

    ``schema_id`` -1: without a registry's header; else five bytes precede each value, and one with another id is not plain.
    """

    cdef bint json
    cdef Py_ssize_t count
    cdef list names
    cdef int* kinds
    cdef bint* required
    cdef int* null_index
    cdef const uint8_t** name_p
    cdef Py_ssize_t* name_size
    cdef Slot* slots
    cdef bint* seen
    cdef int64_t schema_id

    def __cinit__(self, bint json, fields, int64_t schema_id=-1):
        cdef Py_ssize_t index
        self.count = len(fields)
        self.json = json
        self.schema_id = schema_id
        self.names = [bytes(field[0]) for field in fields]
        cdef Py_ssize_t room = self.count + 1
        self.kinds = <int*> PyMem_Malloc(room * sizeof(int))
        self.required = <bint*> PyMem_Malloc(room * sizeof(bint))
        self.null_index = <int*> PyMem_Malloc(room * sizeof(int))
        self.name_p = <const uint8_t**> PyMem_Malloc(room * sizeof(void*))
        self.name_size = <Py_ssize_t*> PyMem_Malloc(room * sizeof(Py_ssize_t))
        self.slots = <Slot*> PyMem_Malloc(room * sizeof(Slot))
        self.seen = <bint*> PyMem_Malloc(room * sizeof(bint))
        if not (self.kinds and self.required and self.null_index and self.name_p and self.name_size and self.slots and self.seen):
            raise MemoryError
        for index, (_, kind, required, null_index) in enumerate(fields):
            self.kinds[index] = KINDS.index(kind)
            self.required[index] = required
            self.null_index[index] = null_index
            self.name_p[index] = <const uint8_t*> (<char*> (<bytes> self.names[index]))
            self.name_size[index] = len(self.names[index])

    def __dealloc__(self):
        PyMem_Free(self.kinds)
        PyMem_Free(self.required)
        PyMem_Free(self.null_index)
        PyMem_Free(self.name_p)
        PyMem_Free(self.name_size)
        PyMem_Free(self.slots)
        PyMem_Free(self.seen)

    def decode(self, const uint8_t[::1] ends, const uint8_t[::1] data, valid, Py_ssize_t first, Py_ssize_t rows, keys=None,
               bint odd=False):
        """Values ``first`` to before ``first + rows`` of an Arrow column: int32 ``ends``, ``data``, and a bitmap or None.

        ``keys``: the same of another column whose texts must be UTF-8, or None. Returns a bitmap of the rows that are plain, how
        many there are, and their columns as (validity or None, ends or None, data, nulls). A null is plain, with every field null.
        ``odd``: the bitmap is of the rows that are not plain, and no columns are made.
        """
        cdef const uint8_t[::1] bits, key_ends, key_data, key_bits
        cdef bint has_bits = valid is not None, has_keys = keys is not None, has_key_bits = False
        cdef const int32_t* at
        cdef const int32_t* key_at = NULL
        cdef Py_ssize_t row, index, field, plain = 0, total = data.shape[0]
        cdef _Column column
        if ends.shape[0] // 4 <= first + rows or first < 0 or rows < 0:
            raise ValueError(f"{ends.shape[0] // 4} ends for {first + rows} rows")
        at = <const int32_t*> &ends[0]
        if has_bits:
            bits = valid
            if bits.shape[0] * 8 < first + rows:
                raise ValueError(f"{bits.shape[0]} bytes of validity for {first + rows} rows")
        if has_keys:
            key_ends, key_data = keys[0], keys[1]
            has_key_bits = keys[2] is not None
            if key_ends.shape[0] // 4 <= first + rows:
                raise ValueError(f"{key_ends.shape[0] // 4} ends of keys for {first + rows} rows")
            key_at = <const int32_t*> &key_ends[0]
            if has_key_bits:
                key_bits = keys[2]
                if key_bits.shape[0] * 8 < first + rows:
                    raise ValueError(f"{key_bits.shape[0]} bytes of validity for {first + rows} keys")
        cdef Py_ssize_t begin, end
        for index in range(first, first + rows):
            if not 0 <= at[index] <= at[index + 1] <= total:
                raise ValueError(f"value {index} lies at {at[index]} to {at[index + 1]} of {total} bytes")
            if has_keys and not 0 <= key_at[index] <= key_at[index + 1] <= key_data.shape[0]:
                raise ValueError(f"key {index} lies at {key_at[index]} to {key_at[index + 1]} of {key_data.shape[0]} bytes")
        cdef Py_ssize_t size = at[first + rows] - at[first] if rows else 0
        cdef bytearray mask = bytearray((rows + 7) // 8)
        cdef uint8_t* out = <uint8_t*> PyByteArray_AS_STRING(mask)
        cdef Py_ssize_t made_of = 0 if odd else self.count
        columns = [_Column(self.kinds[field]) for field in range(made_of)]
        for made in columns:
            column = made
            column.reserve(rows, size)
        cdef const uint8_t* start = &data[0] if total else NULL
        cdef bint is_plain
        for index in range(first, first + rows):
            row = index - first
            for field in range(self.count):
                self.slots[field].there = False
                self.seen[field] = False
            begin, end = at[index], at[index + 1]
            if has_bits and not bits[index >> 3] >> (index & 7) & 1:
                is_plain = True
            elif end - begin > LONGEST or begin == end:
                is_plain = False
            else:
                is_plain = self._one(start + begin, end - begin)
            if is_plain and has_keys and not (has_key_bits and not key_bits[index >> 3] >> (index & 7) & 1):
                if key_at[index] != key_at[index + 1]:
                    is_plain = is_utf8(&key_data[0] + key_at[index], key_at[index + 1] - key_at[index])
            if is_plain != odd:
                out[row >> 3] |= <uint8_t> (1 << (row & 7))
            if is_plain:
                for field in range(made_of):
                    column = <_Column> columns[field]
                    column.add(plain, &self.slots[field])
                plain += 1
        return mask, plain, [(<_Column> column).out(plain) for column in columns]

    cdef bint _one(self, const uint8_t* p, Py_ssize_t size) noexcept:
        cdef const uint8_t* stop = p + size
        cdef int64_t found
        if self.schema_id >= 0:
            if size < 5 or p[0] != 0:
                return False
            found = (<int64_t> p[1] << 24) | (<int64_t> p[2] << 16) | (<int64_t> p[3] << 8) | p[4]
            if not self.json and found != self.schema_id:
                return False
            p += 5
        return self._json(p, stop) if self.json else self._avro(p, stop)

    cdef bint _json(self, const uint8_t* p, const uint8_t* stop) noexcept:
        cdef Py_ssize_t field, next_field = 0
        cdef const uint8_t* name
        cdef Py_ssize_t size
        cdef bint escaped = False
        if not is_utf8(p, stop - p):
            return False
        p = skip(p, stop)
        if p == stop or p[0] != c"{":
            return False
        p = skip(p + 1, stop)
        if p < stop and p[0] == c"}":
            p += 1
        else:
            while True:
                if p == stop or p[0] != c'"':
                    return False
                name = p + 1
                p = text_end(name, stop, &escaped)
                if p == NULL or escaped:
                    return False
                size = p - name
                field = self._field(name, size, next_field)
                if field < 0 or self.seen[field]:
                    return False
                self.seen[field] = True
                next_field = field + 1
                p = skip(p + 1, stop)
                if p == stop or p[0] != c":":
                    return False
                p = json_value(skip(p + 1, stop), stop, self.kinds[field], &self.slots[field])
                if p == NULL:
                    return False
                p = skip(p, stop)
                if p == stop:
                    return False
                if p[0] == c"}":
                    p += 1
                    break
                if p[0] != c",":
                    return False
                p = skip(p + 1, stop)
        if skip(p, stop) != stop:
            return False
        for field in range(self.count):
            if self.required[field] and not self.slots[field].there:
                return False
        return True

    cdef inline Py_ssize_t _field(self, const uint8_t* name, Py_ssize_t size, Py_ssize_t expected) noexcept:
        """The field of a name, the expected one first; -1 for none."""
        cdef Py_ssize_t field
        if expected < self.count and self.name_size[expected] == size and not memcmp(self.name_p[expected], name, size):
            return expected
        for field in range(self.count):
            if self.name_size[field] == size and not memcmp(self.name_p[field], name, size):
                return field
        return -1

    cdef bint _avro(self, const uint8_t* p, const uint8_t* stop) noexcept:
        cdef Py_ssize_t field
        cdef int64_t branch = 0
        for field in range(self.count):
            if self.null_index[field] >= 0:
                p = varint(p, stop, &branch)
                if p == NULL or branch < 0 or branch > 1:
                    return False
                if branch == self.null_index[field]:
                    continue
            p = avro_value(p, stop, self.kinds[field], &self.slots[field])
            if p == NULL:
                return False
            self.slots[field].there = True
            self.slots[field].escaped = False
        return p == stop


cdef inline const uint8_t* varint(const uint8_t* p, const uint8_t* stop, int64_t* out) noexcept:
    """A zigzag number of at most nine bytes: what needs ten is not plain."""
    cdef uint64_t value = 0
    cdef int shift = 0
    while p < stop and shift < 63:
        value |= <uint64_t> (p[0] & 0x7F) << shift
        if not p[0] & 0x80:
            out[0] = <int64_t> (value >> 1) ^ -<int64_t> (value & 1)
            return p + 1
        p += 1
        shift += 7
    return NULL


cdef inline const uint8_t* avro_value(const uint8_t* p, const uint8_t* stop, int kind, Slot* slot) noexcept:
    cdef float single
    cdef int64_t size = 0
    if kind == TEXT or kind == BYTES:
        p = varint(p, stop, &size)
        if p == NULL or size < 0 or size > stop - p:
            return NULL
        if kind == TEXT and not is_utf8(p, size):
            return NULL
        slot.start, slot.size = p, size
        return p + size
    if kind == BOOLEAN:
        if p == stop or p[0] > 1:
            return NULL
        slot.number = p[0]
        return p + 1
    if kind == DOUBLE:
        if stop - p < 8:
            return NULL
        memcpy(&slot.real, p, 8)
        return p + 8 if isfinite(slot.real) else NULL
    if kind == FLOAT:
        if stop - p < 4:
            return NULL
        memcpy(&single, p, 4)
        slot.real = single
        return p + 4 if isfinite(slot.real) else NULL
    p = varint(p, stop, &slot.number)
    if p == NULL:
        return NULL
    if kind == INT and not -2147483648 <= slot.number <= 2147483647:
        return NULL
    if kind == DATE and not FIRST_DAY <= slot.number <= LAST_DAY:
        return NULL
    if kind == MILLIS:
        if not FIRST_DAY * 86400000 <= slot.number < (LAST_DAY + 1) * 86400000:
            return NULL
        slot.number *= 1000
    if kind == MICROS and not FIRST_DAY * DAY_US <= slot.number < (LAST_DAY + 1) * DAY_US:
        return NULL
    return p


cdef inline const uint8_t* skip(const uint8_t* p, const uint8_t* stop) noexcept:
    while p < stop and (p[0] == 0x20 or p[0] == 0x0A or p[0] == 0x0D or p[0] == 0x09):
        p += 1
    return p


cdef inline const uint8_t* text_end(const uint8_t* p, const uint8_t* stop, bint* escaped) noexcept:
    """Where the closing quote is; NULL for a text that is not plain."""
    escaped[0] = False
    while p < stop:
        if p[0] == c'"':
            return p
        if p[0] < 0x20:
            return NULL
        if p[0] == c"\\":
            escaped[0] = True
            p += 1
            if p == stop:
                return NULL
            if p[0] == c"u":
                p = escape_end(p + 1, stop)
                if p == NULL:
                    return NULL
                continue
            if p[0] not in (c'"', c"\\", c"/", c"b", c"f", c"n", c"r", c"t"):
                return NULL
        p += 1
    return NULL


cdef inline int hex4(const uint8_t* p) noexcept:
    """The number of four hexadecimal digits; -1."""
    cdef int value = 0, index, digit
    for index in range(4):
        digit = p[index]
        if c"0" <= digit <= c"9":
            digit -= c"0"
        elif c"a" <= (digit | 0x20) <= c"f":
            digit = (digit | 0x20) - c"a" + 10
        else:
            return -1
        value = value << 4 | digit
    return value


cdef inline const uint8_t* escape_end(const uint8_t* p, const uint8_t* stop) noexcept:
    """Behind the digits at ``p`` and, for the first half of a pair, behind the second; NULL for a half alone."""
    cdef int high, low
    if stop - p < 4:
        return NULL
    high = hex4(p)
    if high <= 0 or 0xDC00 <= high <= 0xDFFF:
        return NULL
    if high < 0xD800 or high > 0xDBFF:
        return p + 4
    if stop - p < 10 or p[4] != c"\\" or p[5] != c"u":
        return NULL
    low = hex4(p + 6)
    return p + 10 if 0xDC00 <= low <= 0xDFFF else NULL


cdef Py_ssize_t unescape(const uint8_t* p, Py_ssize_t size, uint8_t* out) noexcept:
    """Write a text that ``text_end`` accepted without its escapes: no more bytes than it has. Returns how many."""
    cdef const uint8_t* stop = p + size
    cdef uint8_t* begin = out
    cdef uint32_t code
    while p < stop:
        if p[0] != c"\\":
            out[0] = p[0]
            out += 1
            p += 1
            continue
        p += 1
        if p[0] == c"u":
            code = <uint32_t> hex4(p + 1)
            p += 5
            if 0xD800 <= code <= 0xDBFF:
                code = 0x10000 + ((code - 0xD800) << 10) + (<uint32_t> hex4(p + 2) - 0xDC00)
                p += 6
            if code < 0x80:
                out[0] = <uint8_t> code
                out += 1
            elif code < 0x800:
                out[0] = <uint8_t> (0xC0 | code >> 6)
                out[1] = <uint8_t> (0x80 | code & 0x3F)
                out += 2
            elif code < 0x10000:
                out[0] = <uint8_t> (0xE0 | code >> 12)
                out[1] = <uint8_t> (0x80 | code >> 6 & 0x3F)
                out[2] = <uint8_t> (0x80 | code & 0x3F)
                out += 3
            else:
                out[0] = <uint8_t> (0xF0 | code >> 18)
                out[1] = <uint8_t> (0x80 | code >> 12 & 0x3F)
                out[2] = <uint8_t> (0x80 | code >> 6 & 0x3F)
                out[3] = <uint8_t> (0x80 | code & 0x3F)
                out += 4
            continue
        if p[0] == c"b":
            out[0] = 0x08
        elif p[0] == c"f":
            out[0] = 0x0C
        elif p[0] == c"n":
            out[0] = 0x0A
        elif p[0] == c"r":
            out[0] = 0x0D
        elif p[0] == c"t":
            out[0] = 0x09
        else:
            out[0] = p[0]
        out += 1
        p += 1
    return out - begin


cdef inline const uint8_t* json_value(const uint8_t* p, const uint8_t* stop, int kind, Slot* slot) noexcept:
    """Behind the value at ``p``; NULL for one that is not plain."""
    cdef const uint8_t* end
    cdef bint escaped = False
    if p == stop:
        return NULL
    if p[0] == c"n":
        return p + 4 if stop - p >= 4 and not memcmp(p, b"null", 4) else NULL
    slot.there = True
    slot.escaped = False
    if p[0] == c'"':
        end = text_end(p + 1, stop, &escaped)
        if end == NULL:
            return NULL
        slot.start, slot.size, slot.escaped = p + 1, end - p - 1, escaped
        if kind == TEXT:
            return end + 1
        if escaped:
            return NULL
        if kind == MICROS:
            return end + 1 if instant(slot) else NULL
        if kind == DATE and slot.size == 10:
            slot.number = day(slot.start)
            return end + 1 if slot.number >= FIRST_DAY else NULL
        return NULL
    if kind == BOOLEAN:
        if p[0] == c"t":
            slot.number = 1
            return p + 4 if stop - p >= 4 and not memcmp(p, b"true", 4) else NULL
        slot.number = 0
        return p + 5 if stop - p >= 5 and not memcmp(p, b"false", 5) else NULL
    if kind == INT or kind == LONG or kind == DOUBLE:
        return json_number(p, stop, kind, slot)
    return NULL


cdef const uint8_t* json_number(const uint8_t* p, const uint8_t* stop, int kind, Slot* slot) noexcept:
    cdef const uint8_t* start = p
    cdef bint negative = p[0] == c"-", whole = True
    cdef uint64_t digits = 0
    cdef int count = 0, scale = 0, exponent = 0, exponent_digits = 0
    cdef bint down = False
    cdef char[48] text
    if negative:
        p += 1
    if p == stop or not c"0" <= p[0] <= c"9":
        return NULL
    if p[0] == c"0" and p + 1 < stop and c"0" <= p[1] <= c"9":
        return NULL
    while p < stop and c"0" <= p[0] <= c"9":
        digits = digits * 10 + (p[0] - c"0")
        count += 1
        if count > 18:
            return NULL
        p += 1
    if p < stop and p[0] == c".":
        whole = False
        p += 1
        if p == stop or not c"0" <= p[0] <= c"9":
            return NULL
        while p < stop and c"0" <= p[0] <= c"9":
            digits = digits * 10 + (p[0] - c"0")
            count += 1
            scale += 1
            if count > 18:
                return NULL
            p += 1
    if p < stop and (p[0] | 0x20) == c"e":
        whole = False
        p += 1
        if p < stop and (p[0] == c"+" or p[0] == c"-"):
            down = p[0] == c"-"
            p += 1
        while p < stop and c"0" <= p[0] <= c"9":
            exponent = exponent * 10 + (p[0] - c"0")
            exponent_digits += 1
            if exponent_digits > 3:
                return NULL
            p += 1
        if not exponent_digits:
            return NULL
    if negative and not digits:
        return NULL
    if kind != DOUBLE:
        slot.number = -<int64_t> digits if negative else <int64_t> digits
        if not whole or (kind == INT and not -2147483648 <= slot.number <= 2147483647):
            return NULL
        return p
    exponent = (-exponent if down else exponent) - scale
    if digits <= 9007199254740992 and -22 <= exponent <= 22:
        # Both factors are exact, so the result is the nearest one.
        slot.real = digits / POWERS[-exponent] if exponent < 0 else digits * POWERS[exponent]
        if negative:
            slot.real = -slot.real
        return p
    if p - start > LONGEST_NUMBER:
        return NULL
    memcpy(text, start, p - start)
    text[p - start] = 0
    slot.real = real_of(text)
    return p if isfinite(slot.real) else NULL


cdef double real_of(const char* text) noexcept:
    """The number nearest to a decimal text; infinite for one that is too large."""
    try:
        return PyOS_string_to_double(text, NULL, OverflowError)
    except (OverflowError, ValueError):
        return INFINITY


cdef inline int two(const uint8_t* p) noexcept:
    """The number of two digits; -1."""
    if not (c"0" <= p[0] <= c"9" and c"0" <= p[1] <= c"9"):
        return -1
    return (p[0] - c"0") * 10 + p[1] - c"0"


cdef int64_t day(const uint8_t* p) noexcept:
    """Days since 1970 of YYYY-MM-DD; less than FIRST_DAY for what is none."""
    cdef int64_t century = two(p), rest = two(p + 2), month = two(p + 5), number = two(p + 8), year, era, in_era, in_year
    cdef int64_t last
    if century < 0 or rest < 0 or month < 1 or month > 12 or number < 1 or p[4] != c"-" or p[7] != c"-":
        return FIRST_DAY - 1
    year = century * 100 + rest
    last = 31 if month in (1, 3, 5, 7, 8, 10, 12) else 30
    if month == 2:
        last = 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    if number > last or year < 1:
        return FIRST_DAY - 1
    # Years from March on, so that a leap day is the last one; eras of 400 years.
    if month <= 2:
        year -= 1
    era = year // 400
    in_era = year - era * 400
    in_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + number - 1
    return era * 146097 + in_era * 365 + in_era // 4 - in_era // 100 + in_year - 719468


cdef bint instant(Slot* slot) noexcept:
    """Whether the text is YYYY-MM-DDTHH:MM:SS, a fraction of one to six digits or none, and Z; its microseconds."""
    cdef const uint8_t* p = slot.start
    cdef int64_t days, hour, minute, second, fraction = 0
    cdef Py_ssize_t index, digits
    if slot.size < 20 or slot.size > 27 or slot.size == 21 or p[10] != c"T" or p[13] != c":" or p[16] != c":":
        return False
    if p[slot.size - 1] != c"Z":
        return False
    days = day(p)
    hour, minute, second = two(p + 11), two(p + 14), two(p + 17)
    if days < FIRST_DAY or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return False
    digits = slot.size - 21
    if slot.size > 20:
        if p[19] != c".":
            return False
        for index in range(digits):
            if not c"0" <= p[20 + index] <= c"9":
                return False
            fraction = fraction * 10 + (p[20 + index] - c"0")
        for index in range(digits, 6):
            fraction *= 10
    slot.number = days * DAY_US + ((hour * 60 + minute) * 60 + second) * 1000000 + fraction
    return True


cdef bint is_utf8(const uint8_t* p, Py_ssize_t size) noexcept:
    """Well-formed UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF."""
    cdef const uint8_t* stop = p + size
    cdef uint64_t eight
    cdef uint8_t lead
    while p < stop:
        if stop - p >= 8:
            memcpy(&eight, p, 8)
            if not eight & 0x8080808080808080u:
                p += 8
                continue
        lead = p[0]
        if lead < 0x80:
            p += 1
        elif lead < 0xC2:
            return False
        elif lead < 0xE0:
            if stop - p < 2 or p[1] & 0xC0 != 0x80:
                return False
            p += 2
        elif lead < 0xF0:
            if stop - p < 3 or p[1] & 0xC0 != 0x80 or p[2] & 0xC0 != 0x80:
                return False
            if (lead == 0xE0 and p[1] < 0xA0) or (lead == 0xED and p[1] >= 0xA0):
                return False
            p += 3
        else:
            if lead > 0xF4 or stop - p < 4 or p[1] & 0xC0 != 0x80 or p[2] & 0xC0 != 0x80 or p[3] & 0xC0 != 0x80:
                return False
            if (lead == 0xF0 and p[1] < 0x90) or (lead == 0xF4 and p[1] >= 0x90):
                return False
            p += 4
    return True
