# cython: language_level=3
"""The lane of plain Produce requests: from a frame to its answer, compiled (docs/internals/native-lane.md).

``ProduceLane`` answers a request as ``broker.apis.records.produce`` and what it calls do, or returns None: "not mine". It returns
None before anything has changed, so the Python path can then do everything. A request is the lane's when it has no transaction
and every batch is an ordinary next batch for a partition that this broker leads: no roll, no new epoch, no walk over the records,
no duplicate, no rule that the batch breaks.

The lane writes fields of the log's objects. Each function named ``note_*`` is the compiled form of one owner's method, which its
docstring names; tests/property/test_produce_lane.py holds the two equal.

Memory: ``take`` of ``_lane.pxd`` alone moves through the request's bytes, and never past their end. Everything else is Python's
own objects under Cython's default, checked directives.
"""

import array

cimport cython
from cpython cimport array
from cpython.buffer cimport PyBUF_WRITABLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_SetFromErrno
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_TYPE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.errno cimport EINTR, errno
from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from tidelog.broker._lane cimport (
    Accounts, Cursor, Slot, accounts_of, big_endian, count_request, expect, get, int16, int32, is_, number, put, put_in,
    put_uvarint, slot_of, take, uvarint,
)

from tidelog.broker.answer_types import NO_RESPONSE
from tidelog.broker.apis.records.produce import acknowledge, produce
from tidelog.broker.request import RequestContext, Session
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.records.checksum import KEEP_THE_GIL, _crc32c
from tidelog.replication.acks_and_min_isr import refused
from tidelog.records.record import SMALLEST_RECORD as _SMALLEST_RECORD
from tidelog.replication.hosted_partitions import HostedPartitions, HostedTopic
from tidelog.replication.partition import Partition
from tidelog.replication.topic_stats import TopicStats
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.batch_positions import LIMIT as _RECENT_LIMIT
from tidelog.storage.batch_positions import RecentBatches
from tidelog.storage.index import MAX_RELATIVE_OFFSET as _MAX_RELATIVE_OFFSET
from tidelog.storage.index import OffsetIndex, TimeIndex
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.local_log import LocalLog
from tidelog.storage.log_config import LogConfig
from tidelog.storage.producer_state import BATCHES_REMEMBERED as _BATCHES_REMEMBERED
from tidelog.storage.producer_state import BatchMetadata, ProducerEntry, ProducerStateManager
from tidelog.storage.segment import LogSegment, RollLimits
from tidelog.storage.segments import Segments
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.validation import Rules

cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAGIC = 2
    CRC_POSITION = 17
    ATTRIBUTES_POSITION = 21
    CODEC_MASK = 0x07
    ZSTD = 4
    ZSTD_FROM = 7
    FLEXIBLE_FROM = 9
    BY_ID_FROM = 13
    LOG_START_FROM = 5
    RECORD_ERRORS_FROM = 8
    MOST_BATCHES = 1000  # of one request; a larger one is not the lane's

cdef int64_t MAX_RELATIVE_OFFSET = _MAX_RELATIVE_OFFSET
cdef int64_t SMALLEST_RECORD = _SMALLEST_RECORD
cdef int64_t MAX_SEQUENCE = 0x7FFFFFFF
cdef Py_ssize_t BATCHES_REMEMBERED = _BATCHES_REMEMBERED
cdef Py_ssize_t RECENT_LIMIT = _RECENT_LIMIT
cdef object NONE = ErrorCode.NONE
cdef object STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
cdef object WRITE = AclOperation.WRITE
cdef object TOPIC = ResourceType.TOPIC


def produce_lane(node, served, dispatcher, *, disk_file=None, descriptor=None):
    """The lane of a dispatcher; None where requests have another handler than the one that it stands for. ``disk_file`` and
    ``descriptor``: the classes of files that ``pwrite`` writes."""
    global file_descriptor, descriptor_fd, descriptor_used
    if served.handler is not produce:
        return None
    if disk_file is not None and file_descriptor.owner != <PyTypeObject*>disk_file:
        file_descriptor = slot_of(disk_file, "_descriptor")
        descriptor_fd, descriptor_used = slot_of(descriptor, "fd"), slot_of(descriptor, "used")
    return ProduceLane(node, served, dispatcher)


# -- the fields of Python's objects ---------------------------------------------------------------------------------------

