/* SPDX-License-Identifier: Apache-2.0
 * Connections that are cut anywhere, servers that are killed and started again: each push is
 * applied once, and a timeout names what was waited for. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "server_rig.h"
#include "tests/lib/speed.h"
#include "worker/library/mesh/connect/address.h"

#define ROWS     ((uint64_t)96)
#define ELEMENTS ((uint64_t)4096) /* of a row: 1.5 MiB in all, some blocks */

static struct request add_of(uint32_t server, uint32_t shard, uint64_t closure, const float *values)
{
    return (struct request){
        .kind = REQUEST_PUSH,
        .server = server,
        .shard = shard,
        .row_bytes = ELEMENTS * sizeof(float),
        .push = {.shard = shard,
            .kind = PUSH_ADD,
            .closure = closure,
            .rows = ROWS,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = values,
    };
}

static float *filled(float value)
{
    float *values = malloc(ROWS * ELEMENTS * sizeof *values);
    for (size_t i = 0; i < ROWS * ELEMENTS; i++) {
        values[i] = value;
    }
    return values;
}

static void check_all(struct rig *rig, uint32_t shard, float wanted)
{
    float *rows = filled(-1);
    struct request pull = {.kind = REQUEST_PULL,
        .shard = shard,
        .rows = ROWS,
        .row_bytes = ELEMENTS * sizeof(float),
        .into = rows};
    rig_call(rig, &pull);
    for (size_t i = 0; i < ROWS * ELEMENTS; i++) {
        if (rows[i] < wanted || rows[i] > wanted) {
            fail_msg("element %zu is %g, not %g", i, (double)rows[i], (double)wanted);
        }
    }
    free(rows);
}

/* ---- a proxy that cuts ---- */

struct proxy {
    int fd;
    char address[LIMIT_ADDRESS_BYTES];
    const char *to;
    struct prng prng;
    uint64_t most; /* bytes until a connection is cut, at most */
    atomic_bool over;
    atomic_uint cuts;
    pthread_t thread;
};

static int dial(const char *address)
{
    struct mesh_sockaddr to;
    struct cadre_error error = {0};
    if (mesh_address_parse(address, &to, &error) != CADRE_OK) {
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&to.storage, to.bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* One piece from one end to the other. False: that was the last. */
static bool pass(int from, int to, uint64_t *left)
{
    char bytes[16384];
    size_t most = *left < sizeof bytes ? (size_t)*left : sizeof bytes;
    ssize_t got = recv(from, bytes, most, 0);
    if (got <= 0) {
        return false;
    }
    for (ssize_t sent = 0; sent < got;) {
        struct pollfd poller = {.fd = to, .events = POLLOUT};
        if (poll(&poller, 1, (int)(speed_scaled_us(10 * CADRE_US_PER_S) / CADRE_US_PER_MS)) <= 0) {
            return false;
        }
        ssize_t step = send(to, bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);
        if (step <= 0) {
            return false;
        }
        sent += step;
    }
    *left -= (uint64_t)got;
    return *left > 0;
}

static void carry(struct proxy *proxy, int here)
{
    int there = dial(proxy->to);
    uint64_t left = 1 + prng_next(&proxy->prng) % proxy->most;
    bool on = there >= 0;
    while (on && !atomic_load(&proxy->over)) {
        struct pollfd pollers[2] = {
            {.fd = here, .events = POLLIN}, {.fd = there, .events = POLLIN}};
        if (poll(pollers, 2, 20) > 0) {
            on = (pollers[0].revents == 0 || pass(here, there, &left)) &&
                 (pollers[1].revents == 0 || pass(there, here, &left));
        }
    }
    atomic_fetch_add(&proxy->cuts, 1);
    close(here);
    if (there >= 0) {
        close(there);
    }
}

/* One connection at a time. */
static void *run_proxy(void *argument)
{
    struct proxy *proxy = argument;
    while (!atomic_load(&proxy->over)) {
        struct pollfd poller = {.fd = proxy->fd, .events = POLLIN};
        if (poll(&poller, 1, 20) > 0) {
            int here = accept(proxy->fd, NULL, NULL);
            if (here >= 0) {
                carry(proxy, here);
            }
        }
    }
    return NULL;
}

static void proxy_start(struct proxy *proxy, const char *to, uint64_t seed, uint64_t most)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *proxy = (struct proxy){.to = to, .prng = {.state = seed}, .most = most};
    proxy->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(proxy->fd, 16), 0);
    assert_int_equal(getsockname(proxy->fd, (struct sockaddr *)&address, &size), 0);
    snprintf(proxy->address, sizeof proxy->address, "127.0.0.1:%u", ntohs(address.sin_port));
    pthread_create(&proxy->thread, NULL, run_proxy, proxy);
}

static void proxy_stop(struct proxy *proxy)
{
    atomic_store(&proxy->over, true);
    pthread_join(proxy->thread, NULL);
    close(proxy->fd);
}

static void cut_anywhere_each_push_counts_once(void **state)
{
    (void)state;
    enum { TIMES = 24 };
    struct rig rig;
    struct proxy proxy;
    rig_open(&rig, 1, 2);
    rig_start(&rig, 0, -1);
    proxy_start(&proxy, rig.addresses[0], 11, 4 << 20);
    snprintf(rig.given[0], sizeof rig.given[0], "%s", proxy.address);
    rig_send_members(&rig);
    struct store_spec spec = rig_spec("v", ROWS, ELEMENTS);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float *ones = filled(1);
    float *rows = filled(0);
    const int64_t ids[] = {0, 5, 5, 95};
    struct cadre_error error = {0};
    for (uint64_t i = 0; i < TIMES; i++) {
        struct request requests[3] = {add_of(0, shard, i + 1, ones), add_of(0, shard, i + 1, ones),
            add_of(0, shard, i + 1, ones)};
        requests[1].push.ordinal = 1;
        requests[1].kind = REQUEST_PUSH_PULL;
        requests[1].into = rows;
        requests[2].push.ordinal = 2;
        requests[2].push.sparse = true;
        requests[2].push.ids = ids;
        requests[2].push.rows = 4;
        requests[2].push.kind = PUSH_SUB;
        assert_ok(client_call(rig.client, requests, 3, i + 1, &error), &error);
        assert_int_equal(requests[1].code, CADRE_OK);
    }
    assert_true(atomic_load(&proxy.cuts) > 5);
    rig.given[0][0] = '\0';
    proxy_stop(&proxy);
    rig_send_members(&rig);
    struct request pull = {.kind = REQUEST_PULL,
        .shard = shard,
        .rows = ROWS,
        .row_bytes = ELEMENTS * sizeof(float),
        .into = rows};
    rig_call(&rig, &pull);
    assert_int_equal(pull.ret_version, 3 * TIMES);
    for (size_t row = 0; row < ROWS; row++) {
        float less = row == 0 || row == 95 ? TIMES : row == 5 ? 2 * TIMES : 0;
        float got = rows[row * ELEMENTS + 7];
        assert_true(got >= 2 * TIMES - less && got <= 2 * TIMES - less);
    }
    free(ones);
    free(rows);
    rig_close(&rig);
}

/* ---- servers that die ---- */

struct pushing_thread {
    struct rig *rig;
    uint32_t shard;
    uint64_t first; /* closure */
    uint64_t count;
    atomic_uint *done;
    cadre_status status;
    struct cadre_error error;
};

static void *push_some(void *argument)
{
    struct pushing_thread *self = argument;
    float *ones = filled(1);
    for (uint64_t i = 0; i < self->count && self->status == CADRE_OK; i++) {
        struct request push = add_of(0, self->shard, self->first + i, ones);
        self->status = client_call(self->rig->client, &push, 1, 0, &self->error);
        atomic_fetch_add(self->done, 1);
    }
    free(ones);
    return NULL;
}

/* This program again, as a server until it is killed. Its address is in `shared`, a file's memory.
 */
static int serve(int memory_fd, int shared_fd)
{
    struct cadre_error error = {0};
    struct link_listener *listener = NULL;
    struct server *server = NULL;
    char address[LIMIT_ADDRESS_BYTES];
    char *shared =
        mmap(NULL, LIMIT_ADDRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    struct rig rig;
    rig_open(&rig, 1, 2);
    if (shared == MAP_FAILED ||
        link_listener_open("127.0.0.1", NULL, &listener, address, &error) != CADRE_OK) {
        return 1;
    }
    const struct server_options options = {.memory_fd = memory_fd,
        .threads = 2,
        .listener = listener,
        .directory = rig_directory(&rig, ps_job_first_slot(&rig.ps_job, ROLE_SERVER), 77)};
    if (server_start(&options, &server, &error) != CADRE_OK) {
        return 1;
    }
    memcpy(shared + 1, address + 1, sizeof address - 1);
    __atomic_store_n(&shared[0], address[0], __ATOMIC_RELEASE);
    for (;;) {
        pause();
    }
}

static pid_t start_process(int memory_fd, int shared_fd, char *shared)
{
    char memory[16];
    char file[16];
    snprintf(memory, sizeof memory, "%d", memory_fd);
    snprintf(file, sizeof file, "%d", shared_fd);
    shared[0] = '\0';
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "server", memory, file, (char *)NULL);
        _exit(127);
    }
    return child;
}

