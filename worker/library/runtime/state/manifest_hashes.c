/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/manifest_hashes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/state/state.h"

#define DIGITS 16

void manifest_hashes_clear(struct manifest_hashes *hashes)
{
    free(hashes->values);
    *hashes = (struct manifest_hashes){0};
}

json_t *manifest_hash_digits(uint64_t hash)
{
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    return json_string(digits);
}

static cadre_status read_one(
    const json_t *value, const char *name, uint64_t *ret_hash, struct cadre_error *error)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this is no manifest of a checkpoint that can be read here: the hash of '%.128s' is "
            "not %d hexadecimal digits",
            name, DIGITS);
    }
    *ret_hash = strtoull(text, NULL, 16);
    return CADRE_OK;
}

cadre_status manifest_read_hashes(const cadre_strategy *strategy, const json_t *root,
    struct manifest_hashes *ret_hashes, struct cadre_error *error)
{
    const json_t *all = json_object_get(root, "hashes");
    struct state_tensor tensor;
    uint32_t count = 0;
    *ret_hashes = (struct manifest_hashes){0};
    if (!json_is_object(all)) {
        return CADRE_OK;
    }
    while (state_tensor_at(strategy, count, &tensor)) {
        count++;
    }
    ret_hashes->values = calloc((size_t)count + 1, sizeof *ret_hashes->values);
    if (ret_hashes->values == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the hashes of %u tensors", count);
    }
    ret_hashes->count = count;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        const json_t *value = json_object_get(all, tensor.name);
        if (value != NULL) {
            CADRE_TRY(read_one(value, tensor.name, &ret_hashes->values[i], error));
        }
    }
    return CADRE_OK;
}
