# cython: language_level=3
"""Consumers' fetches, compiled: from the frame to the answer, or to a wait and from its end to the answer.

``broker.dispatch``, ``broker.apis.records.fetch`` and ``replication.fetch`` do the same in Python, and everything that is not taken
here; a property test holds the two equal. A request is looked at without changing anything: what is asked for, the session, each
partition, where its records lie, the permissions. What then is unusual goes to the twin, which starts from the frame. From
``_take`` on there is no way back. What changes is changed by its owner's methods, with three exceptions that the twin writes too:
the counters of a topic, and a partition's ``stale``, ``read_stable_offset`` and ``held_back``.

docs/internals/native-lane.md says what is taken.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tidelog.broker._lane cimport (
    Accounts, Cursor, accounts_of, count_request, expect, int16, int32, int64, put, put_uvarint, take, text,
    tidelog_read_cached, uvarint,
)

from tidelog.broker.answer_types import Waiting
from tidelog.broker.apis.records.fetch import fetch, proceed, refused
from tidelog.broker.apis.records.readable import ReadGate
from tidelog.broker.request import RequestContext, Session
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID
from tidelog.model.ports import FileSlice
from tidelog.protocol.fastpath import FetchView, encode_fetch_response, read_fetch
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.fetch_sessions import FetchContext
from tidelog.replication.partition import Partition
from tidelog.replication.reads import PartitionRead
from tidelog.server.disk import DiskFile
from tidelog.storage.reading import read_segment

cdef enum:
    FETCH = 1
    FIRST_FLEXIBLE = 12
    BY_ID_FROM = 13
    STATE_IN_TAG_FROM = 15
    HEAD_BYTES = 64  # of an answer, before the first topic and after the last, at most
    TOPIC_BYTES = 32  # of a topic in an answer, at most, without its name
    RESULT_BYTES = 48  # of a partition in an answer, at most, without its records
    INLINE_BYTES = 16384  # records up to this size are copied into the answer, which then leaves in one piece ...
    INLINE_TOTAL = 65536  # ... as long as there are no more than this
    STATE_CHANGED = -1
    LONGEST_NAME = 249

_READ, _TOPIC = AclOperation.READ, ResourceType.TOPIC
_NONE, _SUPERSEDED = ErrorCode.NONE, ErrorCode.INVALID_FETCH_SESSION_EPOCH
_CONSUMERS = FetchView()
cdef Accounts accounts = accounts_of(Session)


def fetch_lane(node, served, dispatcher):
    """The lane of a dispatcher; None where requests have another handler than the one that it stands for: faults of a test, or
    client quotas, which bound what a fetch may read."""
    return FetchLane(node, served, dispatcher) if served.handler is fetch and served.read is read_fetch else None


cdef struct Request:
    int16_t version
    int32_t correlation_id, max_wait_ms, min_bytes, max_bytes, session_id, epoch
    int8_t isolation


cdef class Part:
    """One partition of a fetch: what is asked for, and what a read found. To its owners it is a ``PartitionRead``; without a
    session it is also the key under which the partition is watched."""

    cdef object wanted, partition, topic, topic_id, records_file
    cdef tuple asked
    cdef int32_t index, epoch
    cdef int64_t offset, max_bytes, position
    cdef readonly int64_t high_watermark, last_stable_offset, log_start_offset, size
    cdef readonly bint caught_up, is_news
    cdef bint copied
    cdef public object read_stable_offset
    cdef public bint held_back

    cdef bint look(self, int64_t left, bint min_one, bint committed) except -1:
        """Reads, and changes nothing but this; False for what is the twin's."""
        cdef int64_t end
        partition = self.partition
        log = partition.log
        if log is None or partition.deleted or not partition.is_leader:
            return False
        if self.epoch >= 0 and self.epoch != <int32_t> partition.leader_epoch:
            return False
        files = log.files
        if files.failure is not None:
            return False
        self.high_watermark, self.last_stable_offset = log.high_watermark, log.last_stable_offset
        self.log_start_offset = log.log_start_offset
        self.size, self.records_file = 0, None
        end = files.end_offset
        if self.offset < self.log_start_offset or self.offset > end:
            return False
        if committed and (files.undecided or log.aborting):
            return False
        upto = self.last_stable_offset if committed else self.high_watermark
        self.caught_up = self.offset >= upto
        segment = files.segments.active
        if self.offset < <int64_t> segment.base_offset:
            segment = log.segment_for(self.offset)
            if not segment.indexes_loaded():
                return False
        left = min(left, self.max_bytes)
        if self.caught_up or (left <= 0 and not min_one):
            return True
        if segment.rotten:
            return False
        try:
            if upto == end and segment is files.segments.active:
                self.position = segment.recent_position(self.offset)
                self.size = <int64_t> segment.size - self.position
                if self.position >= 0 and 0 < self.size <= left:
                    self.records_file = segment.file
                    return True
                self.size = 0
            found = read_segment(segment, self.offset, left, upto, min_one)
        except OSError:
            self.size = 0
            return False
        if found is None or found.error:
            return False
        records = found.slice
        if records is not None:
            self.records_file, self.position, self.size = records.file, records.position, records.length
        return True

    cdef void note(self):
        """What was read counts."""
        self.partition.stats.total_fetch_requests += 1
        stable = self.last_stable_offset
        self.read_stable_offset, self.held_back = stable, self.last_stable_offset < self.high_watermark
        wanted = self.wanted
        if wanted is not None:
            wanted.stale = False
            wanted.read_stable_offset, wanted.held_back = stable, self.held_back