cdef extern from *:
    """
    #ifdef _WIN32
    #define pwrite(fd, data, size, position) (errno = EINTR, -1)  /* never called there */
    #else
    #include <unistd.h>
    #endif
    """
    int64_t pwrite(int fd, const void* data, size_t size, int64_t position) nogil


cdef Accounts accounts = accounts_of(Session)
cdef Slot partition_log = slot_of(Partition, "log")
cdef Slot partition_is_leader = slot_of(Partition, "is_leader")
cdef Slot partition_is_internal = slot_of(Partition, "is_internal")
cdef Slot partition_flush_needed_to = slot_of(Partition, "flush_needed_to")
cdef Slot partition_spare_in_sync = slot_of(Partition, "spare_in_sync")
cdef Slot partition_leader_epoch = slot_of(Partition, "leader_epoch")
cdef Slot partition_leadership = slot_of(Partition, "leadership")
cdef Slot partition_watchers = slot_of(Partition, "watchers")
cdef Slot partition_stats = slot_of(Partition, "stats")
cdef Slot partition_unexposed_bytes = slot_of(Partition, "_unexposed_bytes")
cdef Slot log_files = slot_of(UnifiedLog, "files")
cdef Slot log_leader_epochs = slot_of(UnifiedLog, "leader_epochs")
cdef Slot log_producers = slot_of(UnifiedLog, "producers")
cdef Slot log_high_watermark = slot_of(UnifiedLog, "high_watermark")
cdef Slot log_log_start_offset = slot_of(UnifiedLog, "log_start_offset")
cdef Slot log_rules = slot_of(UnifiedLog, "_rules")
cdef Slot files_failure = slot_of(LocalLog, "failure")
cdef Slot files_segments = slot_of(LocalLog, "segments")
cdef Slot files_limits = slot_of(LocalLog, "limits")
cdef Slot files_end_offset = slot_of(LocalLog, "end_offset")
cdef Slot files_recovery_point = slot_of(LocalLog, "recovery_point")
cdef Slot files_config = slot_of(LocalLog, "config")
cdef Slot segments_active = slot_of(Segments, "active")
cdef Slot segment_file = slot_of(LogSegment, "_file")
cdef Slot segment_recent = slot_of(LogSegment, "_recent")
cdef Slot segment_offset_index = slot_of(LogSegment, "_offset_index")
cdef Slot segment_time_index = slot_of(LogSegment, "_time_index")
cdef Slot segment_size_slot = slot_of(LogSegment, "size")
cdef Slot segment_base_offset = slot_of(LogSegment, "base_offset")
cdef Slot segment_first_timestamp = slot_of(LogSegment, "first_timestamp")
cdef Slot segment_created_ms = slot_of(LogSegment, "created_ms")
cdef Slot segment_index_entries = slot_of(LogSegment, "index_entries")
cdef Slot segment_bytes_since_index_entry = slot_of(LogSegment, "bytes_since_index_entry")
cdef Slot segment_max_timestamp = slot_of(LogSegment, "max_timestamp")
cdef Slot segment_max_timestamp_offset = slot_of(LogSegment, "max_timestamp_offset")
cdef Slot segment_next_offset = slot_of(LogSegment, "next_offset")
cdef Slot limits_segment_bytes = slot_of(RollLimits, "segment_bytes")
cdef Slot limits_segment_ms = slot_of(RollLimits, "segment_ms")
cdef Slot limits_index_entries = slot_of(RollLimits, "index_entries")
cdef Slot rules_walk_always = slot_of(Rules, "walk_always")
cdef Slot rules_log_append_time = slot_of(Rules, "log_append_time")
cdef Slot rules_max_message_bytes = slot_of(Rules, "max_message_bytes")
cdef Slot rules_segment_bytes = slot_of(Rules, "segment_bytes")
cdef Slot rules_codec = slot_of(Rules, "codec")
cdef Slot rules_after_max_ms = slot_of(Rules, "after_max_ms")
cdef Slot config_flush_messages = slot_of(LogConfig, "flush_messages")
cdef Slot config_index_interval_bytes = slot_of(LogConfig, "index_interval_bytes")
cdef Slot epochs_latest = slot_of(LeaderEpochCache, "latest")
cdef Slot producers_entries = slot_of(ProducerStateManager, "entries")
cdef Slot producers_end_offset = slot_of(ProducerStateManager, "end_offset")
cdef Slot producers_completed = slot_of(ProducerStateManager, "_completed")
cdef Slot entry_epoch = slot_of(ProducerEntry, "epoch")
cdef Slot entry_txn_first_offset = slot_of(ProducerEntry, "txn_first_offset")
cdef Slot entry_batches = slot_of(ProducerEntry, "batches")
cdef Slot entry_last_timestamp = slot_of(ProducerEntry, "last_timestamp")
cdef Slot recent_last_offsets = slot_of(RecentBatches, "_last_offsets")
cdef Slot recent_positions = slot_of(RecentBatches, "_positions")
cdef Slot recent_floor = slot_of(RecentBatches, "floor")
cdef Slot offsets_positions = slot_of(OffsetIndex, "positions")
cdef Slot offsets_relative_offsets = slot_of(OffsetIndex, "relative_offsets")
cdef Slot offsets_base_offset = slot_of(OffsetIndex, "base_offset")
cdef Slot times_timestamps = slot_of(TimeIndex, "timestamps")
cdef Slot times_relative_offsets = slot_of(TimeIndex, "relative_offsets")
cdef Slot times_base_offset = slot_of(TimeIndex, "base_offset")
cdef Slot stats_total_produce_requests = slot_of(TopicStats, "total_produce_requests")
cdef Slot stats_bytes_in = slot_of(TopicStats, "bytes_in")
cdef Slot stats_messages_in = slot_of(TopicStats, "messages_in")
cdef Slot hosted_by_id = slot_of(HostedPartitions, "_by_id")
cdef Slot hosted_by_name = slot_of(HostedPartitions, "_by_name")
cdef Slot topic_partitions = slot_of(HostedTopic, "partitions")
cdef Slot file_descriptor
cdef Slot descriptor_fd
cdef Slot descriptor_used


