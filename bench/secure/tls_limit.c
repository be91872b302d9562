/* The C limit under TLS: what a broker on one core costs at least, here and now, for requests of tls_load.c, by OpenSSL.

   tls_limit PORT TLS_PORT PEM FOLDER

   As ../pair/limit.c, and: what arrives at TLS_PORT is TLS 1.3 with the key and the certificate in PEM, resumed by OpenSSL's own
   tickets; a client that wishes to logs in by SCRAM-SHA-512 (SaslHandshake, SaslAuthenticate v2). A fetch under TLS is read from
   the page cache, 128 KiB at a time, and encrypted. OpenSSL reads ahead: one call of the kernel for as much as is there. */
#include "limit_broker.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include "scram.h"

enum { CHUNK = 128 << 10, ITERATIONS = 4096 };

typedef struct {
    char bare[SCRAM_TEXT], first[SCRAM_TEXT], nonce[64]; /* the client's first message without its head, ours, our nonce */
} Login;

static const unsigned char salt[16] = "sixteen bytes...";
static Digest stored_key, server_key;

static void broken(const char *what) {
    ERR_print_errors_fp(stderr);
    errno = 0;
    fail(what);
}

/* -- bytes ------------------------------------------------------------------------------------------------------------------ */

static void say_secured(Line *line, const char *from, size_t length) {
    while (length) {
        size_t count = 0;
        if (SSL_write_ex(line->secure, from, length, &count)) {
            from += count;
            length -= count;
            continue;
        }
        int why = SSL_get_error(line->secure, 0);
        if (why != SSL_ERROR_WANT_WRITE && why != SSL_ERROR_WANT_READ) return; /* the client has gone */
        poll(&(struct pollfd){line->fd, why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN, 0}, 1, -1);
    }
}

static void cork(Line *line, int wanted) { setsockopt(line->fd, IPPROTO_TCP, TCP_CORK, &wanted, sizeof wanted); }

static void say(Line *line, const char *answer, const char *end, int more) {
    if (!line->secure) {
        send_all(line, answer, end, more);
        return;
    }
    static int corked; /* between the head of an answer and its end, in which no other connection has its turn */
    if (more) cork(line, corked = 1);
    say_secured(line, answer, (size_t)(end - answer));
    if (corked && !more) cork(line, corked = 0);
}

static void say_file(Line *line, int fd, off_t position, size_t length) {
    static char chunk[CHUNK];
    if (!line->secure) {
        send_file(line, fd, position, length);
        return;
    }
    while (length) {
        ssize_t count = pread(fd, chunk, length < CHUNK ? length : CHUNK, position);
        if (count <= 0) fail("pread");
        say_secured(line, chunk, (size_t)count);
        position += count;
        length -= (size_t)count;
    }
}

static ssize_t hear(Line *line, char *into, size_t room) {
    if (!line->secure) {
        ssize_t count = recv(line->fd, into, room, MSG_DONTWAIT);
        return count >= 0 ? count : errno == EAGAIN ? -1 : 0;
    }
    size_t count = 0;
    ERR_clear_error();
    if (SSL_read_ex(line->secure, into, room, &count)) return (ssize_t)count; /* the handshake, too */
    int why = SSL_get_error(line->secure, 0);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
}

static void closing(Line *line) {
    free(line->login);
    if (!line->secure) return;
    SSL_shutdown(line->secure);
    SSL_free(line->secure);
}

/* -- logins ----------------------------------------------------------------------------------------------------------------- */

static void prepare_login(void) {
    Digest password, client_key;
    salted(salt, sizeof salt, ITERATIONS, password);
    hmac(password, "Client Key", client_key);
    hmac(password, "Server Key", server_key);
    SHA512(client_key, DIGEST, stored_key);
}

static void take_first(Login *login, const char *message, char *answer) {
    char fresh[25], encoded[ENCODED];
    size_t length = 0;
    snprintf(login->bare, sizeof login->bare, "%s", message + 3); /* after "n,," */
    const char *theirs = attribute(login->bare, 'r', &length);
    if (!theirs || length > 32) broken("no nonce of a client");
    nonce(fresh);
    snprintf(login->nonce, sizeof login->nonce, "%.*s%s", (int)length, theirs, fresh);
    encode(salt, sizeof salt, encoded);
    snprintf(login->first, sizeof login->first, "r=%s,s=%s,i=%d", login->nonce, encoded, ITERATIONS);
    strcpy(answer, login->first);
}