cdef class LaneFetch:
    """A fetch in progress, and its wait: a ``purgatory.Parked``."""

    cdef FetchLane lane
    cdef Request request
    cdef object connection, client_id, session, gate, ctx
    cdef dict parts, touched
    cdef list watched
    cdef object access, acls
    cdef int32_t epoch
    cdef int64_t max_bytes, min_bytes, bytes_read, missing, even_deadline_ms
    cdef bint committed
    cdef public object deadline_ms, on_done
    cdef public bint done, expired

    @property
    def operation(self):
        return "Fetch"

    @property
    def places(self):
        return len(self.watched)

    def finish(self):
        if self.done:
            return
        self.done = True
        for source in self.watched:
            source.watchers.pop(self, None)
        self.watched = []
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done()

    def changed(self, partition, key, new_bytes):
        """As ``ParkedFetch.changed``."""
        cdef int64_t more = new_bytes
        self.touched[key] = None
        if more == STATE_CHANGED:
            self.finish()
            return
        if self.committed:
            if partition.last_stable_offset == key.read_stable_offset:
                key.held_back = True
                return
            if key.held_back:
                self.finish()
                return
        self.missing -= more
        if self.missing <= 0:
            self.finish()

    # -- looking: nothing changes ---------------------------------------------------------------------------------------------

    cdef bint look_at_all(self) except -1:
        """Reads every partition, in order; False for what is the twin's."""
        cdef Part part
        self.bytes_read = 0
        for part in self.parts.values():
            if not part.look(self.max_bytes - self.bytes_read, self.bytes_read == 0, self.committed):
                return False
            self.bytes_read += part.size
        return True

    cdef bint may_read(self, access) except -1:
        """Whether the client may read all; what it may not read is the twin's."""
        cdef Part part
        self.ctx = self.context()
        self.gate = ReadGate(self.ctx, access, follower=False)
        self.access, self.acls = access, access.version
        if self.session is not None and self.session.decider != self.gate.decider:
            return False
        topic = None
        for part in self.parts.values():
            if part.topic is not topic and not access.would_allow(self.ctx, _READ, _TOPIC, part.topic):
                return False
            topic = part.topic
        return True

    cdef object context(self):
        """The request as handlers see it."""
        cdef Request* r = &self.request
        return RequestContext(self.lane.node, self.connection, FETCH, r.version, r.correlation_id, self.client_id)

    # -- from here on, there is no way back -----------------------------------------------------------------------------------

    cdef object take(self, dict named, even_ms):
        """The fetch is the lane's: the answer, or the wait."""
        cdef Part part
        session = self.session
        if session is not None:
            for wanted, asked in named.items():
                session.ask(wanted, asked)
            self.lane.replicas.sessions.advance(session, even_ms)
            self.epoch = session.epoch
        for part in self.parts.values():
            if self.gate is not None:
                refuses = self.gate.refuses(part.topic)
                assert not refuses, "a permission that was there is gone"
            part.note()
        if self.bytes_read >= self.min_bytes or self.request.max_wait_ms <= 0:
            return self.answer()
        self.even_deadline_ms = even_ms + self.request.max_wait_ms
        return self.park(even_ms)

    cdef object park(self, int64_t even_ms):
        cdef Part part
        self.deadline_ms = self.lane.runtime.now_ms() + self.even_deadline_ms - even_ms
        self.missing = self.min_bytes - self.bytes_read
        self.touched = {}
        session = self.session
        if session is not None:
            for part in self.parts.values():
                session.watch(part.wanted)
            session.watchers[self] = None
            self.watched = [session]
        else:
            self.watched = []
            for part in self.parts.values():
                part.partition.watchers[self] = part
                self.watched.append(part.partition)
        return LaneWait(self)

    cdef LaneFetch again(self):
        """This fetch with another wait; a wait ends once."""
        cdef LaneFetch fetch = LaneFetch.__new__(LaneFetch)
        fetch.lane, fetch.request, fetch.connection, fetch.client_id = self.lane, self.request, self.connection, self.client_id
        fetch.session, fetch.gate, fetch.ctx, fetch.parts = self.session, self.gate, self.ctx, self.parts
        fetch.access, fetch.acls = self.access, self.acls
        fetch.epoch, fetch.max_bytes, fetch.min_bytes = self.epoch, self.max_bytes, self.min_bytes
        fetch.bytes_read, fetch.even_deadline_ms, fetch.committed = self.bytes_read, self.even_deadline_ms, self.committed
        return fetch

    cpdef object go_on(self):
        """The wait is over: the answer, or another wait."""
        if self.session is not None and <int32_t> self.session.epoch != self.epoch:
            # Another connection used the session meanwhile, or it was closed.
            return encode_fetch_response(
                self.request.correlation_id, self.request.version, (), error_code=_SUPERSEDED
            )[0]
        if not self.read_touched():
            return self.twin()
        if self.bytes_read >= self.min_bytes or self.expired:
            return self.answer()
        even_ms = self.lane.runtime.even_ms()
        if even_ms >= self.even_deadline_ms:
            return self.answer()
        return self.again().park(even_ms)

    cdef bint read_touched(self) except -1:
        """Reads again what changed; False when that is the twin's. Nothing counts before all of it was read."""
        cdef Part part
        cdef int64_t before
        if self.gate is not None and self.access.version != self.acls:
            return False
        for key in self.touched:
            part = self.parts.get(key)
            if part is None:
                part = _part_of(key, None)
                if part is None or self.gate is not None:
                    return False
                self.parts[key] = part
            before = self.bytes_read - part.size
            self.bytes_read = before
            if not part.look(self.max_bytes - before, before == 0, self.committed):
                return False
            self.bytes_read += part.size
        for key in self.touched:
            part = self.parts[key]
            part.note()
        return True

    cdef object twin(self):
        """The rest is the twin's, which reads again what changed."""
        cdef Part part
        cdef Request* r = &self.request
        cdef dict own = {}
        session = self.session
        if self.ctx is None:
            self.ctx = self.context()
        for key, part in self.parts.items():
            own[key] = part.wanted if session is not None else _wanted_of(part)
        found = {own[key]: _found(part, self.committed) for key, part in self.parts.items()}
        touched = [own.get(key, key) for key in self.touched]
        everything = () if session is not None else list(found)
        work = Fetch(
            self.lane.replicas,
            FetchContext(self.lane.replicas.sessions, everything, session=session, by_id=r.version >= BY_ID_FROM),
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            committed=self.committed,
            any_replica=True,
            gate=self.gate,
            found=found,
        )
        work.read_again(touched)
        even_ms = self.lane.runtime.even_ms()
        return proceed(self.ctx, work, even_ms if self.expired else self.even_deadline_ms, even_ms)

    def refuse(self, error):
        """The error frame, after ``go_on`` raised ``error``."""
        cdef Part part
        due = self.session.due if self.session is not None else [_wanted_of(part) for part in self.parts.values()]
        return refused(self.context(), error, due)

    # -- the answer -----------------------------------------------------------------------------------------------------------

    cdef object answer(self):
        cdef Part part
        cdef list told = []
        cdef int32_t session_id = 0
        session = self.session
        if session is not None:
            session_id = self.request.session_id
            for wanted, part in self.parts.items():
                if wanted.answer(part):
                    told.append(part)
                session.settle(wanted, part)
        else:
            told = list(self.parts.values())
        for part in told:
            if part.size:
                part.partition.stats.bytes_out += part.size
        return _encoded(&self.request, session_id, told, self.committed)


