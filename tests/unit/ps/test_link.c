/* SPDX-License-Identifier: Apache-2.0
 * Who is admitted, who is not, and frames between those that are. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "worker/library/ps/link/link.h"

#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)
#define SHORT_US        (50 * CADRE_US_PER_MS)

/* An acceptor in slot 2 that keeps what it admits. */
struct acceptor {
    struct link_listener *listener;
    char address[LIMIT_ADDRESS_BYTES];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct link *admitted[64];
    size_t count;
    struct cadre_error refusal;
    bool refused;
};

static struct link_terms terms_of(uint32_t slot)
{
    struct link_terms terms = {
        .generation = {.number = 7, .nonce = 99},
        .slot = slot,
        .incarnation = 100 + slot,
        .ps_job = {.workers = 1, .servers = 1},
    };
    memset(terms.key, 5, sizeof terms.key);
    memset(terms.program, 6, sizeof terms.program);
    return terms;
}

static void admit(void *user, struct link *link)
{
    struct acceptor *acceptor = user;
    pthread_mutex_lock(&acceptor->lock);
    acceptor->admitted[acceptor->count++] = link;
    pthread_cond_broadcast(&acceptor->changed);
    pthread_mutex_unlock(&acceptor->lock);
}

static void refused(void *user, const struct link_peer *peer, const struct cadre_error *error)
{
    struct acceptor *acceptor = user;
    pthread_mutex_lock(&acceptor->lock);
    assert_int_equal(peer->slot, 1);
    acceptor->refusal = *error;
    acceptor->refused = true;
    pthread_cond_broadcast(&acceptor->changed);
    pthread_mutex_unlock(&acceptor->lock);
}

static void start(struct acceptor *acceptor)
{
    struct cadre_error error = {0};
    struct link_terms terms = terms_of(2);
    const struct link_admission admission = {.admit = admit, .user = acceptor, .refused = refused};
    assert_ok(link_listener_start(acceptor->listener, &terms, &admission, &error), &error);
}

static void listen_only(struct acceptor *acceptor)
{
    struct cadre_error error = {0};
    *acceptor = (struct acceptor){.count = 0};
    pthread_mutex_init(&acceptor->lock, NULL);
    pthread_cond_init(&acceptor->changed, NULL);
    assert_ok(link_listener_open("127.0.0.1", NULL, &acceptor->listener, acceptor->address, &error),
        &error);
}

static struct link *admitted(struct acceptor *acceptor, size_t i)
{
    pthread_mutex_lock(&acceptor->lock);
    while (acceptor->count <= i) {
        pthread_cond_wait(&acceptor->changed, &acceptor->lock);
    }
    struct link *link = acceptor->admitted[i];
    pthread_mutex_unlock(&acceptor->lock);
    return link;
}

static void end(struct acceptor *acceptor)
{
    link_listener_close(acceptor->listener);
    for (size_t i = 0; i < acceptor->count; i++) {
        link_free(acceptor->admitted[i]);
    }
    pthread_cond_destroy(&acceptor->changed);
    pthread_mutex_destroy(&acceptor->lock);
}

static cadre_status connect_as(const struct link_terms *terms, const struct acceptor *acceptor,
    uint64_t wait_timeout_us, struct link **ret_link, struct cadre_error *error)
{
    return link_connect(terms, "ps 0", acceptor->address, 2, wait_timeout_us, ret_link, error);
}

static struct link *connect_good(const struct acceptor *acceptor)
{
    struct cadre_error error = {0};
    struct link_terms terms = terms_of(1);
    struct link *link = NULL;
    assert_ok(connect_as(&terms, acceptor, WAIT_TIMEOUT_US, &link, &error), &error);
    return link;
}

static void both_know_each_other(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    start(&acceptor);
    struct link *here = connect_good(&acceptor);
    struct link *there = admitted(&acceptor, 0);
    char who[128];
    snprintf(who, sizeof who, "ps 0 on %s", acceptor.address);
    assert_string_equal(link_peer_name(here), who);
    assert_string_equal(link_peer_name(there), "worker 0");
    assert_int_equal(link_peer(here)->slot, 2);
    assert_int_equal(link_peer(here)->incarnation, 102);
    assert_int_equal(link_peer(there)->slot, 1);
    assert_int_equal(link_peer(there)->incarnation, 101);
    assert_int_equal(link_peer(there)->program[31], 6);
    link_free(here);
    end(&acceptor);
}

struct sender {
    struct link *link;
    uint64_t words;
};

