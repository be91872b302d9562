/* A load generator for brokers that speak Kafka's protocol in plaintext, TLS, or TLS with a login by SCRAM-SHA-512.

   tls_load FRAMES SECURITY PORT flood CONNECTIONS IN_FLIGHT REQUESTS    every connection keeps IN_FLIGHT requests under way
   tls_load FRAMES SECURITY PORT paced CONNECTIONS RATE RECORDS STAMP    one record a request, RATE a second, from connections in
                                       turn, and a consumer at the end of the partition; STAMP: where a batch has the record's value
   tls_load FRAMES SECURITY PORT shake THREADS RESUMED CONNECTIONS       connections one after another, each for one request;
                                       RESUMED: 1 to resume sessions of the same thread

   SECURITY: plain, ssl, sasl_ssl. FRAMES: as for ../pair/load.c; in "paced" frames[0] fetches and frames[1] produces, both with the
   index of what is written into them: the fetch offset, the record's value. The client offers TLS 1.3 with AES-256-GCM alone, and
   does not check the certificate's names or its issuer.

   Prints one line of JSON: requests, seconds without the connecting (but for "shake"), bytes, its own CPU seconds, cipher,
   resumed sessions, and in "paced" the latencies in microseconds from the moment when a record was due: "acked" until its answer,
   "consumed" until the consumer has it. Linux only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

#include "scram.h"

enum { HEAD = 4 * 4, BUFFER = 2 << 20, MOST_CONNECTIONS = 256, MOST_IN_FLIGHT = 64, PACED_IN_FLIGHT = 5, SILENCE_MS = 60000 };
enum { CRC_AT = 17, CHECKED_FROM = 21, SMALL = 1024 };

typedef struct {
    int32_t error_at, least, stamp_at, length;
    char *bytes;
} Frame;

typedef struct {
    int fd, next; /* the frame to be sent next */
    SSL *secure;
    int begun;           /* it is under way */
    size_t sent;         /* bytes of it that are out; in "paced" those that are not */
    int asked, answered; /* requests */
    struct {
        int frame;
        uint64_t due;
    } queue[MOST_IN_FLIGHT]; /* under way, oldest first: answers come in order */
    int first;
    char small[SMALL]; /* a request of "paced" */
    size_t have, skip; /* bytes in the buffer; bytes of an answer's body that are still to come */
    char buffer[BUFFER];
} Line;

static Frame *frames;
static int frame_count, in_flight, security, port;
static Line *lines[MOST_CONNECTIONS];
static atomic_long left_to_send, resumed;
static long left_to_answer;
static atomic_ulong bytes_out, bytes_in;
static SSL_CTX *tls;
static _Thread_local SSL_SESSION *newest;
static char cipher[64] = "none";

