/* A load generator for brokers that speak Kafka's protocol: replays requests that were built beforehand.

   load FRAMES CONNECTIONS IN_FLIGHT REQUESTS PORT       every connection keeps IN_FLIGHT requests under way, REQUESTS in all
   load FRAMES tail GAP_US RECORDS PORT                  a consumer at the end of a partition: one fetch waits on one connection,
                                                         GAP_US later another connection produces the record that answers it

   FRAMES holds, for each request, four big-endian integers and the request with its length in front: the index of the error code
   in the answer (-1: none; the answer's length does not count), the least length of an answer, the index of the fetch offset that
   "tail" writes (-1: none), the length of what follows. Connections start at different frames and go round. Sent are the bytes
   as they are: one correlation id for all.

   Prints one line of JSON: requests, seconds, bytes sent and received, its own user and system seconds.
   Left out: decoding of answers beyond the error code, order of answers, latency, TLS, SASL, more than one broker. Linux only
   (epoll, MSG_TRUNC: bodies of answers are dropped in the kernel, which keeps the generator below half a core). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 4 * 4, BUFFER = 1 << 16, MOST_CONNECTIONS = 1024, SILENCE_MS = 60000 };

typedef struct {
    int32_t error_at, least, offset_at, length;
    char *bytes;
} Frame;

typedef struct {
    int fd, next;             /* the frame to be sent next */
    size_t sent;              /* bytes of it that are out */
    int asked, answered;      /* requests */
    int queue[64], first;     /* frames under way, oldest first: answers come in order */
    char buffer[BUFFER];
    size_t have, skip;        /* bytes in the buffer; bytes of an answer's body that are still to come */
} Line;

static Frame *frames;
static int frame_count, in_flight;
static Line *lines[MOST_CONNECTIONS];
static long left_to_send, left_to_answer;
static uint64_t bytes_out, bytes_in;

static void fail(const char *what) {
    fprintf(stderr, "load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static int32_t number_at(const char *at) {
    int32_t value;
    memcpy(&value, at, 4);
    return (int32_t)ntohl((uint32_t)value);
}

static void read_frames(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    char head[HEAD];
    while (fread(head, 1, HEAD, file) == HEAD) {
        frames = realloc(frames, sizeof(Frame) * (size_t)(frame_count + 1));
        Frame *frame = &frames[frame_count++];
        *frame = (Frame){number_at(head), number_at(head + 4), number_at(head + 8), number_at(head + 12), NULL};
        frame->bytes = malloc((size_t)frame->length);
        if (fread(frame->bytes, 1, (size_t)frame->length, file) != (size_t)frame->length) fail("frames are cut off");
    }
    fclose(file);
    if (!frame_count) fail("no frames");
}

static Line *dial(int port, int number) {
    Line *line = calloc(1, sizeof(Line));
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    line->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(line->fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    line->next = number % frame_count;
    return line;
}

/* Sends as much as the socket takes. */
static void send_some(Line *line) {
    while (line->sent || (line->asked - line->answered < in_flight && left_to_send)) {
        Frame *frame = &frames[line->next];
        if (!line->sent) {
            left_to_send--;
            line->queue[(line->first + line->asked - line->answered) % 64] = line->next;
            line->asked++;
        }
        ssize_t count = send(line->fd, frame->bytes + line->sent, (size_t)frame->length - line->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN) {
            if (!line->sent) { /* nothing of it is out */
                left_to_send++;
                line->asked--;
            }
            return;
        }
        if (count < 0) fail("send");
        bytes_out += (uint64_t)count;
        line->sent += (size_t)count;
        if (line->sent == (size_t)frame->length) {
            line->sent = 0;
            line->next = (line->next + 1) % frame_count;
        }
    }
}

/* Takes the answers that are in the buffer; of one whose head is there the rest is dropped as it comes. */
static void take_answers(Line *line) {
    size_t at = 0;
    while (line->have - at >= 4) {
        Frame *frame = &frames[line->queue[line->first]];
        size_t length = 4 + (size_t)number_at(line->buffer + at);
        size_t needed = frame->error_at < 0 ? 4 : 4 + (size_t)frame->error_at + 2;
        errno = 0;
        if (line->asked == line->answered) fail("an answer to nothing");
        if (length < 4 + (size_t)frame->least || length < needed) {
            fprintf(stderr, "load: an answer of %zu bytes, expected at least %d\n", length - 4, frame->least);
            exit(1);
        }
        if (line->have - at < needed) break;
        if (frame->error_at >= 0) {
            const unsigned char *code = (unsigned char *)line->buffer + at + 4 + frame->error_at;
            if (code[0] | code[1]) {
                fprintf(stderr, "load: the broker answered error %d\n", (int16_t)(code[0] << 8 | code[1]));
                exit(1);
            }
        }
        line->first = (line->first + 1) % 64;
        line->answered++;
        left_to_answer--;
        if (line->have - at < length) {
            line->skip = length - (line->have - at);
            at = line->have;
            break;
        }
        at += length;
    }
    memmove(line->buffer, line->buffer + at, line->have - at);
    line->have -= at;
}

static void receive(Line *line) {
    if (line->skip) {
        ssize_t count = recv(line->fd, NULL, line->skip, MSG_TRUNC | MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) fail("the broker closed the connection");
        line->skip -= (size_t)count;
        bytes_in += (uint64_t)count;
        return;
    }
    ssize_t count = recv(line->fd, line->buffer + line->have, BUFFER - line->have, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) fail("the broker closed the connection");
    line->have += (size_t)count;
    bytes_in += (uint64_t)count;
    take_answers(line);
}

static void flood(int connections, int port) {
    int poll = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        lines[i] = dial(port, i * frame_count / connections);
        struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = lines[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, lines[i]->fd, &wanted);
    }
    struct epoll_event found[64];
    while (left_to_answer) {
        int count = epoll_wait(poll, found, 64, SILENCE_MS);
        if (count <= 0 && errno != EINTR) fail("no answer for a minute");
        for (int i = 0; i < count; i++) {
            Line *line = found[i].data.ptr;
            if (found[i].events & (EPOLLIN | EPOLLHUP)) {
                uint64_t before;
                do {
                    before = bytes_in;
                    receive(line);
                } while (bytes_in != before);
            }
            send_some(line);
        }
    }
}

static void one_answer(Line *line) {
    int before = line->answered;
    while (line->answered == before || line->skip) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(line->fd, &set);
        struct timeval limit = {SILENCE_MS / 1000, 0};
        errno = 0;
        if (select(line->fd + 1, &set, NULL, NULL, &limit) != 1) fail("no answer for a minute");
        receive(line);
    }
}