class LaneWait(Waiting):
    """A fetch that waits."""

    __slots__ = ()

    def go_on(self):
        return self.parked.go_on()

    def refuse(self, error):
        return self.parked.refuse(error)


cdef Part _part_of(wanted, tuple asked):
    """A partition of a session; None when it has to be looked up, or the request is no plain consumer's."""
    cdef Part part
    partition = wanted.partition
    if partition is None or (wanted.last_fetched_epoch if asked is None else asked[3]) >= 0:
        return None
    part = Part.__new__(Part)
    part.wanted, part.partition, part.topic, part.topic_id, part.index = (
        wanted, partition, wanted.topic, wanted.topic_id, wanted.index,
    )
    if asked is None:
        part.epoch, part.offset, part.max_bytes = wanted.current_leader_epoch, wanted.fetch_offset, wanted.max_bytes
    else:
        part.epoch, part.offset, part.max_bytes = asked[1], asked[2], asked[5]
    return part


cdef object _wanted_of(Part part):
    """The same for the twin, without a session."""
    wanted = FetchPartition(part.topic, part.topic_id, part.index)
    wanted.ask(part.asked)
    wanted.partition = part.partition
    wanted.read_stable_offset, wanted.held_back = part.read_stable_offset, part.held_back
    return wanted


cdef object _found(Part part, bint committed):
    """What was read, for the twin."""
    records = FileSlice(part.records_file, part.position, part.size) if part.size else None
    found = PartitionRead(_NONE, part.high_watermark, part.last_stable_offset, part.log_start_offset, records, part.size)
    found.aborted = () if committed else None
    found.caught_up = part.caught_up
    return found


