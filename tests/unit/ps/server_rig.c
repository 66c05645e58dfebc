/* SPDX-License-Identifier: Apache-2.0 */
#include "server_rig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "worker/library/ps/server/server_internal.h"

static uint32_t slot_of(const struct rig *rig, uint32_t index)
{
    return ps_job_first_slot(&rig->ps_job, ROLE_SERVER) + index;
}

static void tell(struct rig *rig, struct directory *directory)
{
    struct task_member members[RIG_SERVERS];
    struct task_members all = {
        .generation = rig->generation, .members = members, .member_count = rig->ps_job.servers};
    memcpy(all.key, rig->key, sizeof all.key);
    for (uint32_t i = 0; i < rig->ps_job.servers; i++) {
        bool here = rig->incarnations[i] > 0;
        members[i] = (struct task_member){
            .slot = slot_of(rig, i),
            .incarnation = rig->incarnations[i],
            .attempts = rig->attempts[i],
            .here = here,
            .backed = rig->backed[i],
            .address = !here                      ? ""
                       : rig->given[i][0] != '\0' ? rig->given[i]
                                                  : rig->addresses[i],
        };
    }
    if (directory != NULL) {
        directory_update(directory, &all);
    }
}

static void tell_all(struct rig *rig)
{
    for (uint32_t i = 0; !rig->disconnected && i < rig->ps_job.servers; i++) {
        tell(rig, rig->directories[i]);
    }
    if (!rig->disconnected) {
        tell(rig, rig->directory);
    }
}

void rig_send_members(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    tell_all(rig);
    pthread_mutex_unlock(&rig->lock);
}

/* As the coordinator: messages of a lost task are ignored. */
static void send_backed(void *user, const struct task_backed *backed)
{
    const struct rig_reporter *voice = user;
    struct rig *rig = voice->rig;
    pthread_mutex_lock(&rig->lock);
    uint64_t behind = rig->incarnations[(voice->index + 1) % rig->ps_job.servers];
    if (!rig->disconnected && rig->incarnations[voice->index] == voice->incarnation &&
        backed->number > rig->backed[voice->index].number &&
        (backed->by == 0 || backed->by == behind)) {
        rig->backed[voice->index] = *backed;
        tell_all(rig);
    }
    pthread_mutex_unlock(&rig->lock);
}

struct directory *rig_directory(struct rig *rig, uint32_t slot, uint64_t incarnation)
{
    struct cadre_error error = {0};
    const struct directory_self self = {
        .ps_job = rig->ps_job, .slot = slot, .incarnation = incarnation};
    struct directory *directory = NULL;
    assert_ok(directory_new(&self, &directory, &error), &error);
    tell(rig, directory);
    return directory;
}

struct link_terms rig_terms(const struct rig *rig, uint32_t slot)
{
    struct cadre_error error = {0};
    struct link_terms terms = {
        .generation = rig->generation, .slot = slot, .incarnation = 1, .ps_job = rig->ps_job};
    memcpy(terms.key, rig->key, sizeof terms.key);
    assert_ok(link_program_digest(terms.program, &error), &error);
    return terms;
}

static void open_rig(struct rig *rig, uint32_t servers, uint32_t threads, bool backups)
{
    *rig = (struct rig){
        .ps_job = {.workers = 2, .servers = servers, .backups = backups},
        .generation = {.number = 3, .nonce = 17},
        .threads = threads,
    };
    memset(rig->key, 0x5a, sizeof rig->key);
    pthread_mutex_init(&rig->lock, NULL);
    rig->directory = rig_directory(rig, 1, 1);
    rig->client = rig_client(rig, RIG_PATIENCE_US);
}

void rig_open(struct rig *rig, uint32_t servers, uint32_t threads)
{
    open_rig(rig, servers, threads, false);
}

void rig_open_backed(struct rig *rig, uint32_t servers, uint32_t threads)
{
    open_rig(rig, servers, threads, true);
}

void rig_close(struct rig *rig)
{
    client_close(rig->client);
    for (uint32_t i = 0; i < rig->ps_job.servers; i++) {
        rig_stop(rig, i);
    }
    directory_free(rig->directory);
    while (rig->reporters != NULL) {
        struct rig_reporter *before = rig->reporters->before;
        free(rig->reporters);
        rig->reporters = before;
    }
    pthread_mutex_destroy(&rig->lock);
}

