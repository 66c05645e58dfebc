/* SPDX-License-Identifier: Apache-2.0
 * The sessions of a cluster's tasks in one process: what they receive of each other, and what
 * strangers and tasks that break the rules can do to them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/wire/frame.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/runtime/cluster/cluster_member.h"
#include "worker/library/runtime/cluster/session_cluster.h"

#define TASKS_MAX 3
#define WAIT_S    20

/* What one task has received. */
struct ear {
    pthread_mutex_t lock;
    struct session *session;
    cadre_status opened;
    struct cadre_error error;
    unsigned plans;
    unsigned ticks;
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    size_t roster;
    bool lost;
    struct cadre_error why;
};

struct cluster {
    uint32_t tasks;
    struct environment environment;
    struct cluster_member *members[TASKS_MAX];
    uint16_t first_port;
    struct ear ears[TASKS_MAX];
    pthread_t threads[TASKS_MAX];
};

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Only the first task listens: the addresses of the others are names. */
static void make(struct cluster *cluster, uint32_t tasks, uint64_t wait_us, const char *key_path)
{
    char json[160];
    memset(cluster, 0, sizeof *cluster);
    cluster->tasks = tasks;
    cluster->environment.cluster_wait_us = wait_us;
    if (key_path != NULL) {
        snprintf(cluster->environment.cluster_key_path,
            sizeof cluster->environment.cluster_key_path, "%s", key_path);
    }
    cluster->first_port = free_port();
    snprintf(json, sizeof json, "{\"worker\": [\"127.0.0.1:%u\", \"127.0.0.2:1\"%s]}",
        (unsigned)cluster->first_port, tasks == 3 ? ", \"127.0.0.3:1\"" : "");
    for (uint32_t i = 0; i < tasks; i++) {
        struct cadre_error error = {0};
        cadre_cluster_spec *spec;
        cadre_cluster_resolver *resolver;
        assert_int_equal(cadre_cluster_spec_from_json(json, &spec), CADRE_OK);
        assert_int_equal(cadre_cluster_resolver_simple(spec, "worker", i, &resolver), CADRE_OK);
        assert_ok(cluster_member_open(resolver, CLUSTER_PS_JOB, &cluster->environment,
                      &cluster->members[i], &error),
            &error);
        cadre_cluster_resolver_release(resolver);
        cadre_cluster_spec_release(spec);
        pthread_mutex_init(&cluster->ears[i].lock, NULL);
    }
}

/* --- a task --- */

static void on_nothing(void *user)
{
    (void)user;
}

static void on_down(const struct task_down *down, void *user)
{
    struct ear *ear = user;
    pthread_mutex_lock(&ear->lock);
    if (down->type == TASK_DOWN_PLAN) {
        ear->plans++;
        ear->roster = down->plan.roster_count;
        memcpy(ear->key, down->plan.key, sizeof ear->key);
    }
    pthread_mutex_unlock(&ear->lock);
}

static bool on_tick(void *user)
{
    struct ear *ear = user;
    pthread_mutex_lock(&ear->lock);
    ear->ticks++;
    pthread_mutex_unlock(&ear->lock);
    return false;
}

static void on_lost(const struct cadre_error *error, void *user)
{
    struct ear *ear = user;
    pthread_mutex_lock(&ear->lock);
    ear->lost = true;
    ear->why = *error;
    pthread_mutex_unlock(&ear->lock);
}

static void send_hello_message(struct session *session)
{
    struct task_up hello = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = "test",
            .pid = 1,
            .replicas = 1,
            .mesh_address = "127.0.0.1:1"}};
    session->ops->send(session, &hello);
}

struct opening {
    struct cluster *cluster;
    uint32_t task;
};

