/* SPDX-License-Identifier: Apache-2.0
 * A parameter server in a process of its own, on memory that outlives it, and clients that push and
 * pull variables of each size; with "backup" a second server keeps its copy, as on another host.
 * `cadre_servers CLIENTS [PART [THREADS [backup]]]` */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
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
#define SERVERS_MOST 2 /* the second keeps the copy of the first */
#define BACKED_MS    20000

static struct ps_job ps_job = {.workers = CLIENTS_MOST, .servers = 1};
static char addresses[SERVERS_MOST][LIMIT_ADDRESS_BYTES];
static int backed_fd = -1; /* counts servers that have a backup */

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

/* As the coordinator: who is where, and whose copy of a server may be taken. */
static void send_members(
    struct directory *directory, uint32_t of_server, const struct task_backed *backed)
{
    struct task_member servers[SERVERS_MOST];
    const struct task_members members = {.generation = {.number = 1, .nonce = 1},
        .members = servers,
        .member_count = ps_job.servers};
    for (uint32_t i = 0; i < ps_job.servers; i++) {
        servers[i] = (struct task_member){.slot = SERVER_SLOT + i,
            .incarnation = 1,
            .attempts = 1,
            .here = true,
            .address = addresses[i]};
    }
    if (backed != NULL) {
        servers[of_server].backed = *backed;
    }
    directory_update(directory, &members);
}

static struct directory *directory_of(uint32_t slot)
{
    struct cadre_error error = {0};
    struct directory *directory = NULL;
    const struct directory_self self = {.ps_job = ps_job, .slot = slot, .incarnation = 1};
    if (directory_new(&self, &directory, &error) != CADRE_OK) {
        fail(&error);
    }
    send_members(directory, 0, NULL);
    return directory;
}

static void record_backed(void *user, const struct task_backed *backed)
{
    struct directory *directory = user;
    send_members(directory, directory_self(directory)->slot - SERVER_SLOT, backed);
    if (backed->by != 0) {
        (void)eventfd_write(backed_fd, 1);
    }
}

static void be_server(struct link_listener *listener, uint32_t index, uint32_t threads)
{
    struct cadre_error error = {0};
    struct server *server = NULL;
    struct directory *directory = directory_of(SERVER_SLOT + index);
    const struct server_options options = {
        .index = index,
        .memory_fd = memfd_create("parameters", MFD_CLOEXEC),
        .threads = threads,
        .listener = listener,
        .directory = directory,
        .send_backed = record_backed,
        .user = directory,
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

static void await_backed(void)
{
    struct pollfd waiter = {.fd = backed_fd, .events = POLLIN};
    for (uint32_t i = 0; ps_job.backups && i < ps_job.servers; i++) {
        eventfd_t one;
        if (poll(&waiter, 1, BACKED_MS) != 1 || eventfd_read(backed_fd, &one) != 0) {
            fprintf(stderr, "no backup within %d ms\n", BACKED_MS);
            _exit(6);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct servers_kind kind = {open_client, run, names};
    struct cadre_error error = {0};
    struct link_listener *listeners[SERVERS_MOST] = {NULL};
    pid_t servers[SERVERS_MOST];
    uint32_t threads = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    if (argc > 4 && strcmp(argv[4], "backup") == 0) {
        ps_job.servers = SERVERS_MOST;
        ps_job.backups = true;
    }
    backed_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (backed_fd < 0) {
        return 2;
    }
    for (uint32_t i = 0; i < ps_job.servers; i++) {
        if (link_listener_open("127.0.0.1", NULL, &listeners[i], addresses[i], &error) !=
            CADRE_OK) {
            fail(&error);
        }
    }
    for (uint32_t i = 0; i < ps_job.servers; i++) {
        servers[i] = fork();
        if (servers[i] == 0) {
            be_server(listeners[i], i, threads);
        }
    }
    await_backed();
    int status = servers_rounds(&kind, argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    for (uint32_t i = 0; i < ps_job.servers; i++) {
        kill(servers[i], SIGKILL);
        waitpid(servers[i], NULL, 0);
        link_listener_close(listeners[i]);
    }
    return status;
}
