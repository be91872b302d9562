/* The C limit: what a broker on one core costs at least, here and now, for requests of load.c.

   limit PORT FOLDER

   Produce v12: epoll, recv, CRC-32C of each batch, base offset and leader epoch patched, pwrite, answer.
   Fetch v17 without a session: sendfile from the page cache; at the end of a partition the fetch waits for the next batch.
   Any other request: an answer of 600 zeros. One topic, whose partitions are files in FOLDER; all batches of a partition are
   alike, so that an offset is found by a division.
   Left out is all that makes a broker: metadata, checks, indexes, producers, replication, timers, quotas, recovery, errors.
   What does not fit the above ends the program. Linux only. */
#include "limit_broker.h"

/* Sockets block: a client that does not read stops this broker. */
static void say(Line *line, const char *answer, const char *end, int more) { send_all(line, answer, end, more); }

static void say_file(Line *line, int fd, off_t position, size_t length) { send_file(line, fd, position, length); }

static ssize_t hear(Line *line, char *into, size_t room) {
    ssize_t count = recv(line->fd, into, room, MSG_DONTWAIT);
    if (count >= 0) return count;
    return errno == EAGAIN ? -1 : 0;
}

static void say_other(Line *line, char *frame) { say_zeros(line, frame); }

static void closing(Line *line) { (void)line; }

int main(int argc, char **argv) {
    if (argc != 3) fail("usage: limit PORT FOLDER");
    folder = argv[2];
    signal(SIGPIPE, SIG_IGN);  // sendfile has no flag for it
    int server = listening(atoi(argv[1])), poll = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN}, found[64];
    epoll_ctl(poll, EPOLL_CTL_ADD, server, &wanted);
    for (;;) {
        int count = epoll_wait(poll, found, 64, -1);
        for (int i = 0; i < count; i++) {
            if (found[i].data.ptr) {
                serve(found[i].data.ptr, 0);
                continue;
            }
            Line *line = accepted(server);
            wanted = (struct epoll_event){.events = EPOLLIN, .data.ptr = line};
            epoll_ctl(poll, EPOLL_CTL_ADD, line->fd, &wanted);
        }
    }
}