# -- bytes ----------------------------------------------------------------------------------------------------------------

cdef inline int64_t length(Cursor* cursor, bint flexible, int plain_size) noexcept nogil:
    """The length of an array, a string or records: -1 for null. ``plain_size``: of the field in versions without varints."""
    if flexible:
        return <int64_t>uvarint(cursor) - 1
    return int16(cursor) if plain_size == 2 else int32(cursor)


cdef inline void no_tags(Cursor* cursor, bint flexible) noexcept nogil:
    if flexible:
        expect(cursor, 0)


cdef inline uint8_t* put_length(uint8_t* at, uint64_t value, bint flexible, int plain_size) noexcept nogil:
    """The reverse of ``length``, for what is not null."""
    return put_uvarint(at, value + 1) if flexible else put(at, value, plain_size)


cdef inline object memory_of(uint8_t* at, int64_t size):
    """A memoryview for one call of a function in C, which keeps no reference to it."""
    return PyMemoryView_FromMemory(<char*>at, size, PyBUF_WRITE)


# -- a request ------------------------------------------------------------------------------------------------------------

@cython.final
@cython.freelist(32)
cdef class Batch:
    """One batch of a request, and the objects that its append changes."""

    cdef uint8_t* at
    cdef int64_t size
    cdef uint8_t* topic  # the topic's id or name in the request
    cdef int64_t topic_size
    cdef int64_t of_topic  # how many batches the topic has, for its first one; 0 for others
    cdef int32_t index
    cdef int64_t count, max_timestamp, producer_id
    cdef int32_t producer_epoch, base_sequence
    cdef int64_t position  # where it goes in the segment's file
    cdef int64_t base_offset, log_start_offset
    cdef object partition, log, files, config, segment, producers, entry
    cdef object result  # an AppendResult, where the append is not an ordinary success


