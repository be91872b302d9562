# cython: language_level=3
"""Followers' fetches in a session, compiled: from the frame to the answer, or to a wait and from its end to the answer.

``broker.dispatch``, ``broker.apis.records.fetch`` and ``replication.fetch`` do the same in Python, and everything that is not taken
here; a property test holds the two equal. A request is looked at without changing anything: what is asked for, the session, each
partition, the permissions. What then is unusual goes to the twin, which starts from the frame. From ``_take`` on there is no way
back to the frame: what turns out to be unusual later, because a position that moved the high watermark let a coordinator append,
or because partitions changed during the wait, is read again and answered by the twin.

What changes is changed by its owner's methods, with three exceptions that the twin writes too: the counters of a topic, a
partition's ``stale``, ``read_stable_offset`` and ``held_back``, and when the follower has fetched last.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tidelog.broker._lane cimport (
    Accounts, Cursor, accounts_of, count_request, expect, int16, int32, int64, put, put_uvarint, take, text,
    tidelog_read_cached, uvarint,
)

from tidelog.broker.answer_types import Waiting
from tidelog.broker.apis.records.fetch import fetch, proceed, refused
from tidelog.broker.apis.records.readable import ReadGate
from tidelog.broker.request import RequestContext, Session
from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSlice
from tidelog.protocol.fastpath import FetchResult, FetchView, encode_fetch_response, read_fetch
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetch_sessions import FetchContext
from tidelog.replication.reads import PartitionRead
from tidelog.server.disk import DiskFile

cdef enum:
    PRODUCE = 0
    FETCH = 1
    FIRST_VERSION = 15  # with topic ids, and the follower in a tag
    LAST_VERSION = 18
    HEAD_BYTES = 32  # of an answer, before the first topic and after the last, at most
    TOPIC_BYTES = 32  # of a topic in an answer, at most
    RESULT_BYTES = 48  # of a partition in an answer, at most, without its records
    INLINE_BYTES = 65536  # records of an answer that are copied into it, which then leaves in one piece
    STATE_CHANGED = -1
    LOOKS_BACK = 3

_NONE, _SUPERSEDED, _NO_SESSION = (
    ErrorCode.NONE, ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
)
_FOLLOWERS = FetchView()
_FOLLOWERS.replica_id = 0
cdef Accounts accounts = accounts_of(Session)


def follower_lane(node, served, dispatcher):
    """``follower_lane.MakeLane``."""
    return FollowerLane(node, served, dispatcher) if served.handler is fetch and served.read is read_fetch else None


cdef class Found:
    """What a read of one partition found. To its owners it is a ``PartitionRead`` without an error."""

    cdef object wanted, partition, file
    cdef int64_t position, offset
    cdef readonly int64_t high_watermark, last_stable_offset, log_start_offset, size
    cdef readonly bint caught_up

    @property
    def is_news(self):
        return False


cdef class Poll:
    """A fetch in progress, and its wait: a ``purgatory.Parked``."""

    cdef FollowerLane lane
    cdef object connection, client_id, session, caller, gate, acls
    cdef int16_t version
    cdef int32_t correlation_id, session_id, epoch
    cdef int64_t max_bytes, min_bytes, bytes_read, missing, even_deadline_ms
    cdef dict found, touched
    cdef bint watching
    cdef public object deadline_ms, on_done
    cdef public bint done, expired

    @property
    def operation(self):
        return "Fetch"

    @property
    def places(self):
        return 1 if self.watching else 0

    def finish(self):
        if self.done:
            return
        self.done = True
        if self.watching:
            self.watching = False
            self.session.watchers.pop(self, None)
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done()

    def changed(self, partition, key, new_bytes):
        """As ``ParkedFetch.changed``, for a follower."""
        cdef int64_t more = new_bytes
        self.touched[key] = None
        if more == STATE_CHANGED:
            self.finish()
            return
        self.missing -= more
        if self.missing <= 0:
            self.finish()

    cdef object context(self):
        """The request as handlers see it."""
        return RequestContext(self.lane.node, self.connection, FETCH, self.version, self.correlation_id, self.client_id)

    # -- from here on, there is no way back to the frame -----------------------------------------------------------------------

    cdef object read_all(self, list due):
        """Reads these partitions; then the answer, a wait, or what the twin makes of it."""
        cdef Found one
        cdef int number
        cdef bint late = True
        for number in range(len(due)):
            if not self.read(due[number]):
                return self.twin(due[number:])
        # What the follower's positions made safe may have let a coordinator append: nothing watches until the wait begins.
        for number in range(LOOKS_BACK):
            if not late:
                break
            late = False
            for wanted in list(self.found):
                one = self.found[wanted]
                log = one.partition.log
                if one.caught_up and log is not None and <int64_t> log.files.end_offset > one.offset:
                    late = True
                    if not self.read(wanted):
                        return self.twin([wanted])
        if self.bytes_read >= self.min_bytes or self.expired:
            return self.answer()
        if not self.done:  # it has not waited yet
            return None
        even_ms = self.lane.runtime.even_ms()
        if even_ms >= self.even_deadline_ms:
            return self.answer()
        return self.again().park(even_ms)

    cdef bint read(self, wanted) except -1:
        """Reads one partition; False when that is the twin's."""
        cdef int64_t offset, end, left, position, size
        cdef Found before = self.found.get(wanted)
        partition = wanted.partition
        caller = self.caller
        offset = wanted.fetch_offset
        if not _is_plain(partition, caller, caller.broker_epoch, wanted.current_leader_epoch, offset, wanted.last_fetched_epoch):
            return False
        log = partition.log
        error = partition.note_follower(log, caller, offset, wanted.follower_start, wanted.current_leader_epoch)
        if error is not _NONE or partition.log is not log:
            return False
        files = log.files
        segment = files.segments.active
        end = files.end_offset
        if before is not None:
            self.bytes_read -= before.size
            before.size = 0
        size = position = 0
        left = min(self.max_bytes - self.bytes_read, <int64_t> wanted.max_bytes)
        if offset < end and (left > 0 or self.bytes_read == 0):
            position = segment.recent_position(offset)
            size = <int64_t> segment.size - position
            if position < 0 or size <= 0 or size > left or offset < <int64_t> segment.base_offset:
                return False
        cdef Found one = Found.__new__(Found)
        one.wanted, one.partition, one.offset, one.position, one.size = wanted, partition, offset, position, size
        if size:
            try:
                one.file = segment.file
            except OSError:
                return False
        one.caught_up = offset >= end
        one.high_watermark, one.last_stable_offset = log.high_watermark, log.last_stable_offset
        one.log_start_offset = log.log_start_offset
        partition.stats.total_fetch_requests += 1
        wanted.stale = False
        wanted.read_stable_offset, wanted.held_back = one.last_stable_offset, one.last_stable_offset < one.high_watermark
        self.bytes_read += size
        self.found[wanted] = one
        return True

    cdef object park(self, int64_t even_ms):
        """The wait, until there is enough or it is ``even_deadline_ms`` by the even clock."""
        self.deadline_ms = self.lane.runtime.now_ms() + self.even_deadline_ms - even_ms
        self.missing = self.min_bytes - self.bytes_read
        self.touched = {}
        session = self.session
        for wanted in self.found:
            session.watch(wanted)
        session.watchers[self] = None
        self.watching = True
        return LaneWait(self)

    cdef Poll again(self):
        """This fetch with another wait; a wait ends once."""
        cdef Poll poll = Poll.__new__(Poll)
        poll.lane, poll.connection, poll.client_id, poll.session = self.lane, self.connection, self.client_id, self.session
        poll.caller, poll.gate, poll.acls = self.caller, self.gate, self.acls
        poll.version, poll.correlation_id = self.version, self.correlation_id
        poll.session_id, poll.epoch = self.session_id, self.epoch
        poll.max_bytes, poll.min_bytes, poll.bytes_read = self.max_bytes, self.min_bytes, self.bytes_read
        poll.even_deadline_ms, poll.found = self.even_deadline_ms, self.found
        return poll

    cpdef object go_on(self):
        """The wait is over: the answer, or another wait."""
        if <int32_t> self.session.epoch != self.epoch:
            # Another connection used the session meanwhile, or it was closed.
            return encode_fetch_response(self.correlation_id, self.version, (), error_code=_SUPERSEDED)[0]
        replicas = self.lane.replicas
        if replicas.rack_aware or replicas.throttles.leader.rate is not None:
            return self.twin(list(self.touched))
        if self.gate is not None and self.lane.node.access.version != self.acls:
            return self.twin(list(self.touched))
        return self.read_all(list(self.touched))

    cdef object twin(self, list changed):
        """The rest is the twin's, which reads ``changed`` again."""
        cdef Found one
        reads = {}
        for wanted, one in self.found.items():
            records = FileSlice(one.file, one.position, one.size) if one.size else None
            read = PartitionRead(_NONE, one.high_watermark, one.last_stable_offset, one.log_start_offset, records, one.size)
            read.caught_up = one.caught_up
            reads[wanted] = read
        work = Fetch(
            self.lane.replicas,
            FetchContext(self.lane.replicas.sessions, (), session=self.session, by_id=True, caller=self.caller),
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            committed=False,
            gate=self.gate,
            found=reads,
        )
        work.read_again(changed)
        even_ms = self.lane.runtime.even_ms()
        return proceed(self.context(), work, even_ms if self.expired else self.even_deadline_ms, even_ms)

    def refuse(self, error):
        """The error frame, after ``go_on`` raised ``error``."""
        return refused(self.context(), error, self.session.due)

    # -- the answer -----------------------------------------------------------------------------------------------------------

    cdef object answer(self):
        cdef Found one
        cdef list told = []
        cdef int64_t records = 0
        session = self.session
        for wanted, one in self.found.items():
            if wanted.answer(one):
                told.append(one)
                if one.size:
                    one.partition.stats.replication_bytes_out += one.size
                    records += one.size
            session.settle(wanted, one)
        encoded = self.encoded(told, records) if records <= INLINE_BYTES else None
        return self.in_parts(told) if encoded is None else [encoded]

    cdef object in_parts(self, list told):
        """The answer with its records as slices of files."""
        cdef Found one
        cdef list topics = []
        last = None
        for one in told:
            if last is None or one.wanted.topic_id != last:
                last = one.wanted.topic_id
                results = []
                topics.append((one.wanted.topic, last, results))
            records = FileSlice(one.file, one.position, one.size) if one.size else b""
            results.append(
                FetchResult(
                    one.wanted.index, _NONE, one.high_watermark, one.last_stable_offset, one.log_start_offset, records
                )
            )
        return encode_fetch_response(self.correlation_id, self.version, topics, session_id=self.session_id)[0]

    cdef bytes encoded(self, list told, int64_t records):
        """The answer in one piece; None when records are not in the page cache."""
        cdef Found one
        cdef list runs = []
        cdef bytes topic_id
        last = None
        for one in told:
            if last is None or one.wanted.topic_id != last:
                last = one.wanted.topic_id
                runs.append([last])
            runs[-1].append(one)
        cdef Py_ssize_t most = HEAD_BYTES + len(runs) * TOPIC_BYTES + len(told) * RESULT_BYTES + records
        cdef bytes whole = PyBytes_FromStringAndSize(NULL, most)
        cdef uint8_t* start = <uint8_t*> PyBytes_AS_STRING(whole)
        cdef uint8_t* at = put(start + 4, <uint32_t> self.correlation_id, 4)
        at = put(at, 0, 1 + 4 + 2)  # tags, throttle time, error
        at = put(at, <uint32_t> self.session_id, 4)
        at = put_uvarint(at, len(runs) + 1)
        for run in runs:
            topic_id = bytes(run[0])
            memcpy(at, PyBytes_AS_STRING(topic_id), len(topic_id))
            at = put_uvarint(at + len(topic_id), len(run))
            for one in run[1:]:
                at = put(at, <uint64_t> <int64_t> one.wanted.index, 4)
                at = put(at, 0, 2)
                at = put(at, <uint64_t> one.high_watermark, 8)
                at = put(at, <uint64_t> one.last_stable_offset, 8)
                at = put(at, <uint64_t> one.log_start_offset, 8)
                at = put(at, 0, 1)  # no list of aborted transactions
                at = put(at, 0xFFFFFFFF, 4)  # no other replica
                at = put_uvarint(at, one.size + 1)
                if one.size and not _copied(one, at):
                    return None
                at = put(at + one.size, 0, 1)
            at = put(at, 0, 1)
        at = put(at, 0, 1)
        assert at - start <= most, "an answer larger than its buffer"
        put(start, at - start - 4, 4)
        return whole[:at - start]


