# cython: language_level=3
"""What the compiled lanes share: the cursor that reads a request, writers of numbers, fields of ``__slots__``, the page cache.

All of it is inlined into the module that cimports it; there is no module to import. docs/internals/native-lane.md.

Only ``take`` moves a cursor, and it compares with the end first. After a read that found too little, or something in an unusual
form, the cursor is ``odd``: whatever it returns from then on is 0 or NULL and means nothing.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_TYPE, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from *:
    """
    #ifndef TIDELOG_LANE
    #define TIDELOG_LANE
    #include "structmember.h"
    #ifdef __linux__
    #include <sys/uio.h>
    #endif

    /* Where a field of __slots__ lies in an object; -1 for what is no such field. */
    static Py_ssize_t tidelog_offset(PyObject *descriptor) {
        PyMemberDef *member;
        if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
        member = ((PyMemberDescrObject *)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }

    /* Bytes read from the page cache alone; fewer, or -1, when they are not there or cannot be had this way. in_memory: the
       whole file system is memory, so a plain read never waits. */
    static Py_ssize_t tidelog_read_cached(int fd, char *into, Py_ssize_t size, long long position, int in_memory) {
    #if defined(__linux__) && defined(RWF_NOWAIT)
        struct iovec one = {into, (size_t) size};
        return preadv2(fd, &one, 1, (off_t) position, in_memory ? 0 : RWF_NOWAIT);
    #else
        return -1;
    #endif
    }
    #endif
    """
    Py_ssize_t tidelog_offset(object descriptor)
    Py_ssize_t tidelog_read_cached(int fd, char* into, Py_ssize_t size, long long position, int in_memory) nogil


# -- the fields of Python's objects ---------------------------------------------------------------------------------------

cdef struct Slot:
    PyTypeObject* owner
    Py_ssize_t offset  # of the value in an object of exactly that class; -1: unknown
    PyObject* name


cdef inline Slot slot_of(owner, str name) except *:
    """A field that is one of the class's ``__slots__``: where it lies in an object is known, so no look-up by name is needed.
    Class and name live as long as the process."""
    cdef Slot slot
    Py_INCREF(owner)
    Py_INCREF(name)
    slot.owner = <PyTypeObject*>owner
    slot.offset = tidelog_offset(getattr(owner, name))
    slot.name = <PyObject*>name
    return slot


cdef inline PyObject** place_of(of, Slot slot) noexcept:
    """Where the value is; NULL for an object of another class, or without a value."""
    cdef PyObject** place
    if Py_TYPE(of) != slot.owner or slot.offset < 0:
        return NULL
    place = <PyObject**>(<char*><PyObject*>of + slot.offset)
    return place if place[0] != NULL else NULL


cdef inline object get(of, Slot slot):
    """``of.name``."""
    cdef PyObject** place = place_of(of, slot)
    return getattr(of, <str>slot.name) if place == NULL else <object>place[0]


cdef inline int64_t number(of, Slot slot) except? -1:
    """``of.name``, a number."""
    cdef PyObject** place = place_of(of, slot)
    return <int64_t>getattr(of, <str>slot.name) if place == NULL else <int64_t><object>place[0]


cdef inline bint is_(of, Slot slot, wanted) except -1:
    """``of.name is wanted``."""
    cdef PyObject** place = place_of(of, slot)
    return getattr(of, <str>slot.name) is wanted if place == NULL else place[0] == <PyObject*>wanted


cdef inline int put_in(of, Slot slot, value) except -1:
    """``of.name = value``."""
    cdef PyObject** place = place_of(of, slot)
    cdef PyObject* before
    if place == NULL:
        setattr(of, <str>slot.name, value)
        return 0
    before = place[0]
    Py_INCREF(value)
    place[0] = <PyObject*>value
    Py_XDECREF(before)
    return 0


cdef struct Accounts:
    Slot api_key, client_id, requests


cdef inline Accounts accounts_of(session) except *:
    """Where a ``Session`` counts for ``broker.usage``; ``session``: the class."""
    cdef Accounts found
    found.api_key, found.client_id = slot_of(session, "api_key"), slot_of(session, "client_id")
    found.requests = slot_of(session, "requests")
    return found


cdef inline int count_request(Accounts* accounts, session, switch, int64_t api_key, client_id) except -1:
    """Counts a request of the client, as the dispatcher does."""
    if number(session, accounts.api_key) != api_key or get(session, accounts.client_id) != client_id:
        switch(session, api_key, client_id)
    put_in(session, accounts.requests, number(session, accounts.requests) + 1)
    return 0


# -- reading a request ----------------------------------------------------------------------------------------------------

cdef struct Cursor:
    uint8_t* at
    uint8_t* end
    bint odd  # something was not there, or not in the usual form: what was read since then means nothing


cdef inline uint64_t big_endian(const uint8_t* at, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return value


cdef inline uint8_t* take(Cursor* cursor, int64_t size) noexcept nogil:
    """The next ``size`` bytes; NULL and ``odd`` when they are not there."""
    cdef uint8_t* at = cursor.at
    if cursor.odd or size < 0 or size > cursor.end - at:
        cursor.odd = True
        return NULL
    cursor.at = at + size
    return at


cdef inline int16_t int16(Cursor* cursor) noexcept nogil:
    cdef uint8_t* at = take(cursor, 2)
    return 0 if at == NULL else <int16_t>big_endian(at, 2)


cdef inline int32_t int32(Cursor* cursor) noexcept nogil:
    cdef uint8_t* at = take(cursor, 4)
    return 0 if at == NULL else <int32_t>big_endian(at, 4)


cdef inline int64_t int64(Cursor* cursor) noexcept nogil:
    cdef uint8_t* at = take(cursor, 8)
    return 0 if at == NULL else <int64_t>big_endian(at, 8)


cdef inline int32_t uvarint(Cursor* cursor) noexcept nogil:
    """An unsigned varint of at most 28 bits in its shortest form."""
    cdef uint32_t value = 0
    cdef int shift
    cdef uint8_t* at
    for shift in range(0, 28, 7):
        at = take(cursor, 1)
        if at == NULL:
            return 0
        value |= <uint32_t>(at[0] & 0x7F) << shift
        if at[0] < 0x80:
            if shift and not at[0]:
                cursor.odd = True
            return <int32_t>value
    cursor.odd = True
    return 0


cdef inline void expect(Cursor* cursor, uint8_t value) noexcept nogil:
    """The next byte is ``value``, or the cursor is odd."""
    cdef uint8_t* at = take(cursor, 1)
    if at != NULL and at[0] != value:
        cursor.odd = True


cdef inline object text(Cursor* cursor, int64_t size):
    """UTF-8 of ``size`` bytes; None, and the cursor is odd, when it is not."""
    cdef uint8_t* at = take(cursor, size)
    if at == NULL:
        return None
    try:
        return PyUnicode_DecodeUTF8(<char*>at, size, NULL)
    except UnicodeDecodeError:
        cursor.odd = True
        return None


# -- writing an answer ----------------------------------------------------------------------------------------------------

cdef inline uint8_t* put(uint8_t* at, uint64_t value, int size) noexcept nogil:
    """Writes ``value`` big-endian; returns the place after it."""
    cdef int i
    for i in range(size):
        at[i] = <uint8_t>(value >> (8 * (size - 1 - i)))
    return at + size


cdef inline uint8_t* put_uvarint(uint8_t* at, uint64_t value) noexcept nogil:
    while value > 0x7F:
        at[0] = <uint8_t>(value & 0x7F | 0x80)
        value >>= 7
        at += 1
    at[0] = <uint8_t>value
    return at + 1