@cython.final
cdef class ProduceLane:
    """The plain Produce requests of one dispatcher. ``served``: its row for Produce, whose counters the lane keeps."""

    cdef object node, served, timed, clock_ns, switch, failed
    cdef int first, last

    def __init__(self, node, served, dispatcher):
        self.node = node
        self.served = served
        self.timed, self.clock_ns = dispatcher.timed, dispatcher.clock_ns
        self.switch, self.failed = dispatcher.switch, dispatcher.failed
        self.first, self.last = served.first, served.last

    def __call__(self, session, frame, begun=None):
        """The answer to the request in ``frame``, a writable buffer, as ``Dispatcher.handle`` returns it; None: not the lane's."""
        cdef Py_buffer held
        try:
            PyObject_GetBuffer(frame, &held, PyBUF_WRITABLE)
        except BufferError:
            return None  # batches are patched in place
        try:
            return self.answer(session, frame, <uint8_t*>held.buf, held.len, begun)
        finally:
            PyBuffer_Release(&held)

    cdef object answer(self, session, frame, uint8_t* start, Py_ssize_t size, begun):
        cdef Cursor cursor = Cursor(at=start, end=start + size, odd=False)
        cdef int64_t began_ns = 0
        cdef int64_t key, version, correlation_id, client_size, acks, timeout_ms, now_ms
        cdef uint8_t* client
        cdef bint flexible
        cdef list batches
        served = self.served
        if served.left == 1 and self.clock_ns is not None:
            began_ns = self.clock_ns()
        key = int16(&cursor)
        version = int16(&cursor)
        correlation_id = int32(&cursor)
        client_size = int16(&cursor)
        if cursor.odd or key != 0 or not self.first <= version <= self.last:
            return None
        flexible = version >= FLEXIBLE_FROM
        client = NULL
        if client_size != -1:
            client = take(&cursor, client_size)
        no_tags(&cursor, flexible)
        if length(&cursor, flexible, 2) != -1:
            return None  # a transactional id
        acks = int16(&cursor)
        timeout_ms = int32(&cursor)
        if cursor.odd or not -1 <= acks <= 1:
            return None
        node = self.node
        now_ms = node.runtime.now_ms()
        batches = self.read(&cursor, version, flexible, acks, now_ms)
        if batches is None:
            return None
        try:
            client_id = None if client == NULL else PyUnicode_DecodeUTF8(<char*>client, client_size, NULL)
        except UnicodeDecodeError:
            return None
        ctx = None
        if begun is not None or node.access is not None:
            ctx = RequestContext(node, session, 0, version, correlation_id, client_id)
            if node.access is not None and not may_write(node.access, ctx, batches):
                return None
            if begun is not None:
                begun(ctx)

        # From here on the request is the lane's.
        served.requests[version] += 1
        count_request(&accounts, session, self.switch, 0, client_id)
        left = served.left - 1
        served.left = left
        timed = None if left else self.timed(session, served, None, began_ns, version)
        try:
            if node.access is not None:
                for name in {(<Batch>batch).partition.topic for batch in batches}:
                    node.access.allows(ctx, WRITE, TOPIC, name, False)
            if append_all(batches, frame, start, now_ms, acks, version):
                if acks == 0:
                    outgoing = NO_RESPONSE
                else:
                    outgoing = [encoded(batches, version, flexible, correlation_id)]
            else:
                if ctx is None:
                    ctx = RequestContext(node, session, 0, version, correlation_id, client_id)
                outgoing = acknowledge(ctx, acks, timeout_ms, results(batches, version))
        except Exception as error:
            outgoing = self.failed(session, served, frame, error)
        return outgoing if timed is None else timed.follow(outgoing)

    cdef list read(self, Cursor* cursor, int64_t version, bint flexible, int64_t acks, int64_t now_ms):
        """The batches of the request, each fit to be appended; None when one is not."""
        cdef int64_t topics = length(cursor, flexible, 4)
        cdef int64_t topic, partitions, partition, topic_size, size
        cdef int64_t size_before = -1
        cdef uint8_t* name
        cdef uint8_t* name_before = NULL
        cdef uint8_t* at
        cdef int32_t index
        cdef Batch batch
        cdef list batches = []
        cdef set seen = None
        cdef PyObject* found
        hosted = self.node.replicas.hosted
        if not 0 < topics <= MOST_BATCHES:
            return None
        for topic in range(topics):
            topic_size = 16 if version >= BY_ID_FROM else length(cursor, flexible, 2)
            name = take(cursor, topic_size)
            partitions = length(cursor, flexible, 4)
            if cursor.odd or not 0 < partitions <= MOST_BATCHES - len(batches):
                return None
            if topic_size == size_before and memcmp(name, name_before, topic_size) == 0:
                return None  # named twice in a row: its answer is one topic
            size_before, name_before = topic_size, name
            if version >= BY_ID_FROM:
                found = PyDict_GetItem(get(hosted, hosted_by_id), PyBytes_FromStringAndSize(<char*>name, 16))
            else:
                try:
                    key = PyUnicode_DecodeUTF8(<char*>name, topic_size, NULL)
                except UnicodeDecodeError:
                    return None
                found = PyDict_GetItem(get(hosted, hosted_by_name), key)
            if found == NULL:
                return None
            hosted_here = get(<object>found, topic_partitions)
            for partition in range(partitions):
                index = int32(cursor)
                size = length(cursor, flexible, 4)
                at = take(cursor, size)
                no_tags(cursor, flexible)
                if cursor.odd:
                    return None
                found = PyDict_GetItem(hosted_here, index)
                if found == NULL:
                    return None
                if topics > 1 or partitions > 1:
                    if seen is None:
                        seen = set()
                    if <object>found in seen:
                        return None
                    seen.add(<object>found)
                batch = fit(<object>found, at, size, version, acks, now_ms)
                if batch is None:
                    return None
                batch.topic = name
                batch.topic_size = topic_size
                batch.of_topic = 0 if partition else partitions
                batch.index = index
                batches.append(batch)
            no_tags(cursor, flexible)
        no_tags(cursor, flexible)
        if cursor.odd or cursor.at != cursor.end:
            return None
        return batches


