/* SPDX-License-Identifier: Apache-2.0
 * What a FileDescriptorSet holds, by name: the files with what they import, and each name that they
 * define. Private to common/rpc. */
#ifndef CADRE_RPC_REFLECTION_INDEX_H
#define CADRE_RPC_REFLECTION_INDEX_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFLECTION_FILES_MAX 64
#define REFLECTION_NAME_MAX  255

enum symbol_kind { SYMBOL_OTHER, SYMBOL_MESSAGE, SYMBOL_SERVICE };

struct symbol {
    char *name; /* "cadre.v1.JobSpec.name" */
    uint32_t file;
    enum symbol_kind kind;
};

struct described_file {
    const uint8_t *bytes; /* the serialized FileDescriptorProto, in the set */
    size_t size;
    const uint8_t *name;
    size_t name_size;
    uint64_t imports; /* bit N: file N, directly or not */
};

struct reflection_index {
    struct described_file files[REFLECTION_FILES_MAX];
    size_t file_count;
    struct symbol *symbols; /* by name */
    size_t symbol_count, symbol_room;
    const char *services[REFLECTION_FILES_MAX]; /* in the order of the files */
    size_t service_count;
};

/* INVALID_ARGUMENT: `set` is no FileDescriptorSet, or not one with each file after its imports. The
 * index can be freed in any case. */
cadre_status reflection_index_fill(
    struct reflection_index *index, const void *set, size_t size, struct cadre_error *error);
/* Frees what it holds, not the set. */
void reflection_index_free(struct reflection_index *index);

/* The file of that name, not terminated; NULL: there is none. */
const struct described_file *reflection_file(
    const struct reflection_index *index, const void *name, size_t size);
/* The symbol of that name, a leading dot left out; NULL: there is none. */
const struct symbol *reflection_symbol(
    const struct reflection_index *index, const void *name, size_t size);

#endif
