/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/format/manifest_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/device/memory_hash.h"

#define DIGITS 16

void manifest_hashes_clear(struct manifest_hashes *hashes)
{
    for (size_t i = 0; i < hashes->count; i++) {
        free(hashes->list[i].name);
    }
    free(hashes->list);
    *hashes = (struct manifest_hashes){0};
}

json_t *manifest_hash_digits(uint64_t hash)
{
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    return json_string(digits);
}

static bool read_digits(const json_t *value, uint64_t *ret_hash)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS) {
        return false;
    }
    *ret_hash = strtoull(text, NULL, 16);
    return true;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for the hashes of a manifest");
}

cadre_status manifest_read_hashes(
    const json_t *root, struct manifest_hashes *ret_hashes, struct cadre_error *error)
{
    json_t *all = json_object_get(root, "hashes");
    const char *name;
    json_t *value;
    *ret_hashes = (struct manifest_hashes){0};
    const char *how = json_string_value(json_object_get(root, "hash"));
    if (!json_is_object(all) || how == NULL || strcmp(how, HASH_NAME) != 0) {
        return CADRE_OK;
    }
    ret_hashes->list = calloc(json_object_size(all) + 1, sizeof *ret_hashes->list);
    if (ret_hashes->list == NULL) {
        return no_memory(error);
    }
    json_object_foreach(all, name, value)
    {
        struct manifest_hash *hash = &ret_hashes->list[ret_hashes->count];
        if (!read_digits(value, &hash->value)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "this is not a manifest of a checkpoint that can be read here: the hash of "
                "'%.128s' is not %d hexadecimal digits",
                name, DIGITS);
        }
        hash->name = strdup(name);
        if (hash->name == NULL) {
            return no_memory(error);
        }
        ret_hashes->count++;
    }
    return CADRE_OK;
}

bool manifest_hashes_find(
    const struct manifest_hashes *hashes, const char *name, uint64_t *ret_hash)
{
    for (size_t i = 0; i < hashes->count; i++) {
        if (strcmp(hashes->list[i].name, name) == 0) {
            *ret_hash = hashes->list[i].value;
            return true;
        }
    }
    return false;
}