static bool has_address(void *data)
{
    return __atomic_load_n((const char *)data, __ATOMIC_ACQUIRE) != '\0';
}

struct target {
    atomic_uint *done;
    unsigned wanted;
};

static bool has_done(void *data)
{
    const struct target *target = data;
    return atomic_load(target->done) >= target->wanted;
}

static void tell_process(struct rig *rig, const char *shared)
{
    memcpy(rig->addresses[0], shared, LIMIT_ADDRESS_BYTES);
    rig->incarnations[0] = 77;
    rig_send_members(rig);
}

static void killed_servers_go_on_with_their_memory(void **state)
{
    (void)state;
    enum { KILLS = 5, THREADS = 2, COUNT = 30 };
    struct rig rig;
    atomic_uint done = 0;
    struct pushing_thread threads[THREADS];
    pthread_t ids[THREADS];
    int memory_fd = memfd_create("memory", 0);
    int shared_fd = memfd_create("shared", 0);
    assert_int_equal(ftruncate(shared_fd, LIMIT_ADDRESS_BYTES), 0);
    char *shared =
        mmap(NULL, LIMIT_ADDRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    rig_open(&rig, 1, 2);
    pid_t child = start_process(memory_fd, shared_fd, shared);
    assert_true(test_wait(has_address, shared, RIG_PATIENCE_US));
    tell_process(&rig, shared);
    struct store_spec spec = rig_spec("v", ROWS, ELEMENTS);
    uint32_t shard = rig_create(&rig, 0, &spec);
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (struct pushing_thread){
            .rig = &rig, .shard = shard, .first = 1 + i * COUNT, .count = COUNT, .done = &done};
        pthread_create(&ids[i], NULL, push_some, &threads[i]);
    }
    for (unsigned i = 1; i <= KILLS; i++) {
        struct target target = {&done, i * THREADS * COUNT / (KILLS + 1)};
        assert_true(test_wait(has_done, &target, RIG_PATIENCE_US));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        child = start_process(memory_fd, shared_fd, shared);
        assert_true(test_wait(has_address, shared, RIG_PATIENCE_US));
        tell_process(&rig, shared);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        assert_ok(threads[i].status, &threads[i].error);
    }
    check_all(&rig, shard, THREADS * COUNT);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    rig_close(&rig);
    munmap(shared, LIMIT_ADDRESS_BYTES);
    close(memory_fd);
    close(shared_fd);
}