static void fail(const char *what) {
    fprintf(stderr, "load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    ERR_print_errors_fp(stderr);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t number_at(const char *at) {
    int32_t value;
    memcpy(&value, at, 4);
    return (int32_t)ntohl((uint32_t)value);
}

static void put_number(char *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

static uint64_t long_at(const char *at) { return (uint64_t)(uint32_t)number_at(at) << 32 | (uint32_t)number_at(at + 4); }

static void put_long(char *at, uint64_t value) {
    put_number(at, (uint32_t)(value >> 32));
    put_number(at + 4, (uint32_t)value);
}

static uint32_t crc32c(const char *data, size_t length) {
    uint32_t crc = 0xFFFFFFFF;
#ifdef __SSE4_2__
    for (; length; data++, length--) crc = _mm_crc32_u8(crc, (unsigned char)*data);
#else
    for (; length; data++, length--) {
        crc ^= (unsigned char)*data;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
#endif
    return ~crc;
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

/* -- bytes: -1 with EAGAIN when nothing moves now --------------------------------------------------------------------------- */

static ssize_t moved(Line *line, int done, size_t count, atomic_ulong *sum) {
    if (done) {
        *sum += count;
        return (ssize_t)count;
    }
    int why = SSL_get_error(line->secure, 0);
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) fail("TLS");
    errno = EAGAIN;
    return -1;
}

static ssize_t put(Line *line, const char *from, size_t length) {
    if (line->secure) {
        size_t count = 0;
        int done = SSL_write_ex(line->secure, from, length, &count);
        return moved(line, done, count, &bytes_out);
    }
    ssize_t count = send(line->fd, from, length, MSG_NOSIGNAL);
    if (count > 0) bytes_out += (unsigned long)count;
    return count;
}

static ssize_t take(Line *line, char *into, size_t room) {
    if (line->secure) {
        size_t count = 0;
        int done = SSL_read_ex(line->secure, into, room, &count);
        return moved(line, done, count, &bytes_in);
    }
    ssize_t count = recv(line->fd, into, room, 0);
    if (count > 0) bytes_in += (unsigned long)count;
    return count;
}

/* -- connecting, with a socket that blocks ---------------------------------------------------------------------------------- */

/* The answer to a request, its length left off, in the line's buffer; its length. */
static size_t asked_now(Line *line, const char *request, size_t length) {
    for (ssize_t count; length; request += count, length -= (size_t)count)
        if ((count = put(line, request, length)) <= 0) fail("send");
    size_t have = 0;
    while (have < 4 || have < 4 + (size_t)number_at(line->buffer)) {
        ssize_t count = take(line, line->buffer + have, BUFFER - have);
        if (count <= 0) fail("the broker closed the connection");
        have += (size_t)count;
    }
    memmove(line->buffer, line->buffer + 4, have - 4);
    return have - 4;
}

/* What the broker answers to a message of the login. */
static void sasl(Line *line, const char *message, char *into) {
    char request[SCRAM_TEXT + 64], *at = request + 4;
    memcpy(at, "\0\44\0\2\0\0\0\1\0\5bench\0", 16);
    at += 16;
    size_t length = strlen(message) + 1;
    if (length >= 128) *at++ = (char)(length | 128);
    *at++ = (char)(length >= 128 ? length >> 7 : length);
    memcpy(at, message, length - 1);
    at += length - 1;
    *at++ = 0;
    put_number(request, (uint32_t)(at - request - 4));
    size_t have = asked_now(line, request, (size_t)(at - request));
    const char *answer = line->buffer + 5; /* correlation id, tags */
    if (have < 10 || answer[0] || answer[1]) fail("the broker refuses the login");
    answer += 2;
    if ((unsigned char)*answer++ > 1) fail("a message beside no error");
    size_t found = (unsigned char)*answer++;
    if (found >= 128) found = (found & 127) | (size_t)(unsigned char)*answer++ << 7;
    if (!found || found > SCRAM_TEXT) fail("an answer that is too long");
    memcpy(into, answer, found - 1);
    into[found - 1] = 0;
}

/* The salted password, worked out once for each salt. */
static void password_for(const char *encoded, size_t length, int iterations, unsigned char *into) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char known[ENCODED];
    static Digest found;
    static int times;
    unsigned char salt[ENCODED];
    if (length >= ENCODED) fail("a long salt");
    pthread_mutex_lock(&lock);
    if (times != iterations || strncmp(known, encoded, length) || known[length]) {
        snprintf(known, sizeof known, "%.*s", (int)length, encoded);
        times = iterations;
        salted(salt, decode(encoded, length, salt), iterations, found);
    }
    memcpy(into, found, DIGEST);
    pthread_mutex_unlock(&lock);
}

static void log_in(Line *line) {
    static const char handshake[] = "\0\0\0\36\0\21\0\1\0\0\0\1\0\5bench\0\15" MECHANISM;
    asked_now(line, handshake, 34);
    if (line->buffer[4] || line->buffer[5]) fail("the broker does not have the mechanism");
    char own[32], first[64], server[SCRAM_TEXT + 1], bare[SCRAM_TEXT + 128], whole[4 * SCRAM_TEXT], last[2 * SCRAM_TEXT];
    nonce(own);
    snprintf(first, sizeof first, "n,,n=" USER ",r=%s", own);
    sasl(line, first, server);
    size_t nonce_length = 0, salt_length = 0, length = 0;
    const char *both = attribute(server, 'r', &nonce_length), *salt = attribute(server, 's', &salt_length);
    const char *iterations = attribute(server, 'i', &length);
    if (!both || !salt || !iterations) fail("the broker's first message is not understood");
    Digest password, client_key, stored, signature, proof, server_key;
    char encoded[ENCODED];
    password_for(salt, salt_length, atoi(iterations), password);
    hmac(password, "Client Key", client_key);
    SHA512(client_key, DIGEST, stored);
    snprintf(bare, sizeof bare, "c=biws,r=%.*s", (int)nonce_length, both);
    snprintf(whole, sizeof whole, "%s,%s,%s", first + 3, server, bare);
    hmac(stored, whole, signature);
    mix(client_key, signature, proof);
    encode(proof, DIGEST, encoded);
    snprintf(last, sizeof last, "%s,p=%s", bare, encoded);
    sasl(line, last, server);
    hmac(password, "Server Key", server_key);
    hmac(server_key, whole, signature);
    encode(signature, DIGEST, encoded);
    if (strncmp(server, "v=", 2) || strcmp(server + 2, encoded)) fail("the broker does not know the password");
}

static int keep_session(SSL *secure, SSL_SESSION *session) {
    (void)secure;
    SSL_SESSION_free(newest);
    newest = session;
    return 1;
}

static void prepare_tls(void) {
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
    if (SSL_CTX_set_ciphersuites(tls, "TLS_AES_256_GCM_SHA384") != 1) fail("no AES-256-GCM");
    SSL_CTX_set_read_ahead(tls, 1);
    SSL_CTX_set_default_read_buffer_len(tls, (128 << 10) + 4096);
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(tls, keep_session);
}

static void dial(Line *line, int resumes) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    errno = 0;
    line->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(line->fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(line->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){SILENCE_MS / 1000, 0}, sizeof(struct timeval));
    if (!security) return;
    line->secure = SSL_new(tls);
    SSL_set_fd(line->secure, line->fd);
    if (resumes && newest) SSL_set_session(line->secure, newest);
    if (SSL_connect(line->secure) != 1) fail("the TLS handshake");
    resumed += SSL_session_reused(line->secure);
    if (cipher[0] == 'n') snprintf(cipher, sizeof cipher, "%s %s", SSL_get_version(line->secure), SSL_get_cipher(line->secure));
    if (security == 2) log_in(line);
}

static Line *connected(int number) {
    Line *line = calloc(1, sizeof(Line));
    dial(line, 0);
    fcntl(line->fd, F_SETFL, O_NONBLOCK);
    line->next = number % frame_count;
    return line;
}

/* -- answers ---------------------------------------------------------------------------------------------------------------- */

static void check(const Frame *frame, const char *answer, size_t length) {
    errno = 0;
    if (length < (size_t)frame->least) {
        fprintf(stderr, "load: an answer of %zu bytes, expected at least %d\n", length, frame->least);
        exit(1);
    }
    if (frame->error_at < 0) return;
    const unsigned char *code = (const unsigned char *)answer + frame->error_at;
    if (code[0] | code[1]) {
        fprintf(stderr, "load: the broker answered error %d\n", (int16_t)(code[0] << 8 | code[1]));
        exit(1);
    }
}

/* An answer from the front of the buffer, whole when ``whole``; 0 when more has to come first. */
static size_t next_answer(const Line *line, size_t at, int whole) {
    const Frame *frame = &frames[line->queue[line->first].frame];
    if (line->have - at < 4) return 0;
    if (line->asked == line->answered) fail("an answer to nothing");
    size_t length = 4 + (size_t)number_at(line->buffer + at), head = 4 + (frame->error_at < 0 ? 0 : (size_t)frame->error_at + 2);
    if (line->have - at < (whole ? length : head)) {
        if (whole && length > BUFFER) fail("an answer that is too long");
        return 0;
    }
    check(frame, line->buffer + at + 4, length - 4);
    return length;
}

static void taken(Line *line) {
    line->first = (line->first + 1) % MOST_IN_FLIGHT;
    line->answered++;
}

static void moved_up(Line *line, size_t at) {
    memmove(line->buffer, line->buffer + at, line->have - at);
    line->have -= at;
}

/* -- flood ------------------------------------------------------------------------------------------------------------------ */

static void send_some(Line *line) {
    while (line->begun || (line->asked - line->answered < in_flight && left_to_send)) {
        const Frame *frame = &frames[line->next];
        if (!line->begun) {
            left_to_send--;
            line->queue[(line->first + line->asked - line->answered) % MOST_IN_FLIGHT].frame = line->next;
            line->asked++;
            line->begun = 1;
        }
        ssize_t count = put(line, frame->bytes + line->sent, (size_t)frame->length - line->sent);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) fail("send");
        line->sent += (size_t)count;
        if (line->sent == (size_t)frame->length) {
            line->sent = 0;
            line->begun = 0;
            line->next = (line->next + 1) % frame_count;
        }
    }
}

