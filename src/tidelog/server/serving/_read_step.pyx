# cython: language_level=3
"""What a plain-text connection does when its socket is readable, compiled: reads, splits frames, has them handled, answers.

``ReadStep`` does what ``Connection._readable`` does with ``FrameReader``, ``ConnectionMachine.received`` and ``_flush``, for a connection at
rest whose answers are small. Whatever else comes (a request that waits, an answer of several parts, a frame that is too large, a
client that does not read) it hands to the machine's own methods, which continue from where it is: it changes nothing that they would not
have changed by then. Each function named ``note_*`` is the compiled form of a method that its docstring names.
tests/property/test_read_step.py holds both equal. docs/internals/native-lane.md.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_TYPE
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t

from tidelog.broker._lane cimport Slot, big_endian, get, is_, number, put_in, slot_of

import logging
import os
import socket

from tidelog.broker.request import Session
from tidelog.model.ports import FileSlice
from tidelog.protocol.framing import FrameReader
from tidelog.server.serving.connection_machine import COALESCE_BYTES as _COALESCE_BYTES
from tidelog.server.serving.connection_machine import REQUESTS_PER_TURN as _REQUESTS_PER_TURN
from tidelog.server.serving.connection_machine import ConnectionMachine
from tidelog.server.serving.connection_states import State
from tidelog.server.serving.send_batching import Turn
from tidelog.server.serving.sending import PEER_SLOW
from tidelog.server.serving.transport import PlainTransport

cdef extern from *:
    """
    #ifdef _WIN32
    #define recv(fd, data, size, flags) (errno = EINTR, -1)  /* never called there */
    #define send(fd, data, size, flags) (errno = EINTR, -1)
    #else
    #include <sys/socket.h>
    #endif
    """
    Py_ssize_t recv(int fd, void* data, size_t size, int flags) nogil
    Py_ssize_t send(int fd, const void* data, size_t size, int flags) nogil


log = logging.getLogger("tidelog.server.serving.connection")

cdef Py_ssize_t COALESCE_BYTES = _COALESCE_BYTES
cdef int REQUESTS_PER_TURN = _REQUESTS_PER_TURN
cdef object OPEN = State.OPEN

cdef Slot machine_state = slot_of(ConnectionMachine, "state")
cdef Slot machine_handling = slot_of(ConnectionMachine, "_handling")
cdef Slot machine_driver = slot_of(ConnectionMachine, "_driver")
cdef Slot machine_sending = slot_of(ConnectionMachine, "_sending")
cdef Slot machine_reading = slot_of(ConnectionMachine, "_reading")
cdef Slot machine_peer_gone = slot_of(ConnectionMachine, "peer_gone")
cdef Slot machine_active = slot_of(ConnectionMachine, "active")
cdef Slot machine_handle = slot_of(ConnectionMachine, "handle")
cdef Slot frames_buffer = slot_of(FrameReader, "_buffer")
cdef Slot frames_view = slot_of(FrameReader, "_view")
cdef Slot frames_start = slot_of(FrameReader, "_start")
cdef Slot frames_end = slot_of(FrameReader, "_end")
cdef Slot frames_full = slot_of(FrameReader, "_full")
cdef Slot frames_more = slot_of(FrameReader, "more")
cdef Slot frames_max = slot_of(FrameReader, "_max")
cdef Slot frames_max_plain = slot_of(FrameReader, "_max_plain")
cdef Slot frames_read_ahead = slot_of(FrameReader, "_read_ahead")
cdef Slot session_timed = slot_of(Session, "timed")
cdef Slot session_received_ns = slot_of(Session, "received_ns")
cdef Slot session_bytes_in = slot_of(Session, "bytes_in")
cdef Slot session_bytes_out = slot_of(Session, "bytes_out")
cdef Slot session_loop_ns = slot_of(Session, "loop_ns")
cdef Slot turn_last = slot_of(Turn, "_last")


def read_step(connection, transport, machine, turn, clock_ns):
    """What to call when ``transport`` is readable; None for a connection that is not of the plain kind, as one with a socket of the
    simulator, whose descriptor is no descriptor of the system. ``turn``: where answers wait for the end of the loop's turn."""
    if type(transport) is not PlainTransport or type(transport._socket) is not socket.socket:
        return None
    if type(machine) is not ConnectionMachine or type(machine.frames) is not FrameReader:
        return None
    return ReadStep(connection, transport, machine, turn, clock_ns)


