/* SPDX-License-Identifier: Apache-2.0
 * What each task gives to a state, made known to all; and the one error of all when a task has
 * failed. plain_save.c calls it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain_state.h"

/* What all tasks learn of one in the first exchange. */
struct head {
    uint32_t rows;
    int32_t code;
    char text[LIMIT_TEXT_BYTES];
};

cadre_status plain_gather(struct plain *plain, const void *own, size_t bytes, const size_t *sizes,
    void *into, const char *what, struct cadre_error *error)
{
    const struct mesh_note note = {.key = collective_key_text(0, what), .text = what};
    cadre_status status =
        plain->all.mesh->ops->all_gather(plain->all.mesh, 0, own, bytes, sizes, into, &note, error);
    return plain_end_collective(plain, status, error);
}

/* The first failure is that of the lowest rank. */
static cadre_status first_failure(
    const struct head *heads, uint32_t count, struct cadre_error *error)
{
    for (uint32_t rank = 0; rank < count; rank++) {
        if (heads[rank].code != CADRE_OK) {
            return cadre_error_set(error, (cadre_status)heads[rank].code, "task %u: %.*s", rank,
                (int)sizeof heads[rank].text - 1, heads[rank].text);
        }
    }
    return CADRE_OK;
}

/* --- the first exchange --- */

static cadre_status gather_heads(struct plain *plain, uint32_t rows,
    const struct cadre_error *failure, struct head **ret_heads, struct cadre_error *error)
{
    struct head own = {.rows = rows, .code = (int32_t)failure->code};
    uint32_t count = plain->roster.member_count;
    *ret_heads = calloc(count, sizeof **ret_heads);
    if (*ret_heads == NULL) { /* the others wait for this task, so it ends their generation */
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u tasks", count);
        return plain_end_collective(plain, error->code, error);
    }
    if (failure->code != CADRE_OK) {
        snprintf(own.text, sizeof own.text, "%s", failure->text);
    }
    CADRE_TRY(
        plain_gather(plain, &own, sizeof own, NULL, *ret_heads, "a state is to be saved", error));
    return first_failure(*ret_heads, count, error);
}

cadre_status plain_agree(
    struct plain *plain, const struct cadre_error *failure, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct head *heads = NULL;
    return gather_heads(plain, 0, failure, &heads, error);
}

/* --- the tables --- */

static cadre_status own_rows(
    const struct cadre_plain_state *own, struct plain_row **ret_rows, struct cadre_error *error)
{
    uint32_t count = own != NULL ? own->part_count : 0;
    *ret_rows = calloc((size_t)count + 1, sizeof **ret_rows);
    if (*ret_rows == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u parts", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy((*ret_rows)[i].name, own->pieces[i].name, sizeof(*ret_rows)[i].name);
        (*ret_rows)[i].bytes = own->pieces[i].bytes;
    }
    return CADRE_OK;
}

static cadre_status add_up(struct plain_tables *tables, struct cadre_error *error)
{
    for (size_t i = 0; i < tables->row_count; i++) {
        const struct plain_row *row = &tables->rows[i];
        if (row->bytes > SIZE_MAX / 4 - tables->bytes || row->bytes > INT64_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the parts of a state have more bytes together than a file can have");
        }
        tables->bytes += row->bytes;
    }
    return CADRE_OK;
}

/* Which parts there are is known to be sound: each task has checked its own. */
static cadre_status gather_rows(struct plain *plain, const struct head *heads,
    const struct plain_row *own, struct plain_tables *tables, struct cadre_error *error)
{
    uint32_t count = plain->roster.member_count;
    CADRE_FREE_AT_EXIT size_t *sizes = calloc(count, sizeof *sizes);
    tables->counts = calloc(count, sizeof *tables->counts);
    struct cadre_error failure = {0};
    for (uint32_t rank = 0; sizes != NULL && tables->counts != NULL && rank < count; rank++) {
        CADRE_ASSERT(heads[rank].rows <= PLAIN_PIECES_MAX);
        tables->counts[rank] = heads[rank].rows;
        sizes[rank] = heads[rank].rows * sizeof *tables->rows;
        tables->row_count += heads[rank].rows;
    }
    tables->rows = calloc(tables->row_count + 1, sizeof *tables->rows);
    if (sizes == NULL || tables->counts == NULL || tables->rows == NULL) {
        cadre_error_set(&failure, CADRE_RESOURCE_EXHAUSTED, "no memory for the parts of a state");
    }
    CADRE_TRY(plain_agree(plain, &failure, error));
    if (tables->row_count == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(plain_gather(plain, own, sizes[plain->roster.rank], sizes, tables->rows,
        "the parts of a state are listed", error));
    return add_up(tables, error);
}

cadre_status plain_tables_gather(struct plain *plain, const struct cadre_plain_state *own,
    const struct cadre_error *failure, struct plain_tables *ret_tables, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct head *heads = NULL;
    CADRE_FREE_AT_EXIT struct plain_row *rows = NULL;
    struct cadre_error before = *failure;
    *ret_tables = (struct plain_tables){0};
    if (before.code == CADRE_OK) {
        (void)own_rows(own, &rows, &before);
    }
    CADRE_TRY(gather_heads(plain, own != NULL ? own->part_count : 0, &before, &heads, error));
    return gather_rows(plain, heads, rows, ret_tables, error);
}

void plain_tables_clear(struct plain_tables *tables)
{
    free(tables->counts);
    free(tables->rows);
    *tables = (struct plain_tables){0};
}