cdef bint may_write(access, ctx, list batches) except -1:
    """Whether the client may write to all these topics; nothing is counted, logged or audited yet."""
    cdef Batch batch
    for batch in batches:
        if batch.of_topic and not access.would_allow(ctx, WRITE, TOPIC, batch.partition.topic):
            return False
    return True


# -- may this batch be appended -------------------------------------------------------------------------------------------

cdef Batch fit(partition, uint8_t* at, int64_t size, int64_t version, int64_t acks, int64_t now_ms):
    """The batch, if its append is an ordinary one; else None. As ``Partition.append``, ``validation.validate`` without a walk,
    ``ProducerStateManager.check`` and ``LogSegment.must_roll`` decide."""
    cdef Batch batch
    cdef int64_t attributes, last_offset, segment_size, first_timestamp, waited, limit, codec
    log = get(partition, partition_log)
    if size < HEADER_SIZE or log is None or not is_(partition, partition_is_leader, True):
        return None
    if not is_(partition, partition_is_internal, False) or number(partition, partition_flush_needed_to) >= 0:
        return None
    if acks == -1 and number(partition, partition_spare_in_sync) < 0:
        return None
    files = get(log, log_files)
    if not is_(files, files_failure, None):
        return None
    if number(partition, partition_leader_epoch) > number(get(log, log_leader_epochs), epochs_latest):
        return None
    rules = get(log, log_rules)
    if get(rules, rules_walk_always) or get(rules, rules_log_append_time):
        return None

    # The header.
    attributes = <int16_t>big_endian(at + ATTRIBUTES_POSITION, 2)
    codec = attributes & CODEC_MASK
    batch = Batch.__new__(Batch)
    batch.at = at
    batch.size = size
    batch.max_timestamp = <int64_t>big_endian(at + 35, 8)
    batch.producer_id = <int64_t>big_endian(at + 43, 8)
    batch.producer_epoch = <int16_t>big_endian(at + 51, 2)
    batch.base_sequence = <int32_t>big_endian(at + 53, 4)
    batch.count = <int32_t>big_endian(at + 57, 4)
    if big_endian(at, 8) != 0 or <int32_t>big_endian(at + 8, 4) != size - LOG_OVERHEAD or at[16] != MAGIC:
        return None
    if attributes & 0x38 or codec > ZSTD or (codec == ZSTD and version < ZSTD_FROM):
        return None  # a timestamp of the broker, a transaction, a marker, an unknown codec
    if batch.count <= 0 or <int64_t><int32_t>big_endian(at + 23, 4) + 1 != batch.count:
        return None
    if codec == 0 and batch.count * SMALLEST_RECORD > size - HEADER_SIZE:
        return None
    if size > number(rules, rules_max_message_bytes) or size > number(rules, rules_segment_bytes):
        return None
    if not is_(rules, rules_codec, None) and number(rules, rules_codec) != codec:
        return None
    limit = number(rules, rules_after_max_ms)
    if batch.max_timestamp < -1 or batch.max_timestamp > (now_ms + limit if limit < INT64_MAX - now_ms else INT64_MAX):
        return None

    # The segment, and index entries that it has room for.
    segment = get(get(files, files_segments), segments_active)
    limits = get(files, files_limits)
    segment_size = number(segment, segment_size_slot)
    batch.position = segment_size
    batch.base_offset = number(files, files_end_offset)
    last_offset = batch.base_offset + batch.count - 1
    if segment_size + size > number(limits, limits_segment_bytes):
        return None
    if last_offset - number(segment, segment_base_offset) > MAX_RELATIVE_OFFSET:
        return None
    if segment_size:
        if is_(segment, segment_first_timestamp, None):
            return None
        first_timestamp = number(segment, segment_first_timestamp)
        waited = batch.max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - number(segment, segment_created_ms)
        if waited > number(limits, limits_segment_ms):
            return None
        if number(segment, segment_index_entries) >= number(limits, limits_index_entries):
            return None
    batch.config = get(files, files_config)
    if last_offset + 1 - number(files, files_recovery_point) >= number(batch.config, config_flush_messages):
        return None

    batch.producers = get(log, log_producers)
    if batch.producer_id >= 0:
        if batch.base_sequence < 0 or not in_order(batch):
            return None

    limit = <int64_t>big_endian(at + CRC_POSITION, 4)
    if <int64_t>_crc32c(memory_of(at + ATTRIBUTES_POSITION, size - ATTRIBUTES_POSITION), 0, KEEP_THE_GIL) != limit:
        return None
    batch.partition = partition
    batch.log = log
    batch.files = files
    batch.segment = segment
    return batch


