/* The protocol's half of the C limits: partitions in files, Produce v12, Fetch v17. What sends and receives is in the program that
   includes it: limit.c in plaintext, ../secure/tls_limit.c by OpenSSL. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

enum { PARTITIONS = 64, BUFFER = 4 << 20, PRODUCE = 0, FETCH = 1, PLAIN_ANSWER = 600 };
enum { LENGTH_AT = 8, EPOCH_AT = 12, CRC_AT = 17, CHECKED_FROM = 21, LAST_DELTA_AT = 23 };

typedef struct {
    int fd;
    int64_t end, records; /* bytes; records */
    int64_t batch_bytes, batch_records;
    struct Line *waiting;
} Partition;

typedef struct Line {
    int fd;
    void *secure; /* NULL: plaintext */
    void *login;  /* of a login that has begun */
    size_t have;
    char buffer[BUFFER];
    char waits[128]; /* a fetch that waits */
} Line;

static Partition partitions[PARTITIONS];
static const char *folder;

/* What a program that includes this file defines. ``say`` sends bytes, ``say_file`` bytes of a file, both all of them unless the
   client has gone; ``hear`` receives: a count, 0 at the end, -1 when nothing is there now; ``say_other`` answers any other request. */
static void say(Line *line, const char *answer, const char *end, int more);
static void say_file(Line *line, int fd, off_t position, size_t length);
static ssize_t hear(Line *line, char *into, size_t room);
static void say_other(Line *line, char *frame);
static void closing(Line *line);