static int receive(Line *line) {
    static char dropped[1 << 18];
    if (line->skip) {
        size_t wanted = line->skip < sizeof dropped ? line->skip : sizeof dropped;
        ssize_t count = line->secure ? take(line, dropped, wanted) : recv(line->fd, NULL, line->skip, MSG_TRUNC);
        if (count < 0 && errno == EAGAIN) return 0;
        if (count <= 0) fail("the broker closed the connection");
        if (!line->secure) bytes_in += (unsigned long)count;
        line->skip -= (size_t)count;
        if (!line->skip) left_to_answer--;
        return 1;
    }
    ssize_t count = take(line, line->buffer + line->have, (64 << 10) - line->have);
    if (count < 0 && errno == EAGAIN) return 0;
    if (count <= 0) fail("the broker closed the connection");
    line->have += (size_t)count;
    size_t at = 0, length;
    while ((length = next_answer(line, at, 0))) {
        taken(line);
        size_t here = line->have - at < length ? line->have - at : length;
        line->skip = length - here;
        if (!line->skip) left_to_answer--;
        at += here;
    }
    moved_up(line, at);
    return 1;
}

static void flood(int connections) {
    struct epoll_event found[64];
    int waiting = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = lines[i]};
        epoll_ctl(waiting, EPOLL_CTL_ADD, lines[i]->fd, &wanted);
    }
    while (left_to_answer) {
        int count = epoll_wait(waiting, found, 64, SILENCE_MS);
        if (count <= 0 && errno != EINTR) fail("no answer for a minute");
        for (int i = 0; i < count; i++) {
            Line *line = found[i].data.ptr;
            if (found[i].events & (EPOLLIN | EPOLLHUP))
                while (left_to_answer && receive(line)) continue;
            send_some(line);
        }
    }
}