void rig_start(struct rig *rig, uint32_t index, int memory_fd)
{
    static uint64_t incarnation = 0;
    struct cadre_error error = {0};
    struct link_listener *listener = NULL;
    assert_ok(
        link_listener_open("127.0.0.1", NULL, &listener, rig->addresses[index], &error), &error);
    pthread_mutex_lock(&rig->lock);
    rig->incarnations[index] = ++incarnation;
    rig->attempts[index]++;
    rig->backed[index].number = 0;
    struct rig_reporter *voice = malloc(sizeof *voice);
    assert_non_null(voice);
    *voice = (struct rig_reporter){rig->reporters, rig, index, incarnation};
    rig->reporters = voice;
    rig->directories[index] = rig_directory(rig, slot_of(rig, index), rig->incarnations[index]);
    pthread_mutex_unlock(&rig->lock);
    const struct server_options options = {
        .index = index,
        .memory_fd = memory_fd,
        .threads = rig->threads,
        .listener = listener,
        .directory = rig->directories[index],
        .send_backed = send_backed,
        .user = voice,
    };
    assert_ok(server_start(&options, &rig->servers[index], &error), &error);
    rig_send_members(rig);
}

void rig_stop(struct rig *rig, uint32_t index)
{
    server_stop(rig->servers[index]);
    pthread_mutex_lock(&rig->lock);
    directory_free(rig->directories[index]);
    rig->servers[index] = NULL;
    rig->directories[index] = NULL;
    rig->incarnations[index] = 0;
    tell_all(rig);
    pthread_mutex_unlock(&rig->lock);
}

void rig_partition(struct rig *rig, uint32_t index, struct rig_partitioned *ret_partitioned)
{
    pthread_mutex_lock(&rig->lock);
    *ret_partitioned = (struct rig_partitioned){
        .server = rig->servers[index], .directory = rig->directories[index]};
    rig->servers[index] = NULL;
    rig->directories[index] = NULL;
    rig->incarnations[index] = 0;
    tell_all(rig);
    pthread_mutex_unlock(&rig->lock);
}

void rig_end_partitioned(struct rig_partitioned *partitioned)
{
    server_stop(partitioned->server);
    directory_free(partitioned->directory);
}

void rig_disconnect(struct rig *rig, bool disconnected)
{
    pthread_mutex_lock(&rig->lock);
    rig->disconnected = disconnected;
    tell_all(rig);
    pthread_mutex_unlock(&rig->lock);
}

static bool is_backed(void *data)
{
    struct rig *rig = data;
    bool all = true;
    pthread_mutex_lock(&rig->lock);
    for (uint32_t i = 0; i < rig->ps_job.servers; i++) {
        uint64_t behind = rig->incarnations[(i + 1) % rig->ps_job.servers];
        all = all && rig->servers[i] != NULL && behind != 0 && rig->backed[i].by == behind &&
              backup_in_sync(rig->servers[i]->backup);
    }
    pthread_mutex_unlock(&rig->lock);
    return all;
}

void rig_await_backed(struct rig *rig)
{
    assert_true(test_wait(is_backed, rig, RIG_PATIENCE_US));
}

struct client *rig_client(struct rig *rig, uint64_t wait_timeout_us)
{
    return rig_client_of(rig->directory, wait_timeout_us);
}

struct client *rig_client_of(struct directory *directory, uint64_t wait_timeout_us)
{
    struct cadre_error error = {0};
    struct client *client = NULL;
    struct client_options options = {.directory = directory, .wait_timeout_us = wait_timeout_us};
    assert_ok(link_program_digest(options.program, &error), &error);
    assert_ok(client_open(&options, &client, &error), &error);
    return client;
}

struct store_spec rig_spec(const char *name, uint64_t rows, uint64_t row_elements)
{
    struct store_spec spec = {
        .dtype = CADRE_F32,
        .rows = rows,
        .row_elements = row_elements,
    };
    snprintf(spec.name, sizeof spec.name, "%s", name);
    return spec;
}

uint32_t rig_create_with(struct rig *rig, uint32_t server, const struct store_spec *spec,
    const struct optimizer_rule *rule)
{
    struct request request = {.kind = REQUEST_CREATE, .server = server, .spec = spec};
    rig_call(rig, &request);
    struct request train = {
        .kind = REQUEST_TRAIN, .server = server, .shard = request.ret_shard, .rule = rule};
    rig_call(rig, &train);
    return request.ret_shard;
}

uint32_t rig_create(struct rig *rig, uint32_t server, const struct store_spec *spec)
{
    const struct optimizer_rule rule = {.kind = OPTIMIZER_SGD, .rate = 1};
    return rig_create_with(rig, server, spec, &rule);
}

void rig_call(struct rig *rig, struct request *request)
{
    struct cadre_error error = {0};
    assert_ok(client_call(rig->client, request, 1, 0, &error), &error);
    assert_int_equal(request->code, CADRE_OK);
}

void rig_send_all(struct link *link, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        ssize_t sent = send(link_fd(link), at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd wait = {.fd = link_fd(link), .events = POLLOUT};
        assert_true(sent > 0 || poll(&wait, 1, (int)(RIG_PATIENCE_US / CADRE_US_PER_MS)) == 1);
        at += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
}
