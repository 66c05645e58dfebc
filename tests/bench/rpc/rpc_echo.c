/* SPDX-License-Identifier: Apache-2.0
 * Echo of 64 bytes through common/rpc, unary and on long-lived streams, beside a raw epoll echo in
 * the same run: one server process, one client process with `concurrency` messages under way. A
 * join is a new connection for each message, one after the other.
 * With a coordinator's certificate in CADRE_TLS_DIR, over TLS too.
 * Rounds are interleaved.   rpc_echo [ROUNDS [WINDOW_MS]] */
#include "echo_client.h"
#include "echo_server.h"
#include "raw_echo.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum kind {
    RAW,
    UNARY_TCP,
    CHAT_TCP,
    UNARY_UNIX,
    CHAT_UNIX,
    JOIN_TCP,
    UNARY_TLS,
    CHAT_TLS,
    JOIN_TLS,
    KINDS
};

static const char *const kind_names[] = {"raw epoll, TCP", "unary, TCP", "stream, TCP",
    "unary, Unix socket", "stream, Unix socket", "join, TCP", "unary, TLS", "stream, TLS",
    "join, TLS"};
static const int concurrencies[] = {1, 8, 64};

#define LEVELS CADRE_COUNT_OF(concurrencies)

enum role { SERVE_RAW, SERVE_RPC, SERVE_TLS, ROLES };

static const char *const roles[] = {"raw", "rpc", "tls"};

static bool has_tls(void)
{
    return getenv("CADRE_TLS_DIR") != NULL;
}

/* NULL: no certificate is named. */
static struct rpc_tls *open_tls(struct rpc_loop *loop)
{
    const struct rpc_tls_options options = {.dir = getenv("CADRE_TLS_DIR")};
    struct rpc_tls *tls = NULL;
    struct cadre_error error;
    if (rpc_tls_open(loop, &options, TLS_ROLE_COORDINATOR, NULL, NULL, &tls, &error) != CADRE_OK) {
        fprintf(stderr, "rpc_echo: %s\n", error.text);
        exit(1);
    }
    return tls;
}

static int serve(const char *role, const char *socket_address)
{
    struct rpc_loop *loop;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(role, "raw") == 0) {
        raw_serve(server_tell_port);
    }
    cadre_status status = rpc_loop_open(&loop, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    bool tls = strcmp(role, roles[SERVE_TLS]) == 0;
    server_tell_port(
        echo_server_open(loop, tls ? NULL : socket_address, tls ? open_tls(loop) : NULL));
    rpc_loop_run(loop);
    return 0;
}

/* One after the other joins, so more of them under way are no case. */
static bool measured(int kind, size_t level)
{
    return level == 0 || (kind != JOIN_TCP && kind != JOIN_TLS);
}

static void measure(struct rpc_loop *loop, struct rpc_tls *tls, enum kind kind, int concurrency,
    const struct server_process *server, const char *socket_address, uint64_t end_us,
    struct samples *samples)
{
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", server->port);
    bool is_unix = kind == UNARY_UNIX || kind == CHAT_UNIX;
    if (kind == RAW) {
        raw_drive(server->port, NULL, concurrency, end_us, samples);
        return;
    }
    tls = kind >= UNARY_TLS ? tls : NULL;
    if (kind == JOIN_TCP || kind == JOIN_TLS) {
        echo_join(loop, address, tls, end_us, samples);
    } else {
        echo_drive(loop, is_unix ? socket_address : address, tls,
            kind == CHAT_TCP || kind == CHAT_UNIX || kind == CHAT_TLS, concurrency, end_us,
            samples);
    }
}

static void run_all(int rounds, uint64_t window_us, const struct server_process servers[ROLES],
    const char *socket_address)
{
    static struct row rows[KINDS][LEVELS];
    struct samples samples = samples_open();
    struct rpc_loop *loop;
    cadre_status status = rpc_loop_open(&loop, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    struct rpc_tls *tls = open_tls(loop);
    int kinds = tls != NULL ? KINDS : UNARY_TLS;
    for (int round = 0; round < rounds; round++) {
        for (size_t level = 0; level < LEVELS; level++) {
            for (int kind = 0; kind < kinds; kind++) {
                const struct server_process *server = &servers[kind == RAW         ? SERVE_RAW
                                                               : kind >= UNARY_TLS ? SERVE_TLS
                                                                                   : SERVE_RPC];
                bool quiet = !measured(kind, level);
                for (int tries = 0; tries < TRIES_MAX && !quiet; tries++) {
                    struct window window = window_begin(server);
                    measure(loop, tls, (enum kind)kind, concurrencies[level], server,
                        socket_address, window.start_us + window_us, &samples);
                    quiet = row_add(&rows[kind][level], round, &samples, &window);
                }
            }
        }
    }
    printf("%d rounds of %llu ms, median [min-max]\n", rounds,
        (unsigned long long)(window_us / CADRE_US_PER_MS));
    for (size_t level = 0; level < LEVELS; level++) {
        for (int kind = 0; kind < kinds; kind++) {
            if (measured(kind, level)) {
                row_print(kind_names[kind], concurrencies[level], &rows[kind][level], rounds, "raw",
                    &rows[RAW][level]);
            }
        }
    }
    rpc_tls_close(tls);
    rpc_loop_close(loop);
    free(samples.took_us);
}

int main(int argc, char **argv)
{
    rpc_tune_malloc();
    for (int role = 0; argc == 3 && role < ROLES; role++) {
        if (strcmp(argv[1], roles[role]) == 0) {
            return serve(argv[1], argv[2]);
        }
    }
    int rounds;
    uint64_t window_us;
    rounds_arguments(argc, argv, "rpc_echo", &rounds, &window_us);
    char folder[] = "/tmp/cadre-bench-XXXXXX";
    char address[64];
    if (mkdtemp(folder) == NULL) {
        perror("rpc_echo: mkdtemp");
        return 1;
    }
    snprintf(address, sizeof address, "unix:%s/socket", folder);
    struct server_process servers[ROLES] = {0};
    int count = has_tls() ? ROLES : SERVE_TLS;
    for (int role = 0; role < count; role++) {
        servers[role] = server_spawn("rpc_echo", roles[role], address);
    }
    run_all(rounds, window_us, servers, address);
    for (int role = 0; role < count; role++) {
        server_kill(&servers[role]);
    }
    unlink(address + strlen("unix:"));
    rmdir(folder);
    return 0;
}
