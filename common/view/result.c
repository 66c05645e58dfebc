/* SPDX-License-Identifier: Apache-2.0
 * Allocates results: a public struct, and all that it points to. Called by the files beside it and
 * by query.c of libcadre-client. */
#include "common/view/result.h"

#include <stdlib.h>

#include "common/pure/assert.h"

struct result {
    struct wire_arena *arena;
    void *arrays[RESULT_ARRAYS];
    _Alignas(max_align_t) unsigned char body[];
};

static struct result *result_of(void *body)
{
    return (struct result *)(void *)((char *)body - offsetof(struct result, body));
}

void *result_new(size_t bytes, struct wire_arena *arena)
{
    struct result *result = calloc(1, sizeof *result + bytes);
    if (result == NULL) {
        return NULL;
    }
    result->arena = arena;
    return result->body;
}

void *result_array(void *body, unsigned slot, size_t count, size_t item_bytes)
{
    struct result *result = result_of(body);
    CADRE_ASSERT(slot < RESULT_ARRAYS);
    CADRE_ASSERT(result->arrays[slot] == NULL);
    result->arrays[slot] = calloc(count + 1, item_bytes);
    return result->arrays[slot];
}

void cadre_result_release(void *body)
{
    if (body == NULL) {
        return;
    }
    struct result *result = result_of(body);
    for (size_t i = 0; i < RESULT_ARRAYS; i++) {
        free(result->arrays[i]);
    }
    wire_arena_free(result->arena);
    free(result);
}

void result_discard(void *body)
{
    if (body != NULL) {
        result_of(body)->arena = NULL;
        cadre_result_release(body);
    }
}