static void *open_session(void *user)
{
    struct opening *opening = user;
    struct ear *ear = &opening->cluster->ears[opening->task];
    struct session_events events = {.connected = on_nothing,
        .disconnected = on_nothing,
        .down = on_down,
        .lost = on_lost,
        .tick = on_tick,
        .user = ear};
    ear->opened = session_cluster_open(
        opening->cluster->members[opening->task], 0, &ear->session, &ear->error);
    if (ear->opened == CADRE_OK) {
        ear->opened = ear->session->ops->start(ear->session, &events, &ear->error);
        send_hello_message(ear->session);
    }
    free(opening);
    return NULL;
}

static void begin(struct cluster *cluster, uint32_t task)
{
    struct opening *opening = malloc(sizeof *opening);
    *opening = (struct opening){.cluster = cluster, .task = task};
    assert_int_equal(pthread_create(&cluster->threads[task], NULL, open_session, opening), 0);
}

static void end(struct cluster *cluster, uint32_t task)
{
    struct ear *ear = &cluster->ears[task];
    if (ear->session != NULL) {
        ear->session->ops->close(ear->session);
        ear->session = NULL;
    }
}

static void clear(struct cluster *cluster)
{
    for (uint32_t i = cluster->tasks; i-- > 0;) {
        end(cluster, i);
        cluster_member_close(cluster->members[i]);
        pthread_mutex_destroy(&cluster->ears[i].lock);
    }
}

static bool has_plan(void *user)
{
    struct ear *ear = user;
    pthread_mutex_lock(&ear->lock);
    bool received = ear->plans > 0;
    pthread_mutex_unlock(&ear->lock);
    return received;
}

static bool has_ticked_twice(void *user)
{
    struct ear *ear = user;
    pthread_mutex_lock(&ear->lock);
    bool ticked = ear->ticks >= 2;
    pthread_mutex_unlock(&ear->lock);
    return ticked;
}

static bool is_lost(void *user)
{
    struct ear *ear = user;
    pthread_mutex_lock(&ear->lock);
    bool lost = ear->lost;
    pthread_mutex_unlock(&ear->lock);
    return lost;
}

static void await_loss(struct ear *ear, cadre_status code, const char *part)
{
    assert_true(test_wait(is_lost, ear, WAIT_S * CADRE_US_PER_S));
    assert_error(ear->why.code, code, &ear->why, part);
}

static void check_meeting(const char *key_path)
{
    struct cluster cluster;
    make(&cluster, 2, speed_scaled_us(WAIT_S * CADRE_US_PER_S), key_path);
    begin(&cluster, 1);
    begin(&cluster, 0);
    for (uint32_t i = 0; i < cluster.tasks; i++) {
        struct ear *ear = &cluster.ears[i];
        pthread_join(cluster.threads[i], NULL);
        assert_ok(ear->opened, &ear->error);
        assert_int_equal(ear->session->slot, i);
        assert_int_not_equal(ear->session->incarnation, 0);
        assert_true(test_wait(has_plan, ear, WAIT_S * CADRE_US_PER_S));
        assert_int_equal(ear->roster, cluster.tasks);
        /* No task sends anything now. */
        assert_true(test_wait(has_ticked_twice, ear, WAIT_S * CADRE_US_PER_S));
    }
    assert_memory_equal(cluster.ears[0].key, cluster.ears[1].key, sizeof cluster.ears[0].key);
    static const uint8_t none[LIMIT_JOB_KEY_BYTES];
    assert_memory_not_equal(cluster.ears[0].key, none, sizeof none);
    end(&cluster, 0);
    await_loss(&cluster.ears[1], CADRE_UNAVAILABLE, "task 0 (worker 0 at 127.0.0.1:");
    clear(&cluster);
}

static void tasks_meet_and_receive_the_same_plan(void **state)
{
    (void)state;
    check_meeting(NULL);
}

static void tasks_meet_by_a_key(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "key"), "a key of thirty-two bytes or more");
    check_meeting(path);
}

