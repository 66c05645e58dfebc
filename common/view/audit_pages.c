/* SPDX-License-Identifier: Apache-2.0
 * Joins the pages of a proof to one result as of the first page; verify.c adds each page. */
#include "common/view/verification.h"

#include <inttypes.h>
#include <stdlib.h>

#define AUDIT_RESTARTS_MAX 16

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the answer");
}

/* By (stream, epoch). */
static int audit_pages_compare(
    uint32_t stream, uint64_t epoch, uint32_t other_stream, uint64_t other_epoch)
{
    if (stream != other_stream) {
        return stream < other_stream ? -1 : 1;
    }
    return epoch < other_epoch ? -1 : epoch > other_epoch;
}

static int compare_epochs(const void *a, const void *b)
{
    const struct verify_epoch *one = a;
    const struct verify_epoch *other = b;
    return audit_pages_compare(one->stream, one->cursor.epoch, other->stream, other->cursor.epoch);
}

static int compare_verified(const void *a, const void *b)
{
    uint64_t one = ((const struct verified *)a)->position;
    uint64_t other = ((const struct verified *)b)->position;
    return one < other ? -1 : one > other;
}

/* ---- room ---- */

/* Room for `extra` more of `count` items; NULL: out of memory, and they are as they were. */
static void *with_room(void *items, size_t item_bytes, size_t count, size_t extra, size_t *capacity)
{
    if (items != NULL && count + extra <= *capacity) {
        return items;
    }
    size_t wanted = count + extra > 2 * *capacity ? count + extra : 2 * *capacity;
    void *grown = realloc(items, (wanted + 1) * item_bytes);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}

static cadre_status make_room(
    struct audit_pages *pages, const struct verify_response *page, struct cadre_error *error)
{
    struct verify_generation *generations = with_room(pages->generations, sizeof *generations,
        pages->all.generation_count, page->generation_count, &pages->generation_capacity);
    pages->generations = generations != NULL ? generations : pages->generations;
    struct verify_epoch *epochs = with_room(pages->epochs, sizeof *epochs, pages->all.epoch_count,
        page->epoch_count, &pages->epoch_capacity);
    pages->epochs = epochs != NULL ? epochs : pages->epochs;
    struct verified *verified = with_room(pages->verified, sizeof *verified,
        pages->all.verified_count, page->verified_count, &pages->verified_capacity);
    pages->verified = verified != NULL ? verified : pages->verified;
    bool room = generations != NULL && epochs != NULL && verified != NULL;
    return room ? CADRE_OK : no_memory(error);
}

/* ---- the first page ---- */

/* Its epochs are in order: the last one of a stream is that stream's newest. */
static void note_streams(struct audit_pages *pages, const struct verify_response *page)
{
    pages->stream_count = 0;
    for (size_t i = 0; i < page->epoch_count; i++) {
        const struct verify_epoch *epoch = &page->epochs[i];
        bool same = pages->stream_count > 0 &&
                    pages->streams[pages->stream_count - 1].newest.stream == epoch->stream;
        if (!same && pages->stream_count == LIMIT_STREAMS) {
            return;
        }
        if (!same) {
            bool is_on_page = !page->more || epoch->stream <= page->next.stream;
            pages->streams[pages->stream_count++].oldest = is_on_page ? epoch->cursor.epoch : 0;
        }
        pages->streams[pages->stream_count - 1].newest = *epoch;
    }
}

static void merge_first_page(struct audit_pages *pages, const struct verify_response *page)
{
    pages->begun = true;
    pages->all = *page;
    pages->all.more = false;
    note_streams(pages, page);
    pages->generation_max = page->job.generation;
    for (size_t i = 0; i < page->generation_count; i++) {
        const struct verify_generation *generation = &page->generations[i];
        uint64_t number = generation->generation.number;
        pages->generations[i] = *generation;
        pages->generation_max = number > pages->generation_max ? number : pages->generation_max;
    }
    for (size_t i = 0; i < page->epoch_count; i++) {
        pages->epochs[i] = page->epochs[i];
    }
    for (size_t i = 0; i < page->verified_count; i++) {
        pages->verified[i] = page->verified[i];
        pages->newest = page->verified[i];
    }
}

/* ---- those that follow ---- */

/* As the first page describes it; NULL: it has begun since. */
static const struct audit_stream *stream_of(const struct audit_pages *pages, uint32_t stream)
{
    for (size_t i = 0; i < pages->stream_count; i++) {
        if (pages->streams[i].newest.stream == stream) {
            return &pages->streams[i];
        }
    }
    return NULL;
}

static void merge_epochs(struct audit_pages *pages, const struct verify_response *page)
{
    for (size_t i = 0; i < page->epoch_count; i++) {
        const struct verify_epoch *epoch = &page->epochs[i];
        const struct audit_stream *stream = stream_of(pages, epoch->stream);
        if (stream != NULL && epoch->cursor.epoch < stream->newest.cursor.epoch) {
            struct verify_epoch *taken = &pages->epochs[pages->all.epoch_count++];
            *taken = stream->newest; /* what is the same of all, with its name */
            taken->cursor = epoch->cursor;
            taken->consumption = epoch->consumption;
        }
    }
}