cdef class ReadStep:
    cdef object connection, machine, frames, session, turn, clock_ns, places
    cdef list answers
    cdef int fd

    def __init__(self, connection, transport, machine, turn, clock_ns):
        self.connection = connection
        self.machine = machine
        self.frames = machine.frames
        self.session = machine.session
        self.turn = turn
        self.clock_ns = clock_ns
        self.places = machine._places
        self.answers = machine._answers
        self.fd = transport.fd

    def __call__(self):
        machine, frames, session = self.machine, self.frames, self.session
        if not (
            is_(machine, machine_state, OPEN)
            and is_(machine, machine_driver, None)
            and is_(machine, machine_sending, False)
            and is_(machine, machine_reading, True)
            and is_(machine, machine_peer_gone, False)
            and not len(self.places)
        ):
            return self.connection._readable()
        cdef int64_t start = self.room(frames)
        buffer = get(frames, frames_buffer)
        cdef Py_ssize_t room = PyByteArray_GET_SIZE(buffer) - start
        cdef Py_ssize_t count = recv(self.fd, PyByteArray_AS_STRING(buffer) + start, room, 0)
        if count <= 0:
            if count < 0 and (errno == EAGAIN or errno == EINTR):
                return None
            if count < 0:
                log.debug("%s: %s", self.connection.peer_host, os.strerror(errno))
            machine.peer_ended()
            return None
        received_ns = self.clock_ns()
        put_in(session, session_received_ns, received_ns)
        put_in(session, session_bytes_in, get(session, session_bytes_in) + count)
        put_in(machine, machine_active, True)
        note_received(frames, start + count, count == room)
        try:
            self.requests(machine, frames, session)
        except Exception as error:
            machine._break_off(error)
        put_in(session, session_loop_ns, get(session, session_loop_ns) + (self.clock_ns() - received_ns))
        return None

    cdef int64_t room(self, frames) except -1:
        """Makes room in the buffer, as ``FrameReader.writable``; returns where it begins."""
        cdef int64_t pending = number(frames, frames_end) - number(frames, frames_start)
        cdef Py_ssize_t size = PyByteArray_GET_SIZE(get(frames, frames_buffer))
        if pending or (is_(frames, frames_full, True) and size < number(frames, frames_read_ahead)):
            frames.writable()
            return pending
        put_in(frames, frames_start, 0)
        put_in(frames, frames_end, 0)
        return 0

    cdef int requests(self, machine, frames, session) except -1:
        """``ConnectionMachine._requests``."""
        cdef int left = REQUESTS_PER_TURN
        cdef int64_t at, end, size
        cdef uint8_t* data
        cdef PyObject* part
        while left and is_(machine, machine_handling, True):
            at, end = number(frames, frames_start), number(frames, frames_end)
            if end - at < 4:
                break
            data = <uint8_t*>PyByteArray_AS_STRING(get(frames, frames_buffer)) + at
            size = big_endian(data, 4)
            if size > number(frames, frames_max) or size > number(frames, frames_max_plain):
                machine._requests(left)  # a frame that is refused, or a large Produce
                return 0
            if end - at - 4 < size:
                break
            frame = get(frames, frames_view)[at + 4 : at + 4 + size]
            note_frame(frames, at + 4 + size, end)
            left -= 1
            outgoing = get(machine, machine_handle)(session, frame)
            part = NULL
            if type(outgoing) is list and PyList_GET_SIZE(outgoing) == 1 and not len(self.places):
                part = PyList_GET_ITEM(outgoing, 0)
                if Py_TYPE(<object>part) == <PyTypeObject*>FileSlice or len(<object>part) > COALESCE_BYTES:
                    part = NULL
            if part == NULL:
                machine._requests(left, frame, outgoing)
                return 0
            self.answers.append(<object>part)
            if not is_(frames, frames_more, True):
                break
        return self.settle(machine, session, left)

    cdef int settle(self, machine, session, int left) except -1:
        """``ConnectionMachine._settle``."""
        if not (
            left
            and is_(machine, machine_state, OPEN)
            and is_(machine, machine_driver, None)
            and is_(machine, machine_reading, True)
            and is_(machine, machine_sending, False)
            and not len(self.places)
            and not PyList_GET_SIZE(get(session, session_timed))
        ):
            machine._settle(left)
            return 0
        if not PyList_GET_SIZE(self.answers):
            return 0
        if not is_(self.turn, turn_last, machine) and self.connection.defers():
            put_in(machine, machine_sending, True)
            return 0
        data = self.answers[0] if PyList_GET_SIZE(self.answers) == 1 else b"".join(self.answers)
        self.answers.clear()
        return self.send_small(machine, session, data)

    cdef int send_small(self, machine, session, data) except -1:
        """``Connection.send_small``, for a client whose requests are not timed, with what ``ConnectionMachine._flush`` does then."""
        cdef Py_buffer view
        cdef Py_ssize_t taken, size
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        size = view.len
        taken = send(self.fd, view.buf, size, 0)
        cdef int reason = errno
        PyBuffer_Release(&view)
        put_in(session, session_bytes_out, get(session, session_bytes_out) + size)
        if taken == size:
            return 0
        if taken >= 0 or reason == EAGAIN or reason == EINTR:
            self.connection._output.add((memoryview(data)[max(taken, 0) :],))
            self.connection._all_left(PEER_SLOW)
        else:
            self.connection._cannot_send(OSError(reason, os.strerror(reason)))
        put_in(machine, machine_sending, True)
        return 0


cdef int note_received(frames, int64_t end, bint full) except -1:
    """``FrameReader.received``."""
    put_in(frames, frames_end, end)
    put_in(frames, frames_full, full)
    return 0


cdef int note_frame(frames, int64_t start, int64_t end) except -1:
    """``FrameReader.next_frame``, for a frame that is whole."""
    put_in(frames, frames_start, start)
    put_in(frames, frames_more, start < end)
    return 0