static void a_memory_that_is_lost_is_reported(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 2, 1);
    rig_start(&rig, 0, -1);
    rig_start(&rig, 1, -1);
    struct store_spec spec = rig_spec("v", ROWS, ELEMENTS);
    uint32_t shard = rig_create(&rig, 1, &spec);
    float *ones = filled(1);
    struct request push = add_of(1, shard, 1, ones);
    rig_call(&rig, &push);
    rig_stop(&rig, 1);
    rig_start(&rig, 1, -1);
    struct cadre_error error = {0};
    push.push.closure = 2;
    assert_error(
        client_call(rig.client, &push, 1, 0, &error), CADRE_DATA_LOSS, &error, "ps 1 on 127.0.0.1");
    /* Of the other one too, and for good. */
    assert_error(
        client_call(rig.client, &(struct request){.kind = REQUEST_NOTE_NAMES}, 1, 0, &error),
        CADRE_DATA_LOSS, &error, "lost its memory");
    free(ones);
    rig_close(&rig);
}

/* It runs on, and would answer; what it has is not that of the one that the directory has. */
static void a_replaced_server_is_not_asked(void **state)
{
    (void)state;
    struct rig rig;
    struct rig_partitioned partitioned;
    struct cadre_error error = {0};
    float row[ELEMENTS];
    rig_open(&rig, 1, 1);
    rig_start(&rig, 0, -1);
    struct store_spec spec = rig_spec("v", ROWS, ELEMENTS);
    struct request pull = {.kind = REQUEST_PULL,
        .shard = rig_create(&rig, 0, &spec),
        .rows = 1,
        .row_bytes = sizeof row,
        .into = row};
    rig_call(&rig, &pull);
    rig_partition(&rig, 0, &partitioned);
    rig_call(&rig, &pull); /* no other one is there yet */
    rig_start(&rig, 0, -1);
    assert_int_equal(client_call(rig.client, &pull, 1, 0, &error), CADRE_DATA_LOSS);
    rig_end_partitioned(&partitioned);
    rig_close(&rig);
}