/* -- paced ------------------------------------------------------------------------------------------------------------------ */

static uint64_t *acked_ns, *consumed_ns;
static long records, acked, consumed;
static int stamp_in_batch;

static int produced(Line *line, uint64_t due) {
    const Frame *frame = &frames[1];
    if (line->sent || line->asked - line->answered >= PACED_IN_FLIGHT) return 0;
    memcpy(line->small, frame->bytes, (size_t)frame->length);
    char *value = line->small + frame->stamp_at, *batch = value - stamp_in_batch;
    put_long(value, due);
    put_number(batch + CRC_AT, crc32c(batch + CHECKED_FROM, (size_t)number_at(batch + 8) + 12 - CHECKED_FROM));
    int at = (line->first + line->asked - line->answered) % MOST_IN_FLIGHT;
    line->queue[at].frame = 1;
    line->queue[at].due = due;
    line->asked++;
    line->sent = (size_t)frame->length; /* still to go */
    return 1;
}

static void push(Line *line) {
    while (line->sent) {
        ssize_t count = put(line, line->small + frames[line->next].length - line->sent, line->sent);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) fail("send");
        line->sent -= (size_t)count;
    }
}

static void ask_on(Line *line) {
    const Frame *frame = &frames[0];
    memcpy(line->small, frame->bytes, (size_t)frame->length);
    put_long(line->small + frame->stamp_at, long_at(frame->bytes + frame->stamp_at) + (uint64_t)consumed);
    line->queue[line->first].frame = 0;
    line->asked++;
    line->sent = (size_t)frame->length;
    push(line);
}