static void who_leaves_is_lost_to_the_others(void **state)
{
    (void)state;
    struct cluster cluster;
    make(&cluster, 2, speed_scaled_us(WAIT_S * CADRE_US_PER_S), NULL);
    begin(&cluster, 0);
    begin(&cluster, 1);
    for (uint32_t i = 0; i < cluster.tasks; i++) {
        pthread_join(cluster.threads[i], NULL);
        assert_true(test_wait(has_plan, &cluster.ears[i], WAIT_S * CADRE_US_PER_S));
    }
    end(&cluster, 1);
    /* The rest does not report its position, as a task that hangs would not. */
    await_loss(&cluster.ears[0], CADRE_ABORTED, "did not answer");
    clear(&cluster);
}

static void who_is_alone_receives_who_is_missing(void **state)
{
    (void)state;
    struct cluster cluster;
    make(&cluster, 2, CADRE_US_PER_S / 5, NULL);
    begin(&cluster, 0);
    pthread_join(cluster.threads[0], NULL);
    assert_error(cluster.ears[0].opened, CADRE_DEADLINE_EXCEEDED, &cluster.ears[0].error,
        "missing: task 1 (worker 1 at 127.0.0.2:");
    begin(&cluster, 1);
    pthread_join(cluster.threads[1], NULL);
    assert_error(cluster.ears[1].opened, CADRE_DEADLINE_EXCEEDED, &cluster.ears[1].error,
        "task 0 (worker 0 at 127.0.0.1:");
    clear(&cluster);
}

/* --- a task that is made by hand, byte by byte --- */

struct raw {
    int fd;
    uint8_t hello[GREETING_HELLO_BYTES];
    uint8_t mac[GREETING_MAC_BYTES];
    uint8_t answer[GREETING_ANSWER_BYTES];
};

static bool read_whole(int fd, void *bytes, size_t size)
{
    size_t got = 0;
    while (got < size) {
        ssize_t count = recv(fd, (uint8_t *)bytes + got, size - got, 0);
        if (count <= 0) {
            return false;
        }
        got += (size_t)count;
    }
    return true;
}

static bool try_connect(void *user)
{
    const struct cluster *cluster = ((void **)user)[0];
    int *fd = ((void **)user)[1];
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons(cluster->first_port)};
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(*fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(*fd);
        return false;
    }
    return true;
}