cdef bint in_order(Batch batch) except -1:
    """Whether the batch is the next one of its producer, or the first. As ``ProducerStateManager.check``."""
    cdef int64_t last
    cdef list known
    entry = (<dict>get(batch.producers, producers_entries)).get(batch.producer_id)
    batch.entry = entry
    if entry is None:
        return True
    if number(entry, entry_epoch) != batch.producer_epoch or number(entry, entry_txn_first_offset) >= 0:
        return False
    known = get(entry, entry_batches)
    last = known[len(known) - 1][1] if known else -1
    return batch.base_sequence == last + 1 or (batch.base_sequence == 0 and last == MAX_SEQUENCE)


# -- the append -----------------------------------------------------------------------------------------------------------

cdef bint append_all(list batches, frame, uint8_t* start, int64_t now_ms, int64_t acks, int64_t version) except -1:
    """Appends the batches in order. Whether all are in their logs and may be acknowledged; otherwise ``result`` says more."""
    cdef Batch batch
    cdef bint plain = True
    cdef bint first = True
    cdef bint as_read = True  # what was found when the batches were read still holds
    for batch in batches:
        if not first and as_read:
            as_read = still_fits(batch)
        first = False
        if not as_read:  # a log dir went offline, perhaps this batch's as well; or a watcher of the batches before has appended
            records = view_of(frame, batch.at - start, batch.size)
            batch.result = batch.partition.append(records, now_ms, acks, zstd_allowed=version >= ZSTD_FROM)
            continue
        try:
            write(batch, frame, start)
        except OSError as problem:
            batch.partition.host.storage_failed(batch.files.append_failed(problem))
            batch.partition.stats.refused(batch.size)
            batch.result = refused(STORAGE_ERROR)
            as_read = False
            continue
        note_in_segment(batch)
        put_in(batch.files, files_end_offset, batch.base_offset + batch.count)
        if batch.producer_id >= 0:
            note_producer(batch)
        note_in_partition(batch)
        batch.log_start_offset = number(batch.log, log_log_start_offset)
        if acks == -1 and number(batch.log, log_high_watermark) < batch.base_offset + batch.count:
            plain = False
    return plain and as_read


cdef bint still_fits(Batch batch) except -1:
    """Whether the place that the batch was given is still the next one. Appends wake watchers, and these may append elsewhere."""
    return (
        number(batch.files, files_end_offset) == batch.base_offset
        and is_(get(batch.files, files_segments), segments_active, batch.segment)
        and is_(batch.partition, partition_log, batch.log)
        and is_(batch.partition, partition_is_leader, True)
    )


cdef object view_of(frame, int64_t position, int64_t size):
    """Bytes of the request for functions in Python, which may keep the view in a traceback: it keeps the frame's buffer."""
    return memoryview(frame)[position : position + size]


