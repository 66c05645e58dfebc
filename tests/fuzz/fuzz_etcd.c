/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as an answer of etcd; the first byte chooses to what. What is
 * accepted lies in the arena and is within the limits of etcd.h. */
#include <stdint.h>
#include <string.h>

#include "common/etcd/messages.h"
#include "common/pure/assert.h"

#define BUDGET_BYTES ((size_t)1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t read_bytes; /* so that each byte is read */

static void check_results(const struct etcd_answer *answer)
{
    for (size_t i = 0; i < answer->result_count; i++) {
        const struct etcd_result *result = &answer->results[i];
        for (size_t j = 0; j < result->pair_count; j++) {
            size_t length = strlen(result->pairs[j].key);
            CADRE_ASSERT(length > 0 && length < ETCD_KEY_BYTES);
            const struct etcd_bytes *value = &result->pairs[j].value;
            for (size_t at = 0; at < value->size; at++) {
                read_bytes += ((const uint8_t *)value->data)[at];
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct etcd_shape shape = {
        .counts = {2, 3}, .kinds = {{ETCD_GET, ETCD_GET}, {ETCD_PUT, ETCD_GET, ETCD_DELETE}}};
    static struct wire_arena *arena;
    struct cadre_error error;
    struct etcd_answer answer = {.status = CADRE_OK};
    struct etcd_notice notice;
    const char *token = NULL;
    if (arena == NULL) {
        arena = wire_arena_new(BUDGET_BYTES);
        CADRE_ASSERT(arena != NULL);
    }
    if (size == 0) {
        return 0;
    }
    const struct etcd_message message = {
        .data = data + 1, .size = size - 1, .prefix = "cadre", .arena = arena};
    switch (data[0] % 5) {
    case 0:
        if (etcd_unpack_range(&message, &answer, &error) == CADRE_OK) {
            check_results(&answer);
        }
        break;
    case 1:
        if (etcd_unpack_transaction(&message, &shape, &answer, &error) == CADRE_OK) {
            CADRE_ASSERT(answer.result_count == shape.counts[answer.succeeded]);
            check_results(&answer);
        }
        break;
    case 2:
        if (etcd_unpack_status(&message, &answer, &error) == CADRE_OK) {
            CADRE_ASSERT(strlen(answer.member->version) < ETCD_VERSION_BYTES);
        }
        break;
    case 3:
        if (etcd_unpack_login(&message, &token, &error) == CADRE_OK) {
            CADRE_ASSERT(token[0] != '\0');
        }
        break;
    default:
        (void)etcd_unpack_watch(&message, &notice, &error);
        break;
    }
    return 0;
}
