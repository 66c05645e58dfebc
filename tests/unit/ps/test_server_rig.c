/* SPDX-License-Identifier: Apache-2.0 */
#include "test_server_rig.h"

#include <stdio.h>
#include <string.h>

static uint32_t slot_of(const struct rig *rig, uint32_t index)
{
    return crew_first(&rig->crew, ROLE_SERVER) + index;
}

static void tell(struct rig *rig, struct directory *directory)
{
    struct task_member members[RIG_SERVERS];
    struct task_members all = {
        .generation = rig->generation, .members = members, .member_count = rig->crew.servers};
    memcpy(all.key, rig->key, sizeof all.key);
    for (uint32_t i = 0; i < rig->crew.servers; i++) {
        bool here = rig->incarnations[i] > 0;
        members[i] = (struct task_member){
            .slot = slot_of(rig, i),
            .incarnation = rig->incarnations[i],
            .lives = (uint32_t)rig->incarnations[i],
            .here = here,
            .address = !here                     ? ""
                       : rig->told[i][0] != '\0' ? rig->told[i]
                                                 : rig->addresses[i],
        };
    }
    if (directory != NULL) {
        directory_update(directory, &all);
    }
}

void rig_tell(struct rig *rig)
{
    tell(rig, rig->directory);
    for (uint32_t i = 0; i < rig->crew.servers; i++) {
        tell(rig, rig->directories[i]);
    }
}

struct directory *rig_directory(struct rig *rig, uint32_t slot, uint64_t incarnation)
{
    struct cadre_error error = {0};
    const struct directory_self self = {
        .crew = rig->crew, .slot = slot, .incarnation = incarnation};
    struct directory *directory = NULL;
    assert_ok(directory_new(&self, &directory, &error), &error);
    tell(rig, directory);
    return directory;
}

struct link_terms rig_terms(const struct rig *rig, uint32_t slot)
{
    struct cadre_error error = {0};
    struct link_terms terms = {
        .generation = rig->generation, .slot = slot, .incarnation = 1, .crew = rig->crew};
    memcpy(terms.key, rig->key, sizeof terms.key);
    assert_ok(link_program_digest(terms.program, &error), &error);
    return terms;
}

void rig_open(struct rig *rig, uint32_t servers, uint32_t threads)
{
    *rig = (struct rig){
        .crew = {.workers = 2, .servers = servers},
        .generation = {.number = 3, .nonce = 17},
        .threads = threads,
    };
    memset(rig->key, 0x5a, sizeof rig->key);
    rig->directory = rig_directory(rig, 1, 1);
    rig->client = rig_client(rig, RIG_PATIENCE_US);
}

void rig_close(struct rig *rig)
{
    client_close(rig->client);
    for (uint32_t i = 0; i < rig->crew.servers; i++) {
        rig_stop(rig, i);
    }
    directory_free(rig->directory);
}

void rig_start(struct rig *rig, uint32_t index, int memory_fd)
{
    static uint64_t incarnation = 0;
    struct cadre_error error = {0};
    struct link_listener *listener = NULL;
    assert_ok(link_listener_open("127.0.0.1", &listener, rig->addresses[index], &error), &error);
    rig->incarnations[index] = ++incarnation;
    rig->directories[index] = rig_directory(rig, slot_of(rig, index), rig->incarnations[index]);
    const struct server_options options = {
        .index = index,
        .memory_fd = memory_fd,
        .threads = rig->threads,
        .listener = listener,
        .directory = rig->directories[index],
    };
    assert_ok(server_start(&options, &rig->servers[index], &error), &error);
    rig_tell(rig);
}

void rig_stop(struct rig *rig, uint32_t index)
{
    server_stop(rig->servers[index]);
    directory_free(rig->directories[index]);
    rig->servers[index] = NULL;
    rig->directories[index] = NULL;
    rig->incarnations[index] = 0;
    rig_tell(rig);
}

struct client *rig_client(struct rig *rig, uint64_t patience_us)
{
    struct cadre_error error = {0};
    struct client *client = NULL;
    struct client_options options = {.directory = rig->directory, .patience_us = patience_us};
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
        .training = {.optimizer = STORE_SGD, .rate = 1},
    };
    snprintf(spec.name, sizeof spec.name, "%s", name);
    return spec;
}

uint32_t rig_create(struct rig *rig, uint32_t server, const struct store_spec *spec)
{
    struct request request = {.kind = REQUEST_CREATE, .server = server, .spec = spec};
    rig_call(rig, &request);
    return request.ret_shard;
}

void rig_call(struct rig *rig, struct request *request)
{
    struct cadre_error error = {0};
    assert_ok(client_call(rig->client, request, 1, 0, &error), &error);
    assert_int_equal(request->code, CADRE_OK);
}
