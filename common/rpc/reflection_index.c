/* SPDX-License-Identifier: Apache-2.0
 * From descriptors to names. The field numbers are those of google/protobuf/descriptor.proto. */
#include "common/rpc/reflection_index.h"

#include "common/rpc/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/support/alloc.h>

/* Messages in messages; protoc writes no more than a few. */
#define DEPTH_MAX 16

/* One kind of declaration: where its name is, what it contains. */
struct scope {
    enum symbol_kind kind;
    bool contents_are_siblings; /* the values of an enum are named beside it */
    const struct member *members;
};

struct member {
    uint32_t id;
    const struct scope *scope;
};

static const struct scope leaf = {.kind = SYMBOL_OTHER};
static const struct scope enumeration = {
    .contents_are_siblings = true, .members = (const struct member[]){{2, &leaf}, {0, NULL}}};
static const struct scope service = {
    .kind = SYMBOL_SERVICE, .members = (const struct member[]){{2, &leaf}, {0, NULL}}};
static const struct scope message;
static const struct member message_members[] = {
    {2, &leaf}, {3, &message}, {4, &enumeration}, {6, &leaf}, {8, &leaf}, {0, NULL}};
static const struct scope message = {.kind = SYMBOL_MESSAGE, .members = message_members};
static const struct member file_members[] = {
    {4, &message}, {5, &enumeration}, {6, &service}, {7, &leaf}, {0, NULL}};

static bool find_bytes(const struct field *from, uint32_t id, struct field *ret_field)
{
    struct field_reader reader = field_reader(from->bytes, from->size);
    while (field_next(&reader, ret_field)) {
        if (ret_field->id == id && ret_field->kind == FIELD_BYTES) {
            return true;
        }
    }
    return false;
}

static const char *add_symbol(struct reflection_index *index, const char *prefix,
    const struct field *name, enum symbol_kind kind)
{
    char full[REFLECTION_NAME_MAX + 1];
    int length = snprintf(full, sizeof full, "%s%s%.*s", prefix, prefix[0] != '\0' ? "." : "",
        name->size < sizeof full ? (int)name->size : (int)sizeof full, (const char *)name->bytes);
    if (length < 0 || (size_t)length >= sizeof full) {
        return NULL;
    }
    if (index->symbol_count == index->symbol_room) {
        index->symbol_room = index->symbol_room != 0 ? 2 * index->symbol_room : 256;
        index->symbols = gpr_realloc(index->symbols, index->symbol_room * sizeof *index->symbols);
    }
    char *kept = gpr_malloc((size_t)length + 1);
    memcpy(kept, full, (size_t)length + 1);
    index->symbols[index->symbol_count++] =
        (struct symbol){.name = kept, .file = (uint32_t)index->file_count, .kind = kind};
    if (kind == SYMBOL_SERVICE && index->service_count < REFLECTION_FILES_MAX) {
        index->services[index->service_count++] = kept;
    }
    return kept;
}

static bool add_members(struct reflection_index *index, const char *prefix,
    const struct member *members, const struct field *from, int depth);

/* A declaration and what is in it; false: it is none. */
static bool add_declaration(struct reflection_index *index, const char *prefix,
    const struct scope *scope, const struct field *from, int depth)
{
    struct field name;
    if (depth == DEPTH_MAX || !find_bytes(from, 1, &name)) {
        return false;
    }
    const char *full = add_symbol(index, prefix, &name, scope->kind);
    if (full == NULL || scope->members == NULL) {
        return full != NULL;
    }
    return add_members(
        index, scope->contents_are_siblings ? prefix : full, scope->members, from, depth + 1);
}

static bool add_members(struct reflection_index *index, const char *prefix,
    const struct member *members, const struct field *from, int depth)
{
    struct field_reader reader = field_reader(from->bytes, from->size);
    struct field field;
    while (field_next(&reader, &field)) {
        const struct member *member = members;
        while (member->scope != NULL && member->id != field.id) {
            member++;
        }
        if (member->scope != NULL && field.kind == FIELD_BYTES &&
            !add_declaration(index, prefix, member->scope, &field, depth)) {
            return false;
        }
    }
    return !reader.broken;
}

/* A file's imports must be in the index before it. */
static bool add_imports(struct reflection_index *index, struct described_file *file)
{
    struct field_reader reader = field_reader(file->bytes, file->size);
    struct field field;
    while (field_next(&reader, &field)) {
        if (field.id != 3 || field.kind != FIELD_BYTES) {
            continue;
        }
        const struct described_file *other = reflection_file(index, field.bytes, field.size);
        if (other == NULL) {
            return false;
        }
        file->imports |= other->imports | (uint64_t)1 << (other - index->files);
    }
    return !reader.broken;
}

static bool add_file(struct reflection_index *index, const struct field *from)
{
    struct field name;
    struct field package;
    char prefix[REFLECTION_NAME_MAX + 1] = "";
    if (index->file_count == REFLECTION_FILES_MAX || !find_bytes(from, 1, &name)) {
        return false;
    }
    struct described_file *file = &index->files[index->file_count];
    *file = (struct described_file){
        .bytes = from->bytes, .size = from->size, .name = name.bytes, .name_size = name.size};
    if (find_bytes(from, 2, &package)) {
        if (package.size >= sizeof prefix) {
            return false;
        }
        memcpy(prefix, package.bytes, package.size);
        prefix[package.size] = '\0';
    }
    if (!add_imports(index, file) || !add_members(index, prefix, file_members, from, 0)) {
        return false;
    }
    index->file_count++;
    return true;
}

static int compare_symbols(const void *a, const void *b)
{
    return strcmp(((const struct symbol *)a)->name, ((const struct symbol *)b)->name);
}

cadre_status reflection_index_fill(
    struct reflection_index *index, const void *set, size_t size, struct cadre_error *error)
{
    struct field_reader reader = field_reader(set, size);
    struct field field;
    while (field_next(&reader, &field)) {
        if (field.id != 1 || field.kind != FIELD_BYTES || !add_file(index, &field)) {
            reader.broken = true;
        }
    }
    if (reader.broken) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "reflection: file %zu of the descriptor set is damaged, or comes before one that it "
            "imports",
            index->file_count);
    }
    if (index->symbol_count > 0) {
        qsort(index->symbols, index->symbol_count, sizeof *index->symbols, compare_symbols);
    }
    return CADRE_OK;
}

void reflection_index_free(struct reflection_index *index)
{
    for (size_t i = 0; i < index->symbol_count; i++) {
        gpr_free(index->symbols[i].name);
    }
    gpr_free(index->symbols);
    *index = (struct reflection_index){0};
}

/* ---- looking up ---- */

const struct described_file *reflection_file(
    const struct reflection_index *index, const void *name, size_t size)
{
    for (size_t i = 0; i < index->file_count; i++) {
        const struct described_file *file = &index->files[i];
        if (file->name_size == size && memcmp(file->name, name, size) == 0) {
            return file;
        }
    }
    return NULL;
}

const struct symbol *reflection_symbol(
    const struct reflection_index *index, const void *name, size_t size)
{
    const char *from = name;
    char text[REFLECTION_NAME_MAX + 1];
    if (size > 0 && from[0] == '.') {
        from++;
        size--;
    }
    if (size > REFLECTION_NAME_MAX || memchr(from, '\0', size) != NULL ||
        index->symbol_count == 0) {
        return NULL;
    }
    memcpy(text, from, size);
    text[size] = '\0';
    const struct symbol wanted = {.name = text};
    return bsearch(
        &wanted, index->symbols, index->symbol_count, sizeof *index->symbols, compare_symbols);
}
