/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/directory_shards.h"

#include <stdlib.h>
#include <string.h>

/* Copies the text to the end of the used memory. */
static const char *directory_shards_put(char **end, const char *text)
{
    size_t bytes = strlen(text) + 1;
    const char *start = memcpy(*end, text, bytes);
    *end += bytes;
    return start;
}

/* A copy in one block of memory that begins with the files, so that freeing those frees it. */
static bool directory_shards_copy(const struct shards_report *value, struct shards_report *ret_copy)
{
    size_t bytes = (value->shown_count + 1) * sizeof(struct shard_file);
    size_t texts = strlen(value->name) + strlen(value->policy) + 2;
    for (size_t i = 0; i < value->shown_count; i++) {
        texts += strlen(value->shown[i].name) + 1;
    }
    struct shard_file *files = malloc(bytes + texts);
    if (files == NULL) {
        return false;
    }
    char *end = (char *)files + bytes;
    *ret_copy = *value;
    ret_copy->shown = files;
    ret_copy->name = directory_shards_put(&end, value->name);
    ret_copy->policy = directory_shards_put(&end, value->policy);
    for (size_t i = 0; i < value->shown_count; i++) {
        files[i] = value->shown[i];
        files[i].name = directory_shards_put(&end, value->shown[i].name);
    }
    return true;
}

static void directory_shards_drop(struct shards_report *dataset)
{
    free((void *)(uintptr_t)dataset->shown);
}

void directory_shards_set(struct directory_shards *shards, const struct shards_report *value)
{
    struct shards_report fresh;
    size_t at = 0;
    while (at < shards->count && strcmp(shards->datasets[at].name, value->name) != 0) {
        at++;
    }
    if (at == LIMIT_STREAMS || !directory_shards_copy(value, &fresh)) {
        return;
    }
    if (at == shards->count) {
        struct shards_report *grown =
            realloc(shards->datasets, (at + 1) * sizeof shards->datasets[0]);
        if (grown == NULL) {
            directory_shards_drop(&fresh);
            return;
        }
        shards->datasets = grown;
        shards->count++;
    } else {
        directory_shards_drop(&shards->datasets[at]);
    }
    shards->datasets[at] = fresh;
}

void directory_shards_free(struct directory_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++) {
        directory_shards_drop(&shards->datasets[i]);
    }
    free(shards->datasets);
    *shards = (struct directory_shards){0};
}