class LaneWait(Waiting):
    """A fetch that waits."""

    __slots__ = ()

    def go_on(self):
        return self.parked.go_on()

    def refuse(self, error):
        return self.parked.refuse(error)


cdef class FollowerLane:
    """Handles a listener's requests: some itself, the others by ``otherwise``."""

    cdef object node, served, timed, switch, failed, produces, fetches, otherwise, replicas, runtime
    cdef readonly int64_t taken
    """Requests that the lane has handled."""

    def __init__(self, node, served, dispatcher):
        self.node, self.served, self.otherwise = node, served, dispatcher.handle_unusual
        self.produces, self.fetches = dispatcher.produces, dispatcher.fetches
        self.timed, self.switch, self.failed = dispatcher.timed, dispatcher.switch, dispatcher.failed
        self.replicas, self.runtime = node.replicas, node.runtime

    def __call__(self, connection, frame):
        """As ``Dispatcher.handle``; the lanes of consumers and producers are asked here, without a step through Python."""
        cdef Py_buffer view
        cdef const uint8_t* p
        cdef int key = -1
        outgoing = None
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            p = <const uint8_t*> view.buf
            if view.len >= 4 and not p[0]:
                key = p[1]
                if key == FETCH and not p[2] and FIRST_VERSION <= p[3] <= LAST_VERSION:
                    outgoing = self._begin(connection, frame, p, view.len)
        finally:
            PyBuffer_Release(&view)
        if outgoing is not None:
            self.taken += 1
            return outgoing
        if key == PRODUCE and self.produces is not None:
            outgoing = self.produces(connection, frame, None)
        elif key == FETCH and self.fetches is not None:
            outgoing = self.fetches(connection, frame, None)
        return self.otherwise(connection, frame) if outgoing is None else outgoing

    cdef object _begin(self, connection, frame, const uint8_t* p, Py_ssize_t size):
        cdef Cursor c = Cursor(<uint8_t*> p + 2, <uint8_t*> p + size, False)
        cdef int32_t max_wait_ms, min_bytes, max_bytes, topics, parts, i, j
        cdef int64_t replica_id, replica_epoch
        cdef uint8_t* at
        cdef Poll poll = Poll.__new__(Poll)
        poll.version = int16(&c)
        poll.correlation_id = int32(&c)
        poll.client_id = text(&c, int16(&c))
        if poll.client_id is None:
            return None
        expect(&c, 0)
        max_wait_ms = int32(&c)
        min_bytes = int32(&c)
        max_bytes = int32(&c)
        expect(&c, 0)
        poll.session_id = int32(&c)
        poll.epoch = int32(&c)
        if c.odd or poll.epoch <= 0:
            return None
        replicas = self.replicas
        session = replicas.sessions.continued_by_follower(poll.session_id, poll.epoch)
        if session is None or replicas.rack_aware or replicas.throttles.leader.rate is not None:
            return None
        partitions = session.partitions
        named = {}
        topics = uvarint(&c) - 1
        for i in range(topics):
            at = take(&c, 16)
            if at == NULL:
                return None
            topic_id = PyBytes_FromStringAndSize(<const char*> at, 16)
            parts = uvarint(&c) - 1
            if parts < 0:
                return None
            for j in range(parts):
                asked = (int32(&c), int32(&c), int64(&c), int32(&c), int64(&c), int32(&c))
                expect(&c, 0)
                if c.odd:
                    return None
                wanted = partitions.get((topic_id, asked[0]))
                if wanted is None:
                    return None
                named[wanted] = asked
            expect(&c, 0)
        # No forgotten topics, no rack; one tag, of 13 bytes: the follower.
        expect(&c, 1)
        expect(&c, 1)
        expect(&c, 1)
        expect(&c, 1)
        expect(&c, 13)
        replica_id = int32(&c)
        replica_epoch = int64(&c)
        expect(&c, 0)
        caller = session.caller
        if c.odd or topics < 0 or c.at != c.end or replica_id != <int64_t> caller.broker_id:
            return None
        due = list(session.due)
        for wanted in named:
            if wanted not in session.due:
                due.append(wanted)
        for wanted in due:
            asked = named.get(wanted)
            if asked is None:
                epoch, offset, last = wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch
            else:
                epoch, offset, last = asked[1], asked[2], asked[3]
            if not _is_plain(wanted.partition, caller, replica_epoch, epoch, offset, last):
                return None
        poll.lane, poll.connection, poll.session, poll.caller = self, connection, session, caller
        access = self.node.access
        if access is not None:
            poll.gate, poll.acls = ReadGate(poll.context(), access, follower=True), access.version
            if session.decider != poll.gate.decider:
                return None
        poll.max_bytes = min(max_bytes, <int64_t> self.node.config.fetch_max_bytes)
        poll.min_bytes = min(min_bytes, poll.max_bytes)
        return self._take(poll, frame, named, due, max_wait_ms, replica_epoch)

    cdef object _take(self, Poll poll, frame, dict named, list due, int32_t max_wait_ms, int64_t replica_epoch):
        """The fetch is the lane's."""
        served = self.served
        served.requests[poll.version] += 1
        count_request(&accounts, poll.connection, self.switch, FETCH, poll.client_id)
        served.left -= 1
        timed = None if served.left else self.timed(poll.connection, served, _FOLLOWERS, 0, poll.version)
        try:
            outgoing = self._outgoing(poll, named, due, max_wait_ms, replica_epoch)
        except Exception as error:
            outgoing = self.failed(poll.connection, served, frame, error)
        return outgoing if timed is None else timed.follow(outgoing)

    cdef object _outgoing(self, Poll poll, dict named, list due, int32_t max_wait_ms, int64_t replica_epoch):
        even_ms = self.runtime.even_ms()
        if poll.gate is not None and poll.gate.refuses(None):
            return encode_fetch_response(poll.correlation_id, poll.version, (), error_code=_NO_SESSION)[0]
        session, caller = poll.session, poll.caller
        caller.last_fetch_ms, caller.broker_epoch = even_ms, replica_epoch
        for wanted, asked in named.items():
            session.ask(wanted, asked)
        self.replicas.sessions.advance(session, even_ms)
        poll.epoch = session.epoch
        poll.found = {}
        poll.even_deadline_ms = even_ms + max_wait_ms
        outgoing = poll.read_all(due)
        if outgoing is not None:
            return outgoing
        return poll.answer() if max_wait_ms <= 0 else poll.park(even_ms)