static void fail(const char *what) {
    fprintf(stderr, "limit: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint32_t u32(const char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return be32toh(value);
}

static int64_t i64(const char *at) {
    int64_t value;
    memcpy(&value, at, 8);
    return (int64_t)be64toh((uint64_t)value);
}

static char *put32(char *at, uint32_t value) {
    value = htobe32(value);
    memcpy(at, &value, 4);
    return at + 4;
}

static char *put64(char *at, int64_t value) {
    uint64_t big = htobe64((uint64_t)value);
    memcpy(at, &big, 8);
    return at + 8;
}

static char *put_varint(char *at, size_t value) {
    for (; value >= 128; value >>= 7) *at++ = (char)(value | 128);
    *at++ = (char)value;
    return at;
}

static size_t varint(char **at) {
    size_t value = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char byte = (unsigned char)*(*at)++;
        value |= (size_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static uint32_t crc32c(const char *data, size_t length) {
    uint64_t crc = 0xFFFFFFFF;
#ifdef __SSE4_2__
    for (; length >= 8; data += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    for (; length; data++, length--) crc = _mm_crc32_u8((uint32_t)crc, (unsigned char)*data);
#else
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0x82F63B78 : 0);
            table[i] = value;
        }
    for (; length; data++, length--) crc = crc >> 8 ^ table[(crc ^ (unsigned char)*data) & 255];
#endif
    return ~(uint32_t)crc;
}

static Partition *partition(uint32_t index) {
    if (index >= PARTITIONS) fail("a partition past the last");
    Partition *found = &partitions[index];
    if (!found->fd) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%u.log", folder, index);
        if ((found->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0) fail(path);
    }
    return found;
}

/* What follows the header of a request: key, version, correlation id, client id, tags. */
static char *body_of(char *frame) { return frame + 4 + 8 + 2 + (unsigned char)frame[4 + 8 + 1] + 1; }

/* Whether the client has closed the connection, whose end the next read then finds. */
static int gone(void) { return errno == EPIPE || errno == ECONNRESET; }

static int64_t append(Partition *to, char *batch, size_t length) {
    if (crc32c(batch + CHECKED_FROM, length - CHECKED_FROM) != u32(batch + CRC_AT)) fail("a CRC does not match");
    int64_t base = to->records;
    put64(batch, base);
    put32(batch + EPOCH_AT, 0);
    if (pwrite(to->fd, batch, length, to->end) != (ssize_t)length) fail("pwrite");
    to->batch_bytes = (int64_t)length;
    to->batch_records = u32(batch + LAST_DELTA_AT) + 1;
    to->records += to->batch_records;
    to->end += to->batch_bytes;
    return base;
}

static void fetch(Line *line, char *frame);

static void produce(Line *line, char *frame) {
    static char answer[8192];
    Partition *touched[PARTITIONS];
    int touches = 0;
    char *at = body_of(frame) + 1 + 2 + 4; /* transactional id, acks, timeout */
    if (varint(&at) != 2) fail("one topic, please");
    char *name = at;
    size_t name_length = varint(&at) - 1;
    at += name_length;
    char *out = answer + 4;
    memcpy(out, frame + 8, 4);
    out += 4;
    *out++ = 0;
    *out++ = 2;
    memcpy(out, name, name_length + 1);
    out += name_length + 1;
    size_t count = varint(&at) - 1;
    out = put_varint(out, count + 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t index = u32(at);
        at += 4;
        size_t length = varint(&at) - 1;
        Partition *to = partition(index);
        int64_t base = append(to, at, length);
        at += length + 1;
        touched[touches++] = to;
        out = put32(out, index);
        *out++ = 0;
        *out++ = 0;
        out = put64(put64(put64(out, base), -1), 0);
        memcpy(out, "\1\0\0", 3); /* no errors of records, no message, no tags */
        out += 3;
    }
    *out++ = 0;
    out = put32(out, 0);
    *out++ = 0;
    put32(answer, (uint32_t)(out - answer - 4));
    say(line, answer, out, 0);
    for (int i = 0; i < touches; i++) {
        Line *waiting = touched[i]->waiting;
        touched[i]->waiting = NULL;
        if (waiting) fetch(waiting, waiting->waits);
    }
}

typedef struct {
    Partition *from;
    off_t position;
    size_t length, head_length;
    char head[64];
} Part;

/* What stands before a partition's records in an answer. */
static void head_of(Part *part, uint32_t index) {
    char *out = put32(part->head, index);
    *out++ = 0;
    *out++ = 0;
    out = put64(put64(put64(out, part->from->records), part->from->records), 0);
    *out++ = 1;
    out = put_varint(put32(out, UINT32_MAX), part->length + 1);
    part->head_length = (size_t)(out - part->head);
}

static void fetch(Line *line, char *frame) {
    static Part parts[PARTITIONS];
    char *at = body_of(frame) + 4 + 4 + 4 + 1 + 4 + 4; /* max wait, min and max bytes, isolation level, session id and epoch */
    if (varint(&at) != 2) fail("one topic, please");
    char *topic_id = at;
    at += 16;
    size_t count = varint(&at) - 1, whole = 0;
    if (!count || count > PARTITIONS) fail("one to 64 partitions, please");
    for (size_t i = 0; i < count; i++, at += 4 + 4 + 8 + 4 + 8 + 4 + 1) {
        Part *part = &parts[i];
        uint32_t index = u32(at);
        Partition *from = part->from = partition(index);
        int64_t offset = i64(at + 8), most = u32(at + 28);
        part->length = 0;
        if (offset < from->records) {
            part->position = offset / from->batch_records * from->batch_bytes;
            part->length = (size_t)(from->end - part->position < most ? from->end - part->position : most);
        } else if (count == 1) {
            memcpy(line->waits, frame, sizeof line->waits);
            from->waiting = line;
            return;
        }
        head_of(part, index);
        whole += part->head_length + part->length + 1;
    }
    char answer[128], *out = answer + 4;
    memcpy(out, frame + 8, 4);
    memset(out + 4, 0, 1 + 4 + 2 + 4);
    out += 4 + 1 + 4 + 2 + 4; /* tags, throttle time, error, session */
    *out++ = 2;
    memcpy(out, topic_id, 16);
    out = put_varint(out + 16, count + 1);
    put32(answer, (uint32_t)((size_t)(out - answer - 4) + whole + 2));
    for (Part *part = parts; part < parts + count; part++) {
        memcpy(out, part->head, part->head_length);
        say(line, answer, out + part->head_length, MSG_MORE);
        if (part->length) say_file(line, part->from->fd, part->position, part->length);
        out = answer;
        *out++ = 0; /* tags of the partition */
    }
    *out++ = 0; /* of the topic */
    *out++ = 0; /* of the answer */
    say(line, answer, out, 0);
}

/* Takes what has arrived; 0 when the client has gone and the line with it. ``again``: more may be there, unseen by the kernel. */
static int serve(Line *line, int again) {
    do {
        ssize_t count = hear(line, line->buffer + line->have, BUFFER - line->have);
        if (count < 0) return 1;
        if (count == 0) {
            for (int i = 0; i < PARTITIONS; i++)
                if (partitions[i].waiting == line) partitions[i].waiting = NULL;
            closing(line);
            close(line->fd);
            free(line);
            return 0;
        }
        line->have += (size_t)count;
        char *frame = line->buffer, *end = line->buffer + line->have;
        while (end - frame >= 4 && (size_t)(end - frame) >= 4 + (size_t)u32(frame)) {
            int key = frame[5];
            if (key == PRODUCE) produce(line, frame);
            else if (key == FETCH) fetch(line, frame);
            else say_other(line, frame);
            frame += 4 + u32(frame);
        }
        line->have = (size_t)(end - frame);
        memmove(line->buffer, frame, line->have);
    } while (again);
    return 1;
}

static void say_zeros(Line *line, char *frame) {
    char answer[4 + PLAIN_ANSWER] = {0};
    put32(answer, PLAIN_ANSWER);
    memcpy(answer + 4, frame + 8, 4);
    say(line, answer, answer + sizeof answer, 0);
}

static int listening(int port) {
    int server = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 1024)) fail("listen");
    return server;
}

static Line *accepted(int server) {
    Line *line = malloc(sizeof(Line));
    memset(line, 0, offsetof(Line, buffer));
    line->fd = accept(server, NULL, NULL);
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return line;
}

static void send_all(Line *line, const char *from, const char *end, int more) {
    for (ssize_t count; from < end; from += count)
        if ((count = send(line->fd, from, (size_t)(end - from), more | MSG_NOSIGNAL)) < 0) {
            if (!gone()) fail("send");
            return;
        }
}

static void send_file(Line *line, int fd, off_t position, size_t length) {
    while (length) {
        ssize_t count = sendfile(line->fd, fd, &position, length);
        if (count <= 0) {
            if (!gone()) fail("sendfile");
            return;
        }
        length -= (size_t)count;
    }
}