static void take_last(Login *login, const char *message, char *answer) {
    Digest signature, key, hashed;
    unsigned char proof[DIGEST + 3];
    char whole[3 * SCRAM_TEXT], encoded[ENCODED];
    size_t length = 0;
    const char *shown = attribute(message, 'p', &length);
    if (!shown || length > 88 || decode(shown, length, proof) != DIGEST) broken("no proof of a client");
    snprintf(whole, sizeof whole, "%s,%s,%.*s", login->bare, login->first, (int)(shown - 3 - message), message);
    hmac(stored_key, whole, signature);
    mix(proof, signature, key);
    SHA512(key, DIGEST, hashed);
    const char *returned = attribute(message, 'r', &length);
    int same_nonce = returned && length == strlen(login->nonce) && !memcmp(returned, login->nonce, length);
    if (CRYPTO_memcmp(hashed, stored_key, DIGEST) || !same_nonce) broken("a wrong password");
    hmac(server_key, whole, signature);
    encode(signature, DIGEST, encoded);
    sprintf(answer, "v=%s", encoded);
}

static void authenticate(Line *line, char *frame) {
    char message[SCRAM_TEXT], text[SCRAM_TEXT], answer[SCRAM_TEXT + 64], *at = body_of(frame), *out = answer + 4;
    size_t length = varint(&at) - 1;
    if (length >= sizeof message) broken("a long message of a login");
    memcpy(message, at, length);
    message[length] = 0;
    if (!line->login) {
        line->login = calloc(1, sizeof(Login));
        take_first(line->login, message, text);
    } else {
        take_last(line->login, message, text);
        free(line->login);
        line->login = NULL;
    }
    memcpy(out, frame + 8, 4);
    memcpy(out + 4, "\0\0\0\0", 4); /* tags, error, no message */
    out = put_varint(out + 8, strlen(text) + 1);
    memcpy(out, text, strlen(text));
    out = put64(out + strlen(text), 0);
    *out++ = 0;
    put32(answer, (uint32_t)(out - answer - 4));
    say(line, answer, out, 0);
}

static void say_other(Line *line, char *frame) {
    if (frame[5] == SASL_AUTHENTICATE) authenticate(line, frame);
    else if (frame[5] == SASL_HANDSHAKE) {
        char answer[64], *out = answer + 4;
        memcpy(out, frame + 8, 4);
        memcpy(out + 4, "\0\0\0\0\0\1\0\15" MECHANISM, 8 + strlen(MECHANISM)); /* no error, one mechanism */
        out += 12 + strlen(MECHANISM);
        put32(answer, (uint32_t)(out - answer - 4));
        say(line, answer, out, 0);
    } else say_zeros(line, frame);
}

/* -- connections ------------------------------------------------------------------------------------------------------------ */

static SSL_CTX *context(const char *pem) {
    SSL_CTX *found = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_min_proto_version(found, TLS1_3_VERSION);
    SSL_CTX_set_read_ahead(found, 1);
    SSL_CTX_set_default_read_buffer_len(found, CHUNK + 4096);
    if (SSL_CTX_use_certificate_chain_file(found, pem) != 1 || SSL_CTX_use_PrivateKey_file(found, pem, SSL_FILETYPE_PEM) != 1)
        broken(pem);
    return found;
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: tls_limit PORT TLS_PORT PEM FOLDER");
    folder = argv[4];
    signal(SIGPIPE, SIG_IGN);
    SSL_CTX *tls = context(argv[3]);
    prepare_login();
    int servers[2] = {listening(atoi(argv[1])), listening(atoi(argv[2]))}, waiting = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN}, found[64];
    for (int i = 0; i < 2; i++) {
        wanted.data.ptr = &servers[i];
        epoll_ctl(waiting, EPOLL_CTL_ADD, servers[i], &wanted);
    }
    for (;;) {
        int count = epoll_wait(waiting, found, 64, -1);
        for (int i = 0; i < count; i++) {
            void *from = found[i].data.ptr;
            if (from != &servers[0] && from != &servers[1]) {
                Line *line = from;
                serve(line, line->secure != NULL);
                continue;
            }
            Line *line = accepted(*(int *)from);
            if (from == &servers[1]) {
                fcntl(line->fd, F_SETFL, O_NONBLOCK);
                line->secure = SSL_new(tls);
                SSL_set_fd(line->secure, line->fd);
                SSL_set_accept_state(line->secure);
            }
            wanted = (struct epoll_event){.events = EPOLLIN, .data.ptr = line};
            epoll_ctl(waiting, EPOLL_CTL_ADD, line->fd, &wanted);
        }
    }
}