static void patience_ends(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 2, 1);
    rig_start(&rig, 0, -1);
    struct client *client = rig_client(&rig, 50 * CADRE_US_PER_MS);
    struct request requests[] = {
        {.kind = REQUEST_NOTE, .server = 0, .name = "a", .values = "b", .rows = 1},
        {.kind = REQUEST_NOTE, .server = 1, .name = "a", .values = "b", .rows = 1},
        {.kind = REQUEST_NOTE, .server = 0, .name = "c", .values = "b", .rows = 1},
    };
    struct cadre_error error = {0};
    assert_error(client_call(client, requests, 3, 0, &error), CADRE_UNAVAILABLE, &error,
        "ps 1 could not be reached for 0 s");
    assert_int_equal(requests[0].code, CADRE_OK);
    assert_int_equal(requests[1].code, CADRE_UNAVAILABLE);
    assert_int_equal(requests[2].code, CADRE_OK);
    client_close(client);
    rig_close(&rig);
}

static void *note_in_thread(void *argument)
{
    struct pushing_thread *self = argument;
    struct request request = {.kind = REQUEST_NOTE, .name = "a", .values = "b", .rows = 1};
    atomic_fetch_add(self->done, 1);
    self->status = client_call(self->rig->client, &request, 1, 0, &self->error);
    return NULL;
}

static void waiting_ends_with_the_directory(void **state)
{
    (void)state;
    struct rig rig;
    atomic_uint done = 0;
    rig_open(&rig, 1, 1); /* its server is not started */
    struct pushing_thread self = {.rig = &rig, .done = &done};
    pthread_t thread;
    pthread_create(&thread, NULL, note_in_thread, &self);
    struct target target = {&done, 1};
    assert_true(test_wait(has_done, &target, RIG_PATIENCE_US));
    struct cadre_error over = {0};
    (void)cadre_error_set(&over, CADRE_ABORTED, "the chief was lost");
    directory_end(rig.directory, &over);
    pthread_join(thread, NULL);
    assert_error(self.status, CADRE_ABORTED, &self.error, "the chief was lost");
    rig_close(&rig);
}

/* The first of two connections with one push is not known to be dead: the second takes it over. */
static void a_push_that_is_sent_again_is_taken_over(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, 2);
    rig_start(&rig, 0, -1);
    struct store_spec spec = rig_spec("v", ROWS, ELEMENTS);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float *ones = filled(1);
    /* Another worker that runs the same closures at the same time. */
    struct directory *other = rig_directory(&rig, 2, 1);
    struct cadre_error error = {0};
    struct client_options options = {.directory = other, .wait_timeout_us = RIG_PATIENCE_US};
    assert_ok(link_program_digest(options.program, &error), &error);
    struct client *client = NULL;
    assert_ok(client_open(&options, &client, &error), &error);
    struct rig second = rig;
    second.client = client;
    atomic_uint done = 0;
    struct pushing_thread self = {
        .rig = &second, .shard = shard, .first = 9, .count = 20, .done = &done};
    pthread_t thread;
    pthread_create(&thread, NULL, push_some, &self);
    for (uint64_t i = 0; i < 20; i++) {
        struct request push = add_of(0, shard, 9 + i, ones);
        rig_call(&rig, &push);
    }
    pthread_join(thread, NULL);
    assert_ok(self.status, &self.error);
    check_all(&rig, shard, 20);
    client_close(client);
    directory_free(other);
    free(ones);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        return serve((int)strtol(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_servers_go_on_with_their_memory),
        cmocka_unit_test(cut_anywhere_each_push_counts_once),
        cmocka_unit_test(a_memory_that_is_lost_is_reported),
        cmocka_unit_test(a_replaced_server_is_not_asked),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(waiting_ends_with_the_directory),
        cmocka_unit_test(a_push_that_is_sent_again_is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