static void consume(const char *answer, size_t length) {
    uint64_t now = now_ns();
    /* error, high watermark, last stable offset, log start, aborted transactions (none), preferred replica */
    const unsigned char *at = (const unsigned char *)answer + frames[0].error_at + 2 + 24 + 1 + 4;
    size_t left = 0;
    for (int shift = 0;; shift += 7) {
        left |= (size_t)(*at & 127) << shift;
        if (*at++ < 128) break;
    }
    const char *batch = (const char *)at;
    if (!left || (size_t)(batch - answer) + left - 1 > length) fail("records that are cut off");
    for (left--; left >= CHECKED_FROM; ) {
        size_t whole = (size_t)number_at(batch + 8) + 12;
        if (whole > left) break;
        if (consumed == records) fail("more records than were sent");
        consumed_ns[consumed++] = now - long_at(batch + stamp_in_batch);
        batch += whole;
        left -= whole;
    }
}

static int heard(Line *line, int consumes) {
    ssize_t count = take(line, line->buffer + line->have, BUFFER - line->have);
    if (count < 0 && errno == EAGAIN) return 0;
    if (count <= 0) fail("the broker closed the connection");
    line->have += (size_t)count;
    size_t at = 0, length;
    while ((length = next_answer(line, at, 1))) {
        if (consumes) consume(line->buffer + at + 4, length - 4);
        else acked_ns[acked++] = now_ns() - line->queue[line->first].due;
        taken(line);
        at += length;
    }
    moved_up(line, at);
    if (consumes && at && consumed < records) ask_on(line);
    return 1;
}

static void paced(int producers, long rate) {
    Line *consumer = lines[producers];
    uint64_t gap = 1000000000u / (uint64_t)rate, due;
    struct itimerspec ticks = {{0, (long)gap}, {0, (long)gap}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), waiting = epoll_create1(0), turn = 0;
    for (int i = 0; i <= producers; i++) {
        struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = lines[i]};
        epoll_ctl(waiting, EPOLL_CTL_ADD, lines[i]->fd, &wanted);
        lines[i]->next = i < producers; /* the frame */
    }
    struct epoll_event wanted = {.events = EPOLLIN}, found[64];
    epoll_ctl(waiting, EPOLL_CTL_ADD, timer, &wanted);
    ask_on(consumer);
    timerfd_settime(timer, 0, &ticks, NULL);
    due = now_ns() + gap;
    for (long begun = 0; acked < records || consumed < records;) {
        int count = epoll_wait(waiting, found, 64, SILENCE_MS);
        if (count <= 0 && errno != EINTR) fail("no answer for a minute");
        for (int i = 0; i < count; i++) {
            Line *line = found[i].data.ptr;
            uint64_t passed;
            if (!line) {
                if (read(timer, &passed, sizeof passed) < 0 && errno != EAGAIN) fail("timer");
                continue;
            }
            while (heard(line, line == consumer)) continue;
            push(line);
        }
        uint64_t now = now_ns();
        for (int tried = 0; begun < records && due <= now && tried < producers; turn = (turn + 1) % producers) {
            if (!produced(lines[turn], due)) {
                tried++; /* late, which counts for the record */
                continue;
            }
            push(lines[turn]);
            begun++;
            due += gap;
            tried = 0;
        }
        if (begun == records) timerfd_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 0}}, NULL);
    }
}