cdef int write(Batch batch, frame, uint8_t* start) except -1:
    """``validation.place``, then one write at the segment's end."""
    cdef int64_t written = -1
    cdef int fd
    put(put(batch.at, batch.base_offset, 8) + 4, <uint32_t>number(batch.partition, partition_leader_epoch), 4)
    file = get(batch.segment, segment_file)
    if file is None:
        file = batch.segment.file
    if Py_TYPE(file) == file_descriptor.owner:
        descriptor = get(file, file_descriptor)
        if descriptor is not None:
            put_in(descriptor, descriptor_used, True)
            fd = <int>number(descriptor, descriptor_fd)
            with nogil:
                written = pwrite(fd, batch.at, batch.size, batch.position)
            if written < 0 and errno != EINTR:
                PyErr_SetFromErrno(OSError)
    if written < 0:
        written = 0
    if written < batch.size:
        file.write(batch.position + written, view_of(frame, batch.at - start + written, batch.size - written))
    return 0


cdef int append_q(array.array to, int64_t value) except -1:
    """``to.append(value)`` for the typecode q."""
    cdef Py_ssize_t size = len(to)
    array.resize_smart(to, size + 1)
    to.data.as_longlongs[size] = value
    return 0


cdef int append_i(array.array to, int64_t value) except -1:
    """``to.append(value)`` for the typecode i."""
    cdef Py_ssize_t size = len(to)
    array.resize_smart(to, size + 1)
    to.data.as_ints[size] = <int>value
    return 0


cdef int note_in_segment(Batch batch) except -1:
    """``LogSegment.note_batch``."""
    cdef int64_t last_offset = batch.base_offset + batch.count - 1
    cdef int64_t pending
    segment = batch.segment
    if batch.max_timestamp > number(segment, segment_max_timestamp):
        put_in(segment, segment_max_timestamp, batch.max_timestamp)
        put_in(segment, segment_max_timestamp_offset, last_offset)
    if batch.position == 0:
        put_in(segment, segment_first_timestamp, batch.max_timestamp)
    pending = number(segment, segment_bytes_since_index_entry)
    if pending > number(batch.config, config_index_interval_bytes):
        note_in_indexes(segment, last_offset, batch.position)
        pending = 0
    put_in(segment, segment_bytes_since_index_entry, pending + batch.size)
    note_recent(get(segment, segment_recent), batch.base_offset, last_offset, batch.position)
    put_in(segment, segment_size_slot, batch.position + batch.size)
    put_in(segment, segment_next_offset, last_offset + 1)
    return 0


cdef int note_in_indexes(segment, int64_t last_offset, int64_t position) except -1:
    """``LogSegment._add_index_entries``, ``OffsetIndex.append`` and ``TimeIndex.maybe_append``."""
    cdef array.array positions, timestamps
    cdef int64_t newest
    offsets, times = get(segment, segment_offset_index), get(segment, segment_time_index)
    if offsets is None or times is None:
        segment._add_index_entries(last_offset, position)
        return 0
    # In the order of the twin: a search in another thread that finds an entry finds its position as well.
    positions, timestamps = get(offsets, offsets_positions), get(times, times_timestamps)
    append_i(positions, position)
    append_i(get(offsets, offsets_relative_offsets), last_offset - number(offsets, offsets_base_offset))
    newest = number(segment, segment_max_timestamp)
    if newest > (timestamps.data.as_longlongs[len(timestamps) - 1] if len(timestamps) else -1):
        append_i(
            get(times, times_relative_offsets), number(segment, segment_max_timestamp_offset) - number(times, times_base_offset)
        )
        append_q(timestamps, newest)
    put_in(segment, segment_index_entries, len(positions))
    return 0


cdef int note_recent(recent, int64_t base_offset, int64_t last_offset, int64_t position) except -1:
    """``RecentBatches.add``."""
    cdef array.array last_offsets = get(recent, recent_last_offsets)
    if len(last_offsets) >= RECENT_LIMIT:
        recent.add(base_offset, last_offset, position)
        return 0
    if not len(last_offsets):
        put_in(recent, recent_floor, base_offset)
    append_q(last_offsets, last_offset)
    append_q(get(recent, recent_positions), position)
    return 0