static int reach(struct cluster *cluster)
{
    int fd = -1;
    struct timeval patience = {
        .tv_sec = (time_t)(speed_scaled_us(WAIT_S * CADRE_US_PER_S) / CADRE_US_PER_S)};
    void *arguments[] = {cluster, &fd};
    assert_true(test_wait(try_connect, arguments, WAIT_S * CADRE_US_PER_S));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

/* Sends hello as task 1, changed by `change` at byte `at`, and reads the first answer. */
static bool greet(struct cluster *cluster, struct raw *raw, size_t at, uint8_t change)
{
    struct greeting_hello hello = {.frame_version = TASK_FRAME_VERSION,
        .member_id = 1,
        .tasks = cluster->tasks,
        .challenge = "mine"};
    memcpy(hello.cluster, cluster->members[1]->cluster, sizeof hello.cluster);
    greeting_hello_write(&hello, raw->hello);
    raw->hello[at] ^= change;
    raw->fd = reach(cluster);
    assert_int_equal(send(raw->fd, raw->hello, sizeof raw->hello, 0), sizeof raw->hello);
    return read_whole(raw->fd, raw->answer, sizeof raw->answer);
}

static void authenticate(const struct cluster *cluster, struct raw *raw)
{
    struct greeting_answer answer;
    assert_true(greeting_answer_read(raw->answer, &answer));
    assert_int_equal(answer.code, CADRE_OK);
    greeting_mac(cluster->members[1]->key, raw->hello, answer.challenge, raw->mac);
    assert_int_equal(send(raw->fd, raw->mac, sizeof raw->mac, 0), sizeof raw->mac);
}

static void read_refusal(struct raw *raw, cadre_status code, const char *part)
{
    struct greeting_answer answer;
    assert_true(greeting_answer_read(raw->answer, &answer));
    struct cadre_error error;
    cadre_error_set(&error, answer.code, "%s", answer.text);
    assert_error(answer.code, code, &error, part);
    close(raw->fd);
}

static void hellos_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct cluster cluster;
    struct raw raw;
    uint8_t byte;
    make(&cluster, 3, speed_scaled_us(WAIT_S * CADRE_US_PER_S), NULL);
    begin(&cluster, 0);
    assert_false(greet(&cluster, &raw, 0, 1)); /* no greeting at all: no word for it */
    close(raw.fd);
    assert_false(greet(&cluster, &raw, 4, 2)); /* of another version */
    close(raw.fd);
    assert_true(greet(&cluster, &raw, 8, 1));
    read_refusal(&raw, CADRE_FAILED_PRECONDITION, "version of Cadre");
    assert_true(greet(&cluster, &raw, 12, 8)); /* place */
    read_refusal(&raw, CADRE_FAILED_PRECONDITION, "another cluster");
    assert_true(greet(&cluster, &raw, 16, 8)); /* tasks */
    read_refusal(&raw, CADRE_FAILED_PRECONDITION, "another cluster");
    assert_true(greet(&cluster, &raw, 20, 1));
    read_refusal(&raw, CADRE_UNAUTHENTICATED, "CADRE_CLUSTER_KEY_FILE");
    assert_true(greet(&cluster, &raw, 24, 1));
    read_refusal(&raw, CADRE_FAILED_PRECONDITION, "CADRE_RESTORE");
    assert_true(greet(&cluster, &raw, 40, 1)); /* the hash of the addresses */
    read_refusal(&raw, CADRE_FAILED_PRECONDITION, "another cluster");
    /* A wrong proof, and one that sends more than it may before the verdict. */
    assert_true(greet(&cluster, &raw, 0, 0));
    memset(raw.mac, 7, sizeof raw.mac);
    assert_int_equal(send(raw.fd, raw.mac, sizeof raw.mac, 0), sizeof raw.mac);
    assert_false(read_whole(raw.fd, &byte, 1));
    close(raw.fd);
    assert_true(greet(&cluster, &raw, 0, 0));
    authenticate(&cluster, &raw);
    assert_int_equal(send(raw.fd, "x", 1, 0), 1);
    assert_false(read_whole(raw.fd, &byte, 1));
    close(raw.fd);
    begin(&cluster, 1);
    begin(&cluster, 2);
    for (uint32_t i = 0; i < cluster.tasks; i++) {
        pthread_join(cluster.threads[i], NULL);
        assert_true(test_wait(has_plan, &cluster.ears[i], WAIT_S * CADRE_US_PER_S));
    }
    clear(&cluster);
}

static void what_was_overheard_cannot_be_reported_again(void **state)
{
    (void)state;
    struct cluster cluster;
    struct raw raw;
    uint8_t received[GREETING_MAC_BYTES];
    uint8_t byte;
    make(&cluster, 3, speed_scaled_us(WAIT_S * CADRE_US_PER_S), NULL);
    begin(&cluster, 0);
    assert_true(greet(&cluster, &raw, 0, 0));
    authenticate(&cluster, &raw);
    memcpy(received, raw.mac, sizeof received);
    close(raw.fd);
    assert_true(greet(&cluster, &raw, 0, 0)); /* the same hello, another challenge */
    assert_int_equal(send(raw.fd, received, sizeof received, 0), sizeof received);
    assert_false(read_whole(raw.fd, &byte, 1));
    close(raw.fd);
    begin(&cluster, 1);
    begin(&cluster, 2);
    for (uint32_t i = 0; i < cluster.tasks; i++) {
        pthread_join(cluster.threads[i], NULL);
        assert_ok(cluster.ears[i].opened, &cluster.ears[i].error);
    }
    clear(&cluster);
}