/* Frames of a pattern: as many bytes as their first word says, all equal to their id. */
static void *send_frames(void *argument)
{
    struct sender *sender = argument;
    static const size_t sizes[] = {0, 1, 4000, 5000, 300000};
    unsigned char *bytes = malloc(300000);
    for (uint64_t i = 0; i < 50; i++) {
        size_t size = sizes[i % 5];
        memset(bytes, (int)(i & 127), size);
        struct frame frame = {.kind = 3, .code = 4, .id = i, .bytes = size};
        frame.args[0] = size;
        frame.args[4] = sender->words;
        struct iovec pieces[] = {{bytes, size / 3}, {bytes, size - size / 3}};
        struct cadre_error error = {0};
        if (link_send(sender->link, &frame, pieces, 2, &error) != CADRE_OK) {
            break;
        }
    }
    free(bytes);
    return NULL;
}

static void frames_of_threads_do_not_mix(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    start(&acceptor);
    struct link *here = connect_good(&acceptor);
    struct link *there = admitted(&acceptor, 0);
    struct sender senders[3];
    pthread_t threads[3];
    uint64_t next[3] = {0};
    struct cadre_error error = {0};
    unsigned char *bytes = malloc(300000);
    for (size_t i = 0; i < 3; i++) {
        senders[i] = (struct sender){.link = here, .words = i};
        pthread_create(&threads[i], NULL, send_frames, &senders[i]);
    }
    for (size_t i = 0; i < 150; i++) {
        struct frame frame;
        assert_ok(link_receive(there, WAIT_TIMEOUT_US, &frame, &error), &error);
        assert_ok(link_receive_bytes(there, bytes, frame.bytes, &error), &error);
        assert_int_equal(frame.kind, 3);
        assert_int_equal(frame.code, 4);
        assert_int_equal(frame.bytes, frame.args[0]);
        assert_true(frame.args[4] < 3);
        assert_int_equal(frame.id, next[frame.args[4]]++);
        for (size_t k = 0; k < frame.bytes; k++) {
            if (bytes[k] != (frame.id & 127)) {
                fail_msg("byte %zu of frame %d", k, (int)frame.id);
            }
        }
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    free(bytes);
    link_free(here);
    end(&acceptor);
}

static void patience_loses_nothing(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    start(&acceptor);
    struct link *here = connect_good(&acceptor);
    struct link *there = admitted(&acceptor, 0);
    struct cadre_error error = {0};
    struct frame frame;
    assert_error(
        link_receive(there, SHORT_US, &frame, &error), CADRE_DEADLINE_EXCEEDED, &error, "worker 0");
    assert_error(link_receive(there, 0, &frame, &error), CADRE_DEADLINE_EXCEEDED, &error,
        "sent nothing in time");
    /* Half a header, then the rest. */
    unsigned char header[FRAME_BYTES] = {9};
    assert_int_equal(send(link_fd(here), header, 30, 0), 30);
    assert_error(
        link_receive(there, SHORT_US, &frame, &error), CADRE_DEADLINE_EXCEEDED, &error, "in time");
    assert_int_equal(send(link_fd(here), header + 30, 34, 0), 34);
    assert_ok(link_receive(there, UINT64_MAX, &frame, &error), &error);
    assert_int_equal(frame.kind, 9);
    link_shutdown(here);
    assert_error(link_receive(there, UINT64_MAX, &frame, &error), CADRE_UNAVAILABLE, &error,
        "worker 0 is lost");
    assert_error(link_receive(here, UINT64_MAX, &frame, &error), CADRE_UNAVAILABLE, &error, "lost");
    assert_error(link_receive_bytes(here, header, 1, &error), CADRE_UNAVAILABLE, &error, "lost");
    assert_error(link_send(here, &(struct frame){.kind = 1}, NULL, 0, &error), CADRE_UNAVAILABLE,
        &error, "lost");
    link_free(here);
    end(&acceptor);
}

static void who_may_not_in(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    start(&acceptor);
    struct cadre_error error = {0};
    struct link *link = NULL;
    struct link_terms terms = terms_of(1);
    terms.key[3]++;
    assert_error(connect_as(&terms, &acceptor, WAIT_TIMEOUT_US, &link, &error),
        CADRE_PERMISSION_DENIED, &error, "did not prove the key");
    assert_null(link);
    terms = terms_of(1);
    terms.generation.number--;
    assert_error(connect_as(&terms, &acceptor, WAIT_TIMEOUT_US, &link, &error),
        CADRE_PERMISSION_DENIED, &error, "of another generation than 6");
    terms = terms_of(1);
    terms.program[0]++;
    assert_error(connect_as(&terms, &acceptor, WAIT_TIMEOUT_US, &link, &error),
        CADRE_FAILED_PRECONDITION, &error, "runs another version of the program");
    pthread_mutex_lock(&acceptor.lock);
    while (!acceptor.refused) {
        pthread_cond_wait(&acceptor.changed, &acceptor.lock);
    }
    assert_error(acceptor.refusal.code, CADRE_FAILED_PRECONDITION, &acceptor.refusal,
        "worker 0 runs another version");
    pthread_mutex_unlock(&acceptor.lock);
    /* Another slot than it listens for. */
    terms = terms_of(1);
    assert_error(link_connect(&terms, "ps 1", acceptor.address, 3, WAIT_TIMEOUT_US, &link, &error),
        CADRE_PERMISSION_DENIED, &error, "ps 1 on 127.0.0.1");
    assert_int_equal(acceptor.count, 0);
    end(&acceptor);
    assert_error(connect_as(&terms, &acceptor, WAIT_TIMEOUT_US, &link, &error), CADRE_UNAVAILABLE,
        &error, "ps 0 on 127.0.0.1");
    assert_error(link_connect(&terms, "ps 1", "nowhere", 3, WAIT_TIMEOUT_US, &link, &error),
        CADRE_INVALID_ARGUMENT, &error, "ps 1");
}

static int dial_raw(const struct acceptor *acceptor)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtoul(strrchr(acceptor->address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void unauthenticated_connections_delay_none(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    start(&acceptor);
    int fds[300];
    unsigned char garbage[200];
    memset(garbage, 0xa5, sizeof garbage);
    for (size_t i = 0; i < 300; i++) {
        fds[i] = dial_raw(&acceptor);
        if (i % 3 == 1) {
            assert_int_equal(send(fds[i], "CDRM", 4, MSG_NOSIGNAL), 4);
        }
    }
    int loud = dial_raw(&acceptor);
    assert_int_equal(send(loud, garbage, sizeof garbage, MSG_NOSIGNAL), sizeof garbage);
    struct link *here = connect_good(&acceptor);
    struct link *there = admitted(&acceptor, 0);
    assert_non_null(there);
    /* It is dropped at once, by an end or a reset. */
    assert_true(recv(loud, garbage, sizeof garbage, 0) <= 0);
    close(loud);
    for (size_t i = 0; i < 300; i++) {
        close(fds[i]);
    }
    link_free(here);
    end(&acceptor);
}

struct connecting {
    struct acceptor *acceptor;
    struct cadre_error error;
    struct link *link;
    cadre_status status;
};

static void *connect_in_thread(void *argument)
{
    struct connecting *self = argument;
    struct link_terms terms = terms_of(1);
    self->status = connect_as(&terms, self->acceptor, WAIT_TIMEOUT_US, &self->link, &self->error);
    return NULL;
}

static void they_wait_until_it_is_started(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    struct connecting self = {.acceptor = &acceptor};
    struct cadre_error error = {0};
    struct link *link = NULL;
    struct link_terms terms = terms_of(1);
    assert_error(connect_as(&terms, &acceptor, SHORT_US, &link, &error), CADRE_DEADLINE_EXCEEDED,
        &error, "did not admit this task within 50 ms");
    pthread_t thread;
    pthread_create(&thread, NULL, connect_in_thread, &self);
    start(&acceptor);
    pthread_join(thread, NULL);
    assert_ok(self.status, &self.error);
    link_free(self.link);
    end(&acceptor);
}

static void closing_lets_go_of_those_that_connect(void **state)
{
    (void)state;
    struct acceptor acceptor;
    listen_only(&acceptor);
    struct connecting self = {.acceptor = &acceptor};
    int silent = dial_raw(&acceptor);
    pthread_t thread;
    pthread_create(&thread, NULL, connect_in_thread, &self);
    end(&acceptor);
    pthread_join(thread, NULL);
    assert_error(self.status, CADRE_UNAVAILABLE, &self.error, "ps 0 on 127.0.0.1");
    close(silent);
}

static void the_digest_is_the_executables(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint8_t once[LINK_PROGRAM_BYTES];
    uint8_t again[LINK_PROGRAM_BYTES];
    static const uint8_t zero[LINK_PROGRAM_BYTES];
    assert_ok(link_program_digest(once, &error), &error);
    assert_ok(link_program_digest(again, &error), &error);
    assert_memory_equal(once, again, sizeof once);
    assert_memory_not_equal(once, zero, sizeof once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_know_each_other),
        cmocka_unit_test(frames_of_threads_do_not_mix),
        cmocka_unit_test(patience_loses_nothing),
        cmocka_unit_test(who_may_not_in),
        cmocka_unit_test(unauthenticated_connections_delay_none),
        cmocka_unit_test(they_wait_until_it_is_started),
        cmocka_unit_test(closing_lets_go_of_those_that_connect),
        cmocka_unit_test(the_digest_is_the_executables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