static int compared(const void *one, const void *two) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)two;
    return (a > b) - (a < b);
}

static void print_latency(const char *name, uint64_t *found) {
    qsort(found, (size_t)records, sizeof *found, compared);
    printf(", \"%s_us\": {\"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f}", name, (double)found[records / 2] / 1e3,
           (double)found[records * 99 / 100] / 1e3, (double)found[records * 999 / 1000] / 1e3);
}

/* -- shake ------------------------------------------------------------------------------------------------------------------ */

static void *shaker(void *resumes) {
    Line *line = calloc(1, sizeof(Line));
    while (left_to_send-- > 0) {
        dial(line, resumes != NULL);
        size_t length = asked_now(line, frames[0].bytes, (size_t)frames[0].length);
        check(&frames[0], line->buffer, length);
        if (line->secure) {
            SSL_shutdown(line->secure);
            SSL_free(line->secure);
        }
        close(line->fd);
    }
    free(line);
    return NULL;
}

static void shake(int threads, int resumes) {
    pthread_t running[MOST_CONNECTIONS];
    for (int i = 0; i < threads; i++) pthread_create(&running[i], NULL, shaker, resumes ? "" : NULL);
    for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
}

static double seconds_of(struct timeval value) { return (double)value.tv_sec + (double)value.tv_usec / 1e6; }

int main(int argc, char **argv) {
    if (argc < 8) fail("usage: tls_load FRAMES SECURITY PORT flood|paced|shake CONNECTIONS IN_FLIGHT|RATE|RESUMED AMOUNT [STAMP]");
    read_frames(argv[1]);
    security = !strcmp(argv[2], "sasl_ssl") ? 2 : !strcmp(argv[2], "ssl");
    port = atoi(argv[3]);
    int connections = atoi(argv[5]), often = atoi(argv[6]);
    long amount = atol(argv[7]);
    if (connections < 1 || connections >= MOST_CONNECTIONS || amount < 1) fail("too many or too few");
    prepare_tls();
    int floods = !strcmp(argv[4], "flood"), paces = !strcmp(argv[4], "paced");
    int kept = floods ? connections : paces ? connections + 1 : 0;
    for (int i = 0; i < kept; i++) lines[i] = connected(floods ? i * frame_count / connections : 0);
    uint64_t began = now_ns();
    left_to_send = left_to_answer = amount;
    if (floods) {
        in_flight = often;
        if (in_flight < 1 || in_flight >= MOST_IN_FLIGHT) fail("too many or too few in flight");
        flood(connections);
    } else if (paces) {
        if (argc != 9 || frame_count != 2 || frames[0].length > SMALL || frames[1].length > SMALL) fail("paced: a fetch and a produce");
        records = amount;
        stamp_in_batch = atoi(argv[8]);
        acked_ns = calloc((size_t)records, sizeof *acked_ns);
        consumed_ns = calloc((size_t)records, sizeof *consumed_ns);
        paced(connections, often);
    } else shake(connections, often);
    double seconds = (double)(now_ns() - began) / 1e9;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"requests\": %ld, \"seconds\": %.6f, \"sent\": %lu, \"received\": %lu, \"user_s\": %.6f, \"system_s\": %.6f, "
           "\"cipher\": \"%s\", \"resumed\": %ld",
           amount, seconds, (unsigned long)bytes_out, (unsigned long)bytes_in, seconds_of(used.ru_utime), seconds_of(used.ru_stime),
           cipher, (long)resumed);
    if (paces) {
        print_latency("acked", acked_ns);
        print_latency("consumed", consumed_ns);
    }
    printf("}\n");
    return 0;
}