cdef bint _copy(Part part, uint8_t* into) except -1:
    """Copies the records from the page cache; False when they have to be sent from the file."""
    if type(part.records_file) is not DiskFile:
        return False
    try:
        descriptor = part.records_file.descriptor()
    except OSError:
        return False
    in_memory = descriptor.in_memory
    if in_memory is False:
        return False
    return tidelog_read_cached(descriptor.fd, <char*> into, part.size, part.position, in_memory is True) == part.size


cdef list _encoded(Request* r, int32_t session_id, list told, bint committed):
    """The frame: one piece, or pieces with slices of files between them."""
    cdef Part part
    cdef Part first
    cdef uint8_t* start
    cdef uint8_t* at
    cdef Py_ssize_t room = HEAD_BYTES, inline_bytes = 0, i, j, count = len(told), topics = 0, begin, cut, sliced = 0
    cdef bint by_id = r.version >= BY_ID_FROM
    first = None
    for part in told:
        room += RESULT_BYTES
        part.copied = 0 < part.size <= INLINE_BYTES and inline_bytes + part.size <= INLINE_TOTAL
        if part.copied:
            inline_bytes += part.size
        if first is None or part.topic_id != first.topic_id or part.topic != first.topic:
            topics += 1
            first = part
            room += TOPIC_BYTES + (0 if by_id else 4 * <Py_ssize_t> len(part.topic))
    frame = PyByteArray_FromStringAndSize(NULL, room + inline_bytes)
    start = <uint8_t*> PyByteArray_AS_STRING(frame)
    cuts = []
    at = put(start + 4, <uint32_t> r.correlation_id, 4)
    at = put(at, 0, 1 + 4 + 2)  # no tags of the header, no throttle time, no error
    at = put(at, <uint32_t> session_id, 4)
    at = put_uvarint(at, topics + 1)
    i = 0
    while i < count:
        first = told[i]
        j = i
        while j < count:
            part = told[j]
            if part.topic_id != first.topic_id or part.topic != first.topic:
                break
            j += 1
        name = <bytes?> bytes(first.topic_id) if by_id else (<str?> first.topic).encode()
        if not by_id:
            at = put_uvarint(at, len(name) + 1)
        memcpy(at, <const char*> <bytes> name, len(name))
        at = put_uvarint(at + len(name), j - i + 1)
        while i < j:
            part = told[i]
            i += 1
            at = put(at, <uint32_t> part.index, 4)
            at = put(at, 0, 2)
            at = put(at, <uint64_t> part.high_watermark, 8)
            at = put(at, <uint64_t> part.last_stable_offset, 8)
            at = put(at, <uint64_t> part.log_start_offset, 8)
            at = put(at, 1 if committed else 0, 1)  # no aborted transactions, and null
            at = put(at, 0xFFFFFFFF, 4)
            at = put_uvarint(at, part.size + 1)
            if part.copied and _copy(part, at):
                at += part.size
            elif part.size:
                cuts.append((at - start, FileSlice(part.records_file, part.position, part.size)))
                sliced += part.size
            at = put(at, 0, 1)
        at = put(at, 0, 1)
    at = put(at, 0, 1)
    assert at - start <= room + inline_bytes, "an answer larger than its buffer"
    put(start, <uint32_t> (at - start + sliced - 4), 4)
    if not cuts:
        PyByteArray_Resize(frame, at - start)
        return [frame]
    parts = []
    begin = 0
    for cut, records in cuts:
        parts.append(PyBytes_FromStringAndSize(<char*> start + begin, cut - begin))
        parts.append(records)
        begin = cut
    parts.append(PyBytes_FromStringAndSize(<char*> start + begin, at - start - begin))
    return parts