cdef int note_producer(Batch batch) except -1:
    """``ProducerStateManager.update``."""
    cdef int64_t delta = batch.count - 1
    cdef int64_t last_offset = batch.base_offset + delta
    cdef list known
    producers, entry = batch.producers, batch.entry
    if entry is None:
        entry = ProducerEntry(batch.producer_id, batch.producer_epoch)
        get(producers, producers_entries)[batch.producer_id] = entry
    known = get(entry, entry_batches)
    if len(known) == BATCHES_REMEMBERED:
        del known[0]
    last_sequence = (batch.base_sequence + delta) & MAX_SEQUENCE
    known.append(BatchMetadata(batch.base_sequence, last_sequence, last_offset, delta, batch.max_timestamp))
    put_in(entry, entry_last_timestamp, batch.max_timestamp)
    put_in(producers, producers_end_offset, last_offset + 1)
    return 0


cdef int note_in_partition(Batch batch) except -1:
    """``Partition.appended``; what only leaders with followers and watched partitions need is left to it."""
    cdef int64_t end = batch.base_offset + batch.count
    partition = batch.partition
    if not is_(partition, partition_leadership, None) or get(partition, partition_watchers):
        partition.appended(batch.log, batch.size, batch.base_offset, end)
        return 0
    stats = get(partition, partition_stats)
    put_in(stats, stats_total_produce_requests, get(stats, stats_total_produce_requests) + 1)
    put_in(stats, stats_bytes_in, get(stats, stats_bytes_in) + batch.size)
    put_in(stats, stats_messages_in, get(stats, stats_messages_in) + batch.count)
    put_in(batch.log, log_high_watermark, end)
    if get(batch.producers, producers_completed):
        batch.producers.high_watermark_moved(end)
    put_in(partition, partition_unexposed_bytes, 0)
    return 0


# -- the answer -----------------------------------------------------------------------------------------------------------

cdef list results(list batches, int64_t version):
    """(name, topic id, partition index, partition, result) of each batch, as ``acknowledge`` takes them."""
    cdef Batch batch
    cdef list found = []
    for batch in batches:
        result = batch.result
        if result is None:
            last_offset = batch.base_offset + batch.count - 1
            result = AppendResult(NONE, batch.base_offset, last_offset, -1, batch.log_start_offset)
        partition = batch.partition
        name = None if version >= BY_ID_FROM else partition.topic
        found.append((name, partition.topic_id, batch.index, partition, result))
    return found


cdef bytes encoded(list batches, int64_t version, bint flexible, int64_t correlation_id):
    """The frame of an answer without errors: ``encode_produce_response``."""
    cdef Batch batch
    cdef int64_t topics = 0
    cdef Py_ssize_t size = 4 + 4 + 4 + 3 * 5  # size, correlation id, throttle time; tags and topics, or their count
    cdef uint8_t* start
    cdef uint8_t* at
    cdef bytes frame
    for batch in batches:
        size += 4 + 2 + 8 + 8 + 8 + 6
        if batch.of_topic:
            topics += 1
            size += batch.topic_size + 2 * 5 + 1
    frame = PyBytes_FromStringAndSize(NULL, size)
    start = <uint8_t*>PyBytes_AS_STRING(frame)
    at = put(start + 4, <uint64_t>correlation_id, 4)
    if flexible:
        at = put(at, 0, 1)
    at = put_length(at, topics, flexible, 4)
    cdef int64_t left = 0
    for batch in batches:
        if batch.of_topic:
            left = batch.of_topic
            if version < BY_ID_FROM:
                at = put_length(at, batch.topic_size, flexible, 2)
            memcpy(at, batch.topic, batch.topic_size)
            at = put_length(at + batch.topic_size, left, flexible, 4)
        at = put(at, <uint32_t>batch.index, 4)
        at = put(at, 0, 2)
        at = put(at, <uint64_t>batch.base_offset, 8)
        at = put(at, <uint64_t>-1, 8)
        if version >= LOG_START_FROM:
            at = put(at, <uint64_t>batch.log_start_offset, 8)
        if flexible:
            at = put(at, 0x010000, 3)  # no record errors, no message, no tags
        elif version >= RECORD_ERRORS_FROM:
            at = put(at, 0xFFFF, 6)
        left -= 1
        if flexible and left == 0:
            at = put(at, 0, 1)
    at = put(at, 0, 4)
    if flexible:
        at = put(at, 0, 1)
    put(start, <uint64_t>(at - start - 4), 4)
    return frame[:at - start]
