/* SPDX-License-Identifier: Apache-2.0
 * See neighbours.h: both sides, and the objects of this process between them. */
#include "worker/library/neighbours/neighbours.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/input/objects/object_neighbours.h"
#include "worker/library/neighbours/neighbour_server.h"

_Static_assert(
    NEIGHBOUR_SEGMENT_BYTES == OBJECT_SEGMENT_BYTES && NEIGHBOUR_PIECE_BYTES == OBJECT_BLOCK_BYTES,
    "what is asked for is what is fetched in one run");

/* Numbers that no mesh of the generation's key has (mesh_key_derive). */
#define KEY_LABEL UINT64_C(0x6e65696768626f72) /* "neighbor" */

struct neighbours {
    struct neighbour_server *server;
    struct neighbour_client *client;
};

/* An object without a version may be in another state at the other task. */
static bool neighbours_read(
    void *user, const struct object *object, uint64_t offset, void *const places[], size_t bytes)
{
    const struct neighbours *neighbours = user;
    struct neighbour_ask ask = {.size = object_bytes(object), .offset = offset, .count = bytes};
    snprintf(ask.path, sizeof ask.path, "%s", object_path(object));
    snprintf(ask.version, sizeof ask.version, "%s", object_version(object));
    return ask.version[0] != '\0' && neighbour_client_read(neighbours->client, &ask, places);
}

cadre_status neighbours_open(const char *host, const struct port_range *ports,
    struct neighbours **ret_neighbours, char ret_address[LIMIT_ADDRESS_BYTES],
    struct cadre_error *error)
{
    struct neighbours *neighbours = calloc(1, sizeof *neighbours);
    *ret_neighbours = NULL;
    if (neighbours == NULL || (neighbours->client = neighbour_client_open()) == NULL) {
        free(neighbours);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to ask other tasks for objects");
    }
    cadre_status status =
        neighbour_server_open(host, ports, &neighbours->server, ret_address, error);
    if (status != CADRE_OK) {
        neighbours_close(neighbours);
        return status;
    }
    *ret_neighbours = neighbours;
    return CADRE_OK;
}

/* The terms of both sides: a key of the generation's own, for this alone. */
static struct link_terms terms_of(
    struct generation generation, const uint8_t key[MESH_KEY_BYTES], uint64_t own)
{
    const uint64_t which[] = {KEY_LABEL, generation.number, generation.nonce};
    struct link_terms terms = {.generation = {.number = generation.number},
        .slot = (uint32_t)own,
        .incarnation = generation.number};
    mesh_key_derive(key, which, sizeof which / sizeof which[0], terms.key, &terms.generation.nonce);
    return terms;
}

static cadre_status set_members(struct neighbours *neighbours, const struct link_terms *terms,
    const struct neighbour_member members[], uint32_t count, uint64_t own,
    struct cadre_error *error)
{
    uint64_t *ids = calloc((size_t)count + 1, sizeof ids[0]);
    if (ids == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the tasks that are asked for objects");
    }
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = members[i].id;
    }
    /* Others may ask as soon as they know of it, so that comes first. */
    cadre_status status = neighbour_server_set(neighbours->server, terms, ids, count, own, error);
    free(ids);
    return status == CADRE_OK
               ? neighbour_client_set(neighbours->client, terms, members, count, own, error)
               : status;
}

cadre_status neighbours_set(struct neighbours *neighbours, struct generation generation,
    const uint8_t key[MESH_KEY_BYTES], const struct neighbour_member members[], uint32_t count,
    uint64_t own, struct cadre_error *error)
{
    _Static_assert(MESH_KEY_BYTES == LIMIT_JOB_KEY_BYTES, "one key for both");
    const struct link_terms terms = terms_of(generation, key, own);
    uint32_t asked = count >= 2 ? count : 0;
    cadre_status status = set_members(neighbours, &terms, members, asked, own, error);
    const struct object_neighbours source = {.read = neighbours_read, .user = neighbours};
    if (status == CADRE_OK && asked > 0 && !object_neighbours_on()) {
        object_neighbours_set(&source);
    }
    return status;
}

void neighbours_close(struct neighbours *neighbours)
{
    if (neighbours == NULL) {
        return;
    }
    neighbour_client_stop(neighbours->client);
    object_neighbours_set(NULL); /* waits for calls that are in progress */
    neighbour_server_close(neighbours->server);
    neighbour_client_close(neighbours->client);
    free(neighbours);
}