/* The first frame that ends a connection. */
static void read_goodbye(int fd, cadre_status code, const char *part)
{
    uint8_t bytes[512];
    struct frame_reader reader = {.taken = 0};
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct task_down down = {.type = TASK_DOWN_PLAN};
    while (down.type != TASK_DOWN_REFUSED) {
        const uint8_t *payload;
        size_t size;
        struct cadre_error error = {0};
        cadre_status status = frame_reader_next(&reader, &payload, &size, &error);
        if (status == CADRE_PENDING) {
            ssize_t count = recv(fd, bytes, sizeof bytes, 0);
            assert_true(count > 0);
            memcpy(frame_reader_room(&reader, (size_t)count), bytes, (size_t)count);
            frame_reader_commit(&reader, (size_t)count);
            continue;
        }
        assert_ok(status, &error);
        assert_ok(wire_unpack_task_down(payload, size, arena, &down, &error), &error);
    }
    struct cadre_error why;
    cadre_error_set(&why, down.refused.code, "%s", down.refused.text);
    assert_error(down.refused.code, code, &why, part);
    frame_reader_free(&reader);
    wire_arena_free(arena);
}

/* A task that is let in, and then sends `bytes`: it receives why it is refused. */
static void check_frames(
    struct cluster *cluster, const void *bytes, size_t size, cadre_status code, const char *part)
{
    struct raw raw;
    struct greeting_answer verdict;
    make(cluster, 2, speed_scaled_us(WAIT_S * CADRE_US_PER_S), NULL);
    begin(cluster, 0);
    assert_true(greet(cluster, &raw, 0, 0));
    authenticate(cluster, &raw);
    assert_true(read_whole(raw.fd, raw.answer, sizeof raw.answer));
    assert_true(greeting_answer_read(raw.answer, &verdict));
    assert_int_equal(verdict.code, CADRE_OK);
    assert_int_equal(verdict.slot, 1);
    assert_int_equal(send(raw.fd, bytes, size, MSG_NOSIGNAL), size);
    read_goodbye(raw.fd, code, part);
    close(raw.fd);
}

static void frames_that_are_none_end_their_connection(void **state)
{
    (void)state;
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff};
    static const uint8_t garbage[] = {4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    struct cluster clusters[4];
    struct wire_buffer report = {0};
    struct wire_buffer hellos = {0};
    struct cadre_error error;
    struct task_up up = {.type = TASK_UP_JOIN, .join = {.stream = 1}};
    check_frames(&clusters[0], huge, sizeof huge, CADRE_RESOURCE_EXHAUSTED, "bytes");
    check_frames(&clusters[1], garbage, sizeof garbage, CADRE_INVALID_ARGUMENT, "");
    assert_int_equal(frame_pack_task_up(&up, &report, &error), CADRE_OK);
    check_frames(
        &clusters[2], report.bytes, report.size, CADRE_FAILED_PRECONDITION, "sends hello first");
    up = (struct task_up){.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = "test",
            .pid = 1,
            .replicas = 1,
            .mesh_address = "127.0.0.1:1"}};
    assert_int_equal(frame_pack_task_up(&up, &hellos, &error), CADRE_OK);
    assert_int_equal(frame_pack_task_up(&up, &hellos, &error), CADRE_OK);
    check_frames(&clusters[3], hellos.bytes, hellos.size, CADRE_FAILED_PRECONDITION, "and once");
    wire_buffer_free(&report);
    wire_buffer_free(&hellos);
    /* And then it is lost: all of them wait for it to come back at the same time. */
    for (size_t i = 0; i < CADRE_COUNT_OF(clusters); i++) {
        pthread_join(clusters[i].threads[0], NULL);
        assert_true(test_wait(is_lost, &clusters[i].ears[0], WAIT_S * CADRE_US_PER_S));
        clear(&clusters[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_meet_and_receive_the_same_plan),
        cmocka_unit_test(tasks_meet_by_a_key),
        cmocka_unit_test(who_leaves_is_lost_to_the_others),
        cmocka_unit_test(who_is_alone_receives_who_is_missing),
        cmocka_unit_test(hellos_that_do_not_fit_are_refused),
        cmocka_unit_test(what_was_overheard_cannot_be_reported_again),
        cmocka_unit_test(frames_that_are_none_end_their_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
