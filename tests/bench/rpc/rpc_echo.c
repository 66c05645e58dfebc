/* SPDX-License-Identifier: Apache-2.0
 * Echo of 64 bytes through common/rpc, unary and on long-lived streams, beside a raw epoll echo in
 * the same run: one server process, one client process with `concurrency` messages under way.
 * Rounds are interleaved; the median of each row is printed with its spread.   rpc_echo [ROUNDS
 * [WINDOW_MS]] */
#include "raw_echo.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/tune.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define ROUNDS_MAX  15
#define SAMPLES_MAX 2000000
#define UNARY       "/bench.Echo/Unary"
#define CHAT        "/bench.Echo/Chat"

enum kind { RAW, UNARY_TCP, CHAT_TCP, UNARY_UNIX, CHAT_UNIX, KINDS };

static const char *const kind_names[] = {
    "raw epoll, TCP", "unary, TCP", "stream, TCP", "unary, Unix socket", "stream, Unix socket"};
static const int concurrencies[] = {1, 8, 64};

#define LEVELS CADRE_COUNT_OF(concurrencies)

/* ---- the servers ---- */

static void tell_port(int port)
{
    printf("%d\n", port);
    fflush(stdout);
}

static void echo_once(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    rpc_call_send(call, data, length, NULL);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void echo_on(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    rpc_call_send(call, data, length, NULL);
}

static int serve(const char *socket_address)
{
    static const struct rpc_server_ops unary = {.on_message = echo_once};
    static const struct rpc_server_ops chat = {.on_message = echo_on};
    const struct rpc_method methods[] = {
        {.path = UNARY, .request_bytes_max = 4096, .ops = &unary},
        {.path = CHAT,
            .client_streams = true,
            .server_streams = true,
            .request_bytes_max = 4096,
            .ops = &chat},
    };
    const struct rpc_server_options options = {.methods = methods, .method_count = 2};
    struct cadre_error error = {0};
    struct rpc_loop *loop;
    struct rpc_server *server;
    int port = 0;
    if (rpc_loop_open(&loop, &error) != CADRE_OK ||
        rpc_server_open(loop, &options, &server, &error) != CADRE_OK ||
        rpc_server_listen(server, "127.0.0.1:0", NULL, &port, &error) != CADRE_OK ||
        rpc_server_listen(server, socket_address, NULL, NULL, &error) != CADRE_OK) {
        fprintf(stderr, "rpc_echo: %s\n", error.text);
        return 1;
    }
    rpc_server_start(server);
    tell_port(port);
    rpc_loop_run(loop);
    return 0;
}

/* ---- the client ---- */

struct drive {
    struct rpc_channel *channel;
    struct samples *samples;
    bool streams;
    uint64_t end_us;
    int open;
    bool done;
};

struct slot {
    struct drive *drive;
    uint64_t sent_us;
};

static void start(struct slot *slot);

static void send_one(struct slot *slot, struct rpc_call *call)
{
    static const char message[MESSAGE_BYTES];
    slot->sent_us = clock_monotonic_us();
    cadre_status status = rpc_call_send(call, message, sizeof message, NULL);
    CADRE_ASSERT(status == CADRE_OK);
}

static void got_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct slot *slot = user;
    (void)data;
    CADRE_ASSERT(length == MESSAGE_BYTES);
    if (slot->drive->streams) {
        uint64_t now_us = clock_monotonic_us();
        samples_add(slot->drive->samples, now_us - slot->sent_us);
        if (now_us >= slot->drive->end_us) {
            rpc_call_cancel(call);
        } else {
            send_one(slot, call);
        }
    }
}

static void got_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct slot *slot = user;
    struct drive *drive = slot->drive;
    (void)call;
    (void)text;
    uint64_t now_us = clock_monotonic_us();
    if (!drive->streams) {
        CADRE_ASSERT(status == CADRE_OK);
        samples_add(drive->samples, now_us - slot->sent_us);
        if (now_us < drive->end_us) {
            start(slot);
            return;
        }
    }
    drive->done = --drive->open == 0;
}

