/* SPDX-License-Identifier: Apache-2.0
 * How gRPC's completion queue and libuv are joined, and what it costs: each join is a server
 * process, this process is the client of all, rounds are interleaved. loop_join [ROUNDS
 * [WINDOW_MS]]; `loop_join ROLE FOLDER` is one of the servers. */
#include "bare_echo.h"
#include "echo_client.h"
#include "echo_server.h"
#include "raw_echo.h"
#include "uv_echo.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <uv.h>

enum role { NEXT, INVERTED, HANDOFF, OURS, PLAIN_UV, ROLES };
enum load { UNARY, CHAT, PIPE, LOADS };

static const char *const role_names[] = {"next", "inverted", "handoff", "ours", "uv"};
static const char *const load_names[] = {"unary", "stream", "Unix socket on libuv"};
static const int concurrencies[] = {1, 8, 64};

#define LEVELS CADRE_COUNT_OF(concurrencies)

/* gRPC's loads on all who have gRPC, the Unix socket on all who have libuv. */
static bool measured(enum role role, enum load load)
{
    return load == PIPE ? role == PLAIN_UV || role == HANDOFF || role == OURS : role != PLAIN_UV;
}

static enum role base_of(enum load load)
{
    return load == PIPE ? PLAIN_UV : NEXT;
}

static void socket_path(char *ret_path, size_t room, enum role role, const char *folder)
{
    snprintf(ret_path, room, "%s/%s", folder, role_names[role]);
}

/* ---- the servers ---- */

static void serve(enum role role, const char *folder)
{
    char path[64];
    struct rpc_loop *loop;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN); /* the client leaves with a message under way */
    socket_path(path, sizeof path, role, folder);
    cadre_status status = rpc_loop_open(&loop, NULL); /* gRPC is up, also where it is not run */
    CADRE_ASSERT(status == CADRE_OK);
    uv_loop_t *uv = role == INVERTED || role == OURS ? rpc_loop_uv(loop) : uv_default_loop();
    grpc_completion_queue *queue = rpc_loop_queue(loop);
    if (measured(role, PIPE)) {
        uv_echo_open(uv, path);
    }
    switch (role) {
    case NEXT:
        server_tell_port(bare_echo_open(queue));
        bare_echo_run_next(queue);
        break;
    case HANDOFF:
        server_tell_port(bare_echo_open(queue));
        bare_echo_run_handoff(queue, uv);
        break;
    case INVERTED:
        server_tell_port(bare_echo_open(queue));
        rpc_loop_run(loop);
        break;
    case OURS:
        server_tell_port(echo_server_open(loop, NULL, NULL));
        rpc_loop_run(loop);
        break;
    case PLAIN_UV:
    case ROLES:
        server_tell_port(0);
        uv_run(uv, UV_RUN_DEFAULT);
        break;
    }
}

/* ---- the client ---- */

static void measure(struct rpc_loop *loop, enum role role, enum load load, int concurrency,
    const struct server_process *server, const char *folder, uint64_t end_us,
    struct samples *samples)
{
    char text[64];
    if (load == PIPE) {
        socket_path(text, sizeof text, role, folder);
        raw_drive(0, text, concurrency, end_us, samples);
    } else {
        snprintf(text, sizeof text, "127.0.0.1:%d", server->port);
        echo_drive(loop, text, NULL, load == CHAT, concurrency, end_us, samples);
    }
}

static struct row rows[LOADS][LEVELS][ROLES];

static void measure_all(
    int rounds, uint64_t window_us, const struct server_process *servers, const char *folder)
{
    struct samples samples = samples_open();
    struct rpc_loop *loop;
    cadre_status status = rpc_loop_open(&loop, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    for (int at = 0; at < rounds * LOADS * (int)LEVELS * ROLES; at++) {
        enum role role = (enum role)(at % ROLES);
        enum load load = (enum load)(at / ROLES % LOADS);
        size_t level = (size_t)(at / ROLES / LOADS) % LEVELS;
        if (!measured(role, load)) {
            continue;
        }
        bool quiet = false;
        for (int tries = 0; tries < TRIES_MAX && !quiet; tries++) {
            struct window window = window_begin(&servers[role]);
            measure(loop, role, load, concurrencies[level], &servers[role], folder,
                window.start_us + window_us, &samples);
            quiet = row_add(
                &rows[load][level][role], at / ROLES / LOADS / (int)LEVELS, &samples, &window);
        }
    }
    rpc_loop_close(loop);
    free(samples.took_us);
}

static void print_all(int rounds, uint64_t window_us)
{
    printf("%d rounds of %llu ms, median [min-max]; ratio of the throughputs\n", rounds,
        (unsigned long long)(window_us / CADRE_US_PER_MS));
    for (int load = 0; load < LOADS; load++) {
        enum role base = base_of((enum load)load);
        printf("\n%s\n", load_names[load]);
        for (size_t level = 0; level < LEVELS; level++) {
            for (int role = 0; role < ROLES; role++) {
                if (measured((enum role)role, (enum load)load)) {
                    row_print(role_names[role], concurrencies[level], &rows[load][level][role],
                        rounds, role_names[base], &rows[load][level][base]);
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    rpc_tune_malloc();
    for (int role = 0; argc == 3 && role < ROLES; role++) {
        if (strcmp(argv[1], role_names[role]) == 0) {
            serve((enum role)role, argv[2]);
        }
    }
    int rounds;
    uint64_t window_us;
    rounds_arguments(argc, argv, "loop_join", &rounds, &window_us);
    char folder[] = "/tmp/cadre-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) {
        perror("loop_join: mkdtemp");
        return 1;
    }
    struct server_process servers[ROLES];
    for (int role = 0; role < ROLES; role++) {
        servers[role] = server_spawn("loop_join", role_names[role], folder);
    }
    measure_all(rounds, window_us, servers, folder);
    print_all(rounds, window_us);
    for (int role = 0; role < ROLES; role++) {
        char path[64];
        server_kill(&servers[role]);
        socket_path(path, sizeof path, (enum role)role, folder);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}