static void merge_verified(struct audit_pages *pages, const struct verify_response *page)
{
    for (size_t i = 0; i < page->verified_count; i++) {
        if (page->verified[i].position < pages->newest.position) {
            pages->verified[pages->all.verified_count++] = page->verified[i];
        }
    }
}

/* False: the job began again at a checkpoint since the first page. */
static bool merge_generations(struct audit_pages *pages, const struct verify_response *page)
{
    for (size_t i = 0; i < page->generation_count; i++) {
        const struct verify_generation *generation = &page->generations[i];
        if (generation->generation.number <= pages->generation_max) {
            pages->generations[pages->all.generation_count++] = *generation;
        } else if (generation->restarted) {
            return false;
        }
    }
    return true;
}

static cadre_status restart_pages(struct audit_pages *pages, struct cadre_error *error)
{
    if (++pages->restarts > AUDIT_RESTARTS_MAX) {
        return cadre_error_set(error, CADRE_ABORTED,
            "job %" PRIu64 " began again at a checkpoint each time while its proof was read: ask "
            "again when it goes on",
            pages->all.job.id.n);
    }
    pages->begun = false;
    pages->newest = (struct verified){0};
    pages->next = (struct verify_from){0};
    pages->all = (struct verify_response){.job.id = pages->all.job.id};
    return CADRE_OK;
}

/* ---- all ---- */

static bool is_after(const struct verify_from *next, const struct verify_from *from)
{
    int epochs = audit_pages_compare(next->stream, next->epoch, from->stream, from->epoch);
    return epochs >= 0 && next->generation >= from->generation &&
           next->position >= from->position &&
           (epochs > 0 || next->generation > from->generation || next->position > from->position);
}

/* What may still be missing: generations, an epoch that is older than its stream's newest, or
 * a verified position before the newest. */
static bool is_missing(const struct audit_pages *pages, const struct verify_from *next)
{
    bool missing =
        next->generation <= pages->generation_max || next->position < pages->newest.position;
    for (size_t i = 0; i < pages->stream_count; i++) {
        const struct verify_epoch *newest = &pages->streams[i].newest;
        uint64_t from = newest->stream == next->stream ? next->epoch : 0;
        missing = missing || (newest->stream >= next->stream && newest->cursor.epoch > from);
    }
    return missing;
}

static cadre_status merge_page(
    struct audit_pages *pages, const struct verify_response *page, struct cadre_error *error)
{
    CADRE_TRY(make_room(pages, page, error));
    if (!pages->begun) {
        merge_first_page(pages, page);
    } else if (merge_generations(pages, page)) {
        merge_epochs(pages, page);
        merge_verified(pages, page);
        pages->followed = true;
    } else {
        return restart_pages(pages, error);
    }
    bool pointed = is_after(&page->next, &pages->next);
    pages->all.more = page->more && !pointed; /* a coordinator of before there were pages */
    pages->whole = !page->more || !pointed || !is_missing(pages, &page->next);
    pages->next = page->next;
    return CADRE_OK;
}

cadre_status audit_pages_add(
    struct audit_pages *pages, const void *data, size_t length, struct cadre_error *error)
{
    struct verify_response page;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (arena == NULL) {
        return no_memory(error);
    }
    bool first = !pages->begun;
    cadre_status status = wire_unpack_verify_response(data, length, arena, &page, error);
    if (status == CADRE_OK) {
        status = merge_page(pages, &page, error);
    }
    if (status == CADRE_OK && first) { /* in the place of one before the job began again */
        wire_arena_free(pages->arena);
        pages->arena = arena;
    } else {
        wire_arena_free(arena);
    }
    return status;
}

uint64_t audit_pages_estimate(const struct audit_pages *pages)
{
    uint64_t count = 0;
    for (size_t i = 0; i < pages->stream_count; i++) {
        count += pages->streams[i].newest.cursor.epoch - pages->streams[i].oldest + 1;
    }
    return pages->whole || count < pages->all.epoch_count ? pages->all.epoch_count : count;
}

cadre_verification *audit_pages_result(struct audit_pages *pages)
{
    if (pages->followed) {
        qsort(pages->epochs, pages->all.epoch_count, sizeof *pages->epochs, compare_epochs);
        qsort(
            pages->verified, pages->all.verified_count, sizeof *pages->verified, compare_verified);
    }
    pages->all.generations = pages->generations;
    pages->all.epochs = pages->epochs;
    pages->all.verified = pages->verified;
    cadre_verification *result = verification_new(&pages->all, pages->arena);
    if (result != NULL) {
        pages->arena = NULL;
    }
    return result;
}

void audit_pages_free(struct audit_pages *pages)
{
    wire_arena_free(pages->arena);
    free(pages->generations);
    free(pages->epochs);
    free(pages->verified);
    *pages = (struct audit_pages){0};
}