static void start(struct slot *slot)
{
    static const struct rpc_client_ops ops = {.on_message = got_message, .on_status = got_status};
    struct drive *drive = slot->drive;
    struct rpc_call *call;
    const struct rpc_call_options options = {
        .path = drive->streams ? CHAT : UNARY,
        .client_streams = drive->streams,
        .server_streams = drive->streams,
        .wait_for_ready = true,
        .ops = &ops,
        .user = slot,
    };
    cadre_status status = rpc_channel_call(drive->channel, &options, &call, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    send_one(slot, call);
}

static void drive_rpc(struct rpc_loop *loop, const char *address, bool streams, int concurrency,
    uint64_t end_us, struct samples *samples)
{
    static struct slot slots[CONCURRENCY_MAX];
    struct drive drive = {
        .samples = samples, .streams = streams, .end_us = end_us, .open = concurrency};
    cadre_status status = rpc_channel_open(loop, address, NULL, &drive.channel, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    for (int i = 0; i < concurrency; i++) {
        slots[i].drive = &drive;
        start(&slots[i]);
    }
    rpc_loop_run_until(loop, &drive.done, CADRE_TIME_NEVER);
    rpc_channel_close(drive.channel);
}

/* ---- running and printing ---- */

struct result {
    double per_s[ROUNDS_MAX];
    uint64_t p50_us[ROUNDS_MAX], p99_us[ROUNDS_MAX];
};

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int compare_double(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static pid_t spawn_server(const char *role, const char *address, int *ret_port)
{
    int ends[2];
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    char *arguments[] = {"rpc_echo", (char *)(uintptr_t)role, (char *)(uintptr_t)address, NULL};
    int failed = pipe(ends);
    CADRE_ASSERT(failed == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    CADRE_ASSERT(failed == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    char line[32] = "";
    char *read = fgets(line, sizeof line, out);
    CADRE_ASSERT(read != NULL);
    *ret_port = (int)strtol(line, NULL, 10);
    fclose(out);
    return pid;
}

static void print_row(
    enum kind kind, int concurrency, struct result *result, int rounds, const struct result *floor)
{
    int middle = rounds / 2;
    qsort(result->per_s, (size_t)rounds, sizeof result->per_s[0], compare_double);
    qsort(result->p50_us, (size_t)rounds, sizeof result->p50_us[0], compare_u64);
    qsort(result->p99_us, (size_t)rounds, sizeof result->p99_us[0], compare_u64);
    printf("%-20s %4d  %9.0f/s [%7.0f-%7.0f]  p50 %5llu us  p99 %5llu us  %.2f of raw\n",
        kind_names[kind], concurrency, result->per_s[middle], result->per_s[0],
        result->per_s[rounds - 1], (unsigned long long)result->p50_us[middle],
        (unsigned long long)result->p99_us[middle], result->per_s[middle] / floor->per_s[middle]);
}

static void measure(struct rpc_loop *loop, enum kind kind, int concurrency, const int ports[2],
    const char *socket_address, uint64_t window_us, struct samples *samples)
{
    char address[64];
    uint64_t end_us = clock_monotonic_us() + window_us;
    samples->count = 0;
    if (kind == RAW) {
        raw_drive(ports[0], concurrency, end_us, samples);
        return;
    }
    snprintf(address, sizeof address, "127.0.0.1:%d", ports[1]);
    bool is_unix = kind == UNARY_UNIX || kind == CHAT_UNIX;
    drive_rpc(loop, is_unix ? socket_address : address, kind == CHAT_TCP || kind == CHAT_UNIX,
        concurrency, end_us, samples);
}

static void run_all(int rounds, uint64_t window_us, const int ports[2], const char *socket_address)
{
    static struct result results[KINDS][LEVELS];
    struct samples samples = {
        .took_us = malloc(SAMPLES_MAX * sizeof(uint64_t)), .room = SAMPLES_MAX};
    struct rpc_loop *loop;
    cadre_status status = rpc_loop_open(&loop, NULL);
    CADRE_ASSERT(status == CADRE_OK && samples.took_us != NULL);
    for (int round = 0; round < rounds; round++) {
        for (size_t level = 0; level < LEVELS; level++) {
            for (int kind = 0; kind < KINDS; kind++) {
                struct result *result = &results[kind][level];
                measure(loop, (enum kind)kind, concurrencies[level], ports, socket_address,
                    window_us, &samples);
                CADRE_ASSERT(samples.count > 0);
                qsort(samples.took_us, samples.count, sizeof samples.took_us[0], compare_u64);
                result->per_s[round] = samples.count / ((double)window_us / CADRE_US_PER_S);
                result->p50_us[round] = samples.took_us[samples.count / 2];
                result->p99_us[round] = samples.took_us[(uint64_t)samples.count * 99 / 100];
            }
        }
    }
    printf("%d rounds of %llu ms, median [min-max]\n", rounds,
        (unsigned long long)(window_us / CADRE_US_PER_MS));
    for (size_t level = 0; level < LEVELS; level++) {
        for (int kind = 0; kind < KINDS; kind++) {
            print_row((enum kind)kind, concurrencies[level], &results[kind][level], rounds,
                &results[RAW][level]);
        }
    }
    rpc_loop_close(loop);
    free(samples.took_us);
}

int main(int argc, char **argv)
{
    rpc_tune_malloc();
    if (argc == 3 && (strcmp(argv[1], "raw") == 0 || strcmp(argv[1], "rpc") == 0)) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (strcmp(argv[1], "raw") == 0) {
            raw_serve(tell_port);
        }
        return serve(argv[2]);
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    int window_ms = argc > 2 ? atoi(argv[2]) : 1000;
    if (rounds < 1 || rounds > ROUNDS_MAX || window_ms < 1) {
        fprintf(stderr, "usage: rpc_echo [ROUNDS (1-%d) [WINDOW_MS]]\n", ROUNDS_MAX);
        return 1;
    }
    char folder[] = "/tmp/cadre-bench-XXXXXX";
    char address[64];
    if (mkdtemp(folder) == NULL) {
        perror("rpc_echo: mkdtemp");
        return 1;
    }
    snprintf(address, sizeof address, "unix:%s/socket", folder);
    int ports[2];
    const pid_t servers[2] = {
        spawn_server("raw", address, &ports[0]), spawn_server("rpc", address, &ports[1])};
    run_all(rounds, (uint64_t)window_ms * CADRE_US_PER_MS, ports, address);
    for (int i = 0; i < 2; i++) {
        kill(servers[i], SIGKILL);
        waitpid(servers[i], NULL, 0);
    }
    unlink(address + 5);
    rmdir(folder);
    return 0;
}