/* frames[0] fetches, frames[1] produces one record; offsets start at what frames[0] holds. */
static void tail(long records, long gap_us, int port) {
    in_flight = 1;
    if (frame_count != 2 || frames[0].offset_at < 0) fail("tail needs a fetch with an offset and a produce");
    Line *consumer = dial(port, 0), *producer = dial(port, 1);
    char *field = frames[0].bytes + frames[0].offset_at;
    uint64_t offset = (uint64_t)(uint32_t)number_at(field) << 32 | (uint32_t)number_at(field + 4);
    struct timespec gap = {gap_us / 1000000, gap_us % 1000000 * 1000};
    for (long i = 0; i < records; i++, offset++) {
        uint32_t high = htonl((uint32_t)(offset >> 32)), low = htonl((uint32_t)offset);
        memcpy(field, &high, 4);
        memcpy(field + 4, &low, 4);
        consumer->next = 0;
        producer->next = 1;
        left_to_send = 2;
        send_some(consumer);
        nanosleep(&gap, NULL);
        send_some(producer);
        one_answer(producer);
        one_answer(consumer);
    }
}

static double seconds_of(struct timeval value) { return (double)value.tv_sec + (double)value.tv_usec / 1e6; }

int main(int argc, char **argv) {
    if (argc != 6) fail("usage: load FRAMES CONNECTIONS|tail IN_FLIGHT|GAP_US REQUESTS PORT");
    read_frames(argv[1]);
    int port = atoi(argv[5]);
    long requests = atol(argv[4]);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (!strcmp(argv[2], "tail")) {
        tail(requests, atol(argv[3]), port);
    } else {
        int connections = atoi(argv[2]);
        in_flight = atoi(argv[3]);
        left_to_send = left_to_answer = requests;
        if (connections < 1 || connections > MOST_CONNECTIONS || in_flight < 1 || in_flight > 63) fail("too many or too few");
        flood(connections, port);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    printf("{\"requests\": %ld, \"seconds\": %.6f, \"sent\": %lu, \"received\": %lu, \"user_s\": %.6f, \"system_s\": %.6f}\n", requests,
           seconds, (unsigned long)bytes_out, (unsigned long)bytes_in, seconds_of(used.ru_utime), seconds_of(used.ru_stime));
    return 0;
}