cdef bint _is_plain(partition, caller, replica_epoch, epoch, int64_t offset, last_fetched_epoch) except -1:
    """Whether a read at ``offset`` by the follower has no error, no divergence, and lies in the active segment."""
    if partition is None or partition.deleted or not partition.is_leader:
        return False
    log, leadership = partition.log, partition.leadership
    if log is None or leadership is None or caller.broker_id not in leadership.replicas:
        return False
    current = partition.leader_epoch
    if (epoch >= 0 and epoch != current) or (last_fetched_epoch >= 0 and last_fetched_epoch != current):
        return False
    files = log.files
    segment = files.segments.active
    if files.failure is not None or segment.rotten:
        return False
    if offset < <int64_t> log.log_start_offset or offset > <int64_t> files.end_offset or offset < <int64_t> segment.base_offset:
        return False
    return not partition.host.brokers.is_replaced(caller.broker_id, replica_epoch)


cdef bint _copied(Found one, uint8_t* into) except -1:
    """Copies the records from the page cache; False when they have to be sent from the file."""
    if type(one.file) is not DiskFile:
        return False
    try:
        descriptor = one.file.descriptor()
    except OSError:
        return False
    in_memory = descriptor.in_memory
    if in_memory is False:  # its file system does not say what is cached
        return False
    return tidelog_read_cached(descriptor.fd, <char*> into, one.size, one.position, in_memory is True) == one.size
