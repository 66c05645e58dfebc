/* SPDX-License-Identifier: Apache-2.0
 * The store that the measurements read and write: one thread, epoll and sendfile, so that as little
 * as possible of what is measured is the store's. It prints its port, and ends with the process
 * that started it. What it has of S3: floor_objects.h.
 *
 *     floor_store FOLDER [BYTES_S]      the link has so many bytes a second, in both directions
 *                                       together; 0: as many as it can */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "floor_http.h"
#include "floor_objects.h"

#define EVENTS_MAX  64
#define TURN_BYTES  ((size_t)1 << 20) /* of one connection, before the others have their turn */
#define LINK_STEP_S 0.0005            /* shorter waits are added up */

struct connection {
    int fd;
    uint32_t events; /* what it waits for */
    char in[HEAD_BYTES + 1];
    size_t in_bytes;
    bool has_request;
    struct request request;
    uint64_t body_left;
    char *body; /* NULL: it is not kept */
    size_t body_bytes;
    bool has_reply;
    struct reply reply;
};

static const char *folder;
static int epoll;
static double link_bytes_s; /* 0: no limit */
static double link_free_s;  /* when the bytes that were moved have passed */

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void end(struct connection *connection)
{
    close(connection->fd);
    if (connection->has_reply) {
        floor_reply_end(&connection->reply);
    }
    free(connection->body);
    free(connection);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* All connections share the link, so the thread waits. */
static void pass_link(size_t bytes)
{
    if (link_bytes_s <= 0) {
        return;
    }
    double began = now();
    link_free_s = (link_free_s > began ? link_free_s : began) + (double)bytes / link_bytes_s;
    const struct timespec wait = {.tv_nsec = (long)(1e9 * (link_free_s - began))};
    if (link_free_s - began > LINK_STEP_S) {
        (void)ppoll(NULL, 0, &wait, NULL);
    }
}

/* --- receiving: each returns false where the connection has ended --- */

static bool may_wait(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The rest of the body: kept, or thrown away without a copy. */
static bool receive_body(struct connection *connection)
{
    size_t done = 0;
    bool lives = true;
    while (connection->body_left > 0 && done < TURN_BYTES) {
        size_t wanted = connection->body_left < TURN_BYTES ? connection->body_left : TURN_BYTES;
        char *to = connection->body != NULL ? connection->body + connection->body_bytes : NULL;
        ssize_t got = recv(connection->fd, to, wanted, to == NULL ? MSG_TRUNC : 0);
        if (got <= 0) {
            lives = may_wait(got);
            break;
        }
        connection->body_left -= (uint64_t)got;
        connection->body_bytes += (size_t)got;
        done += (size_t)got;
    }
    pass_link(done);
    return lives;
}

/* What of the body came with the head. */
static void take_rest(struct connection *connection, size_t head_bytes)
{
    size_t rest = connection->in_bytes - head_bytes;
    size_t count = rest < connection->body_left ? rest : connection->body_left;
    if (connection->body != NULL) {
        memcpy(connection->body, connection->in + head_bytes, count);
    }
    connection->body_bytes = count;
    connection->body_left -= count;
    connection->in_bytes = rest - count;
    memmove(connection->in, connection->in + head_bytes + count, connection->in_bytes);
}

static bool begin_request(struct connection *connection, char *blank)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t head_bytes = (size_t)(blank - connection->in) + 4;
    *blank = '\0';
    struct request *request = &connection->request;
    if (!floor_request_parse(connection->in, request)) {
        return false;
    }
    connection->has_request = true;
    connection->body_left = request->body_bytes;
    connection->body_bytes = 0;
    connection->body = floor_keeps(request) ? malloc(request->body_bytes) : NULL;
    take_rest(connection, head_bytes);
    return !request->expects || connection->body_left == 0 ||
           send(connection->fd, go_on, sizeof go_on - 1, MSG_NOSIGNAL) == sizeof go_on - 1;
}

static bool receive_head(struct connection *connection)
{
    connection->in[connection->in_bytes] = '\0';
    char *blank = strstr(connection->in, "\r\n\r\n");
    if (blank == NULL) {
        ssize_t got = recv(connection->fd, connection->in + connection->in_bytes,
            HEAD_BYTES - connection->in_bytes, 0);
        if (got <= 0) {
            return may_wait(got);
        }
        connection->in_bytes += (size_t)got;
        connection->in[connection->in_bytes] = '\0';
        blank = strstr(connection->in, "\r\n\r\n");
    }
    return blank == NULL || begin_request(connection, blank);
}

/* --- sending --- */

static bool send_bytes(
    struct connection *connection, const char *bytes, size_t count, size_t *sent, bool more)
{
    while (*sent < count) {
        ssize_t moved = send(
            connection->fd, bytes + *sent, count - *sent, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (moved < 0) {
            return may_wait(moved);
        }
        *sent += (size_t)moved;
    }
    return true;
}

static bool send_file(struct connection *connection)
{
    struct reply *reply = &connection->reply;
    size_t done = 0;
    bool lives = true;
    while (reply->file_left > 0 && done < TURN_BYTES) {
        size_t wanted = reply->file_left < TURN_BYTES ? reply->file_left : TURN_BYTES;
        ssize_t moved = sendfile(connection->fd, reply->file, &reply->file_at, wanted);
        if (moved <= 0) {
            lives = may_wait(moved);
            break;
        }
        reply->file_left -= (uint64_t)moved;
        done += (size_t)moved;
    }
    pass_link(done);
    return lives;
}

static bool is_sent(const struct reply *reply)
{
    return reply->head_sent == reply->head_bytes && reply->body_sent == reply->body_bytes &&
           reply->file_left == 0;
}

static bool send_reply(struct connection *connection)
{
    struct reply *reply = &connection->reply;
    bool more = reply->body_bytes > 0 || reply->file_left > 0;
    if (!send_bytes(connection, reply->head, reply->head_bytes, &reply->head_sent, more)) {
        return false;
    }
    if (reply->head_sent == reply->head_bytes &&
        !send_bytes(connection, reply->body, reply->body_bytes, &reply->body_sent, false)) {
        return false;
    }
    return reply->head_sent < reply->head_bytes || send_file(connection);
}

static void answer(struct connection *connection)
{
    floor_answer(folder, &connection->request, connection->body, &connection->reply);
    free(connection->body);
    connection->body = NULL;
    connection->has_reply = true;
}

/* One turn: what can be done without waiting, up to TURN_BYTES. */
static bool turn(struct connection *connection)
{
    if (!connection->has_request && !receive_head(connection)) {
        return false;
    }
    if (connection->has_request && !connection->has_reply) {
        if (!receive_body(connection)) {
            return false;
        }
        if (connection->body_left == 0) {
            answer(connection);
        }
    }
    if (!connection->has_reply) {
        return true;
    }
    if (!send_reply(connection)) {
        return false;
    }
    if (is_sent(&connection->reply)) {
        floor_reply_end(&connection->reply);
        connection->has_reply = connection->has_request = false;
        return !connection->request.closes;
    }
    return true;
}

/* --- the loop --- */

static void wait_for(struct connection *connection, uint32_t events, int operation)
{
    if (connection->events != events) {
        connection->events = events;
        struct epoll_event event = {.events = events, .data.ptr = connection};
        if (epoll_ctl(epoll, operation, connection->fd, &event) != 0) {
            die("epoll_ctl");
        }
    }
}

static void take_connection(int listener)
{
    int one = 1;
    struct connection *connection = calloc(1, sizeof *connection);
    connection->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection->fd < 0) {
        free(connection);
        return;
    }
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* BBR, which some machines have set, sends what it has measured of a connection, and no more:
     * on one without a delay that is by chance. */
    setsockopt(connection->fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", sizeof "cubic" - 1);
    wait_for(connection, EPOLLIN, EPOLL_CTL_ADD);
}

static void serve(int listener)
{
    struct epoll_event ready[EVENTS_MAX];
    for (;;) {
        int count = epoll_wait(epoll, ready, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = ready[i].data.ptr;
            if (connection == NULL) {
                take_connection(listener);
            } else if (turn(connection)) {
                wait_for(connection, connection->has_reply ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
            } else {
                end(connection);
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: floor_store FOLDER [BYTES_S]\n");
        return 2;
    }
    folder = argv[1];
    link_bytes_s = argc == 3 ? strtod(argv[2], NULL) : 0;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    signal(SIGPIPE, SIG_IGN); /* sendfile() to a client that has left */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || listener < 0 ||
        bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        die("listen");
    }
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        die("epoll");
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    serve(listener);
    return 0;
}
