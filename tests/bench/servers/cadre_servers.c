/* SPDX-License-Identifier: Apache-2.0
 * A parameter server in a process of its own, on memory that outlives it, and clients that push and
 * pull variables of each size. `cadre_servers CLIENTS [PART [THREADS]]` */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/bench/servers/rounds_servers.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/server/server.h"

enum { ASSIGN, ADD, SGD, PULL, GATHER };
static const char *const names[] = {"assign", "add", "sgd", "pull", "gather", NULL};

#define SERVER_SLOT  (1 + CLIENTS_MOST)
#define CLIENTS_MOST 8

static char server_address[LIMIT_ADDRESS_BYTES];

struct variable {
    uint32_t shard;
    uint64_t rows;
    uint64_t row_bytes;
};

struct opened {
    struct client *client;
    struct variable variables[SERVERS_SIZES];
    uint32_t table;
    uint64_t closure; /* each client's are the numbers that are its own modulo CLIENTS_MOST */
    int64_t ids[GATHER_ROWS];
};

static void fail(const struct cadre_error *error)
{
    fprintf(stderr, "%s\n", error->text);
    _exit(6);
}

static struct directory *directory_of(uint32_t slot)
{
    struct cadre_error error = {0};
    struct directory *directory = NULL;
    const struct directory_self self = {
        .ps_job = {.workers = CLIENTS_MOST, .servers = 1}, .slot = slot, .incarnation = 1};
    const struct task_member member = {.slot = SERVER_SLOT,
        .incarnation = 1,
        .attempts = 1,
        .here = true,
        .address = server_address};
    const struct task_members members = {
        .generation = {.number = 1, .nonce = 1}, .members = &member, .member_count = 1};
    if (directory_new(&self, &directory, &error) != CADRE_OK) {
        fail(&error);
    }
    directory_update(directory, &members);
    return directory;
}

static void be_server(struct link_listener *listener, uint32_t threads)
{
    struct cadre_error error = {0};
    struct server *server = NULL;
    const struct server_options options = {
        .memory_fd = memfd_create("parameters", MFD_CLOEXEC),
        .threads = threads,
        .listener = listener,
        .directory = directory_of(SERVER_SLOT),
    };
    if (server_start(&options, &server, &error) != CADRE_OK ||
        server_wait(server, &error) != CADRE_OK) {
        fail(&error);
    }
    _exit(0);
}

static void call(struct opened *opened, struct request *request)
{
    struct cadre_error error = {0};
    /* No other client is further behind. */
    uint64_t behind = (uint64_t)CLIENTS_MOST * 10000;
    uint64_t done_watermark = opened->closure > behind ? opened->closure - behind : 0;
    if (client_call(opened->client, request, 1, done_watermark, &error) != CADRE_OK) {
        fail(&error);
    }
}

static uint32_t create(
    struct opened *opened, int client, size_t number, uint64_t rows, uint64_t row_floats)
{
    struct store_spec spec = {
        .dtype = CADRE_F32,
        .rows = rows,
        .row_elements = row_floats,
    };
    const struct optimizer_rule rule = {.kind = OPTIMIZER_SGD, .rate = 0.01};
    snprintf(spec.name, sizeof spec.name, "v%d.%zu", client, number);
    struct request request = {.kind = REQUEST_CREATE, .spec = &spec};
    call(opened, &request);
    struct request train = {.kind = REQUEST_TRAIN, .shard = request.ret_shard, .rule = &rule};
    call(opened, &train);
    return request.ret_shard;
}

static void *open_client(int number)
{
    static struct opened opened;
    struct cadre_error error = {0};
    struct client_options options = {
        .directory = directory_of(1 + (uint32_t)number), .wait_timeout_us = 10 * CADRE_US_PER_S};
    if (link_program_digest(options.program, &error) != CADRE_OK ||
        client_open(&options, &opened.client, &error) != CADRE_OK) {
        fail(&error);
    }
    for (size_t i = 0; i < SERVERS_SIZES; i++) {
        uint64_t row_bytes = servers_sizes[i] < 4096 ? servers_sizes[i] : 4096;
        uint64_t rows = servers_sizes[i] / row_bytes;
        opened.variables[i] = (struct variable){
            .shard = create(&opened, number, i, rows, row_bytes / sizeof(float)),
            .rows = rows,
            .row_bytes = row_bytes,
        };
    }
    opened.table = create(&opened, number, 99, GATHER_OF, GATHER_ROW_FLOATS);
    for (int64_t i = 0; i < GATHER_ROWS; i++) {
        opened.ids[i] = i * 7919 % GATHER_OF;
    }
    opened.closure = CLIENTS_MOST + (uint64_t)number;
    return &opened;
}

static bool gather(struct opened *opened)
{
    struct request request = {
        .kind = REQUEST_GATHER,
        .shard = opened->table,
        .rows = GATHER_ROWS,
        .row_bytes = GATHER_ROW_FLOATS * sizeof(float),
        .ids = opened->ids,
        .into = servers_bytes(),
    };
    call(opened, &request);
    return true;
}

static bool run(void *user, size_t operation, size_t size_index)
{
    static const enum push_kind kinds[] = {
        [ASSIGN] = PUSH_ASSIGN, [ADD] = PUSH_ADD, [SGD] = PUSH_UPDATE};
    struct opened *opened = user;
    const struct variable *variable = &opened->variables[size_index];
    struct request request = {
        .kind = operation == PULL ? REQUEST_PULL : REQUEST_PUSH,
        .shard = variable->shard,
        .rows = variable->rows,
        .row_bytes = variable->row_bytes,
        .values = servers_bytes(),
        .into = servers_bytes(),
    };
    if (operation == GATHER) {
        return gather(opened);
    }
    if (operation != PULL) {
        opened->closure += CLIENTS_MOST;
        request.push = (struct push){
            .shard = variable->shard,
            .kind = kinds[operation],
            .closure = opened->closure,
            .rows = variable->rows,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION,
        };
    }
    call(opened, &request);
    return true;
}

int main(int argc, char **argv)
{
    static const struct servers_kind kind = {open_client, run, names};
    struct cadre_error error = {0};
    struct link_listener *listener = NULL;
    if (link_listener_open("127.0.0.1", NULL, &listener, server_address, &error) != CADRE_OK) {
        fail(&error);
    }
    pid_t server = fork();
    if (server == 0) {
        be_server(listener, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
    }
    int status = servers_rounds(&kind, argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    link_listener_close(listener);
    return status;
}