cdef class FetchLane:
    """In front of a dispatcher."""

    cdef object node, served, timed, clock_ns, switch, failed, replicas, runtime
    cdef int16_t last

    def __init__(self, node, served, dispatcher):
        self.node, self.served = node, served
        self.timed, self.clock_ns = dispatcher.timed, dispatcher.clock_ns
        self.switch, self.failed = dispatcher.switch, dispatcher.failed
        self.last = served.last
        self.replicas = node.replicas
        self.runtime = node.runtime

    def __call__(self, session, frame, begun):
        """The answer, or a wait; None when the frame is the twin's, and then nothing has changed."""
        cdef Py_buffer buffer
        cdef Cursor c
        cdef LaneFetch fetch
        PyObject_GetBuffer(frame, &buffer, PyBUF_SIMPLE)
        try:
            c.at, c.odd = <uint8_t*> buffer.buf, False
            c.end = c.at + buffer.len
            if int16(&c) != FETCH or c.odd:
                return None
            fetch = LaneFetch.__new__(LaneFetch)
            fetch.connection = session
            named = self.read(&c, fetch)
            if named is None:
                return None
        finally:
            PyBuffer_Release(&buffer)
        return self.fetched(fetch, named, frame)

    cdef list read(self, Cursor* c, LaneFetch fetch):
        """The partitions that the request names, as (topic's name or id, what is asked); None for what is the twin's."""
        cdef Request* r = &fetch.request
        cdef int32_t topics, partitions, length, state
        cdef uint8_t* at
        cdef list named = []
        r.version = int16(c)
        if not FIRST_FLEXIBLE <= r.version <= self.last:
            return None
        r.correlation_id = int32(c)
        length = int16(c)
        if length >= 0:
            fetch.client_id = text(c, length)
        elif length != -1:
            return None
        expect(c, 0)
        state = int32(c) if r.version < STATE_IN_TAG_FROM else -1
        r.max_wait_ms = int32(c)
        r.min_bytes = int32(c)
        r.max_bytes = int32(c)
        at = take(c, 1)
        r.isolation = 0 if at == NULL else <int8_t> at[0]
        r.session_id = int32(c)
        r.epoch = int32(c)
        topics = uvarint(c) - 1
        if c.odd or state != -1 or topics < 0:
            return None
        while topics > 0:
            topics -= 1
            if r.version >= BY_ID_FROM:
                at = take(c, 16)
                topic = None if at == NULL else <object> PyBytes_FromStringAndSize(<const char*> at, 16)
            else:
                length = uvarint(c) - 1
                topic = text(c, length) if length <= LONGEST_NAME else None
            partitions = uvarint(c) - 1
            if c.odd or topic is None or partitions < 0:
                return None
            while partitions > 0 and not c.odd:
                partitions -= 1
                named.append((topic, (int32(c), int32(c), int64(c), int32(c), int64(c), int32(c))))
                expect(c, 0)
            expect(c, 0)
        expect(c, 1)  # nothing forgotten
        length = uvarint(c) - 1
        if length != 0 and (self.replicas.rack_aware or text(c, length) is None):
            return None
        expect(c, 0)
        if c.odd or c.at != c.end:
            return None
        return named

    cdef object fetched(self, LaneFetch fetch, list wanted, frame):
        """Looks at what the request means; takes it when all of it is usual."""
        cdef Request* r = &fetch.request
        cdef dict named = {}
        fetch.lane = self
        begun_ns = self.clock_ns() if self.served.left == 1 and self.clock_ns is not None else 0
        fetch.committed = r.isolation == 1
        fetch.max_bytes = min(r.max_bytes, <int32_t> self.node.config.fetch_max_bytes)
        fetch.min_bytes = min(<int64_t> r.min_bytes, fetch.max_bytes)
        if r.epoch > 0:
            if not self.find_in_session(fetch, wanted, named):
                return None
        elif r.epoch != -1 or r.session_id != 0 or not self.find(fetch, wanted):
            return None
        if not fetch.look_at_all():
            return None
        access = self.node.access
        if access is not None and not fetch.may_read(access):
            return None
        served = self.served
        served.requests[r.version] += 1
        count_request(&accounts, fetch.connection, self.switch, FETCH, fetch.client_id)
        left = served.left = served.left - 1
        timed = None if left else self.timed(fetch.connection, served, _CONSUMERS, begun_ns, r.version)
        try:
            outgoing = fetch.take(named, self.runtime.even_ms())
        except Exception as error:
            outgoing = self.failed(fetch.connection, served, frame, error)
        return outgoing if timed is None else timed.follow(outgoing)

    cdef bint find_in_session(self, LaneFetch fetch, list wanted, dict named) except -1:
        """The partitions to read of a session that goes on; False for what is the twin's."""
        cdef Request* r = &fetch.request
        cdef Part part
        session = self.replicas.sessions.continued(r.session_id, r.epoch, by_id=r.version >= BY_ID_FROM)
        if session is None:
            return False
        fetch.session = session
        partitions = session.partitions
        for topic, asked in wanted:
            each = partitions.get((topic, asked[0]))
            if each is None or each in named:
                return False
            named[each] = asked
        parts = fetch.parts = {}
        due = session.due
        for each in due:
            part = _part_of(each, named.get(each))
            if part is None:
                return False
            parts[each] = part
        for each, asked in named.items():
            if each not in due:
                part = _part_of(each, asked)
                if part is None:
                    return False
                parts[each] = part
        return True

    cdef bint find(self, LaneFetch fetch, list wanted) except -1:
        """The partitions to read without a session; False for what is the twin's."""
        cdef Part part
        cdef bint by_id = fetch.request.version >= BY_ID_FROM
        hosted = self.replicas.hosted
        seen = set()
        parts = fetch.parts = {}
        for topic, asked in wanted:
            found = hosted.by_id(topic, asked[0]) if by_id else hosted.by_name(topic, asked[0])
            if type(found) is not Partition or asked[3] >= 0 or found in seen:
                return False
            seen.add(found)
            part = Part.__new__(Part)
            part.partition, part.topic, part.topic_id = found, found.topic, topic if by_id else ZERO_UUID
            part.asked, part.index, part.epoch, part.offset, part.max_bytes = asked, asked[0], asked[1], asked[2], asked[5]
            parts[part] = part
        return len(parts) > 0
