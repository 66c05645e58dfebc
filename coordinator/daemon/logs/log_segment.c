/* SPDX-License-Identifier: Apache-2.0
 * An object: "cadre-log 1\n", how many marks (4 bytes) and bytes (8), the marks (16 bytes each, as
 * in common/base/log_marks.h), the bytes, and the SHA-256 of all that. Numbers are little-endian.
 */
#include "coordinator/daemon/logs/log_segment.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sha256.h"
#include "common/pure/assert.h"

#define MAGIC       "cadre-log 1\n"
#define MAGIC_BYTES 12
#define HEAD_BYTES  (MAGIC_BYTES + 4 + 8)
#define MARK_BYTES  16
#define STREAM_BITS 2

/* Segments of fewer bytes than these are small; those of one size become one of the next. What a
 * task that writes much puts in one turn is no less than the last one. */
static const uint64_t tiers[] = {4 * 1024, 32 * 1024, 256 * 1024};
#define TIERS (sizeof tiers / sizeof tiers[0])

/* ---- names ---- */

void log_segment_name(const struct log_segment *segment, char ret_name[LOG_SEGMENT_NAME_BYTES])
{
    snprintf(ret_name, LOG_SEGMENT_NAME_BYTES,
        "%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64, segment->term,
        segment->incarnation, segment->base, segment->begin, segment->end);
}

bool log_segment_parse(const char *name, struct log_segment *ret_segment)
{
    struct log_segment segment = {0};
    char again[LOG_SEGMENT_NAME_BYTES];
    int got = sscanf(name, "%16" SCNx64 "-%16" SCNx64 "-%16" SCNx64 "-%16" SCNx64 "-%16" SCNx64,
        &segment.term, &segment.incarnation, &segment.base, &segment.begin, &segment.end);
    if (got != 5 || segment.base > segment.begin || segment.begin >= segment.end) {
        return false;
    }
    log_segment_name(&segment, again);
    segment.from = segment.begin;
    segment.to = segment.end;
    *ret_segment = segment;
    return strcmp(name, again) == 0;
}

/* ---- which count ---- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

/* By incarnation, of one the newest term first. */
static int by_incarnation(const void *a, const void *b)
{
    const struct log_segment *left = a;
    const struct log_segment *right = b;
    int order = compare(left->incarnation, right->incarnation);
    return order != 0 ? order : compare(right->term, left->term);
}

/* By begin, the longest first. */
static int by_begin(const void *a, const void *b)
{
    const struct log_segment *left = a;
    const struct log_segment *right = b;
    int order = compare(left->from, right->from);
    return order != 0 ? order : compare(right->to, left->to);
}

/* Leaves out those with a base that does not count. */
static size_t drop_other_bases(struct log_segment *segments, size_t count)
{
    size_t kept = 0;
    uint64_t base = 0;
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || segments[i].incarnation != segments[kept - 1].incarnation;
        base = first ? segments[i].base : base;
        if (segments[i].base == base) {
            segments[kept++] = segments[i];
        }
    }
    return kept;
}

/* Each ends where a newer incarnation begins. Later incarnations come later. */
static size_t end_at_newer(struct log_segment *segments, size_t count)
{
    uint64_t limit = UINT64_MAX; /* the lowest base of the incarnations behind */
    uint64_t next = UINT64_MAX;
    size_t kept = 0;
    for (size_t i = count; i > 0; i--) {
        struct log_segment *segment = &segments[i - 1];
        if (i < count && segment->incarnation != segments[i].incarnation) {
            limit = next < limit ? next : limit;
        }
        next = segment->base;
        segment->from = segment->begin;
        segment->to = segment->end < limit ? segment->end : limit;
    }
    for (size_t i = 0; i < count; i++) {
        if (segments[i].from < segments[i].to) {
            segments[kept++] = segments[i];
        }
    }
    return kept;
}

static size_t drop_overlaps(struct log_segment *segments, size_t count)
{
    uint64_t end = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct log_segment segment = segments[i];
        segment.from = segment.from < end ? end : segment.from;
        if (segment.from < segment.to) {
            end = segment.to;
            segments[kept++] = segment;
        }
    }
    return kept;
}

size_t log_segments_arrange(struct log_segment *segments, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(segments, count, sizeof *segments, by_incarnation);
    count = drop_other_bases(segments, count);
    count = end_at_newer(segments, count);
    if (count > 0) {
        qsort(segments, count, sizeof *segments, by_begin);
    }
    return drop_overlaps(segments, count);
}

void log_segments_hole(
    const struct log_segment *segments, size_t count, uint64_t *ret_from, uint64_t *ret_to)
{
    uint64_t end = 0;
    *ret_from = 0;
    *ret_to = 0;
    for (size_t i = 0; i < count; i++) {
        if (segments[i].from > end) {
            *ret_from = *ret_to == 0 ? end : *ret_from;
            *ret_to = segments[i].from;
        }
        end = segments[i].to;
    }
}

static size_t tier_of(const struct log_segment *segment)
{
    size_t tier = 0;
    while (tier < TIERS && segment->end - segment->begin >= tiers[tier]) {
        tier++;
    }
    return tier;
}

/* So many of the last are of this size or smaller, and of one piece. */
static size_t count_small(const struct log_segment *segments, size_t count, size_t tier)
{
    size_t small = 0;
    while (small < count && tier_of(&segments[count - 1 - small]) <= tier) {
        const struct log_segment *segment = &segments[count - 1 - small];
        bool follows = small == 0 || (segment->to == segment[1].from &&
                                         segment->incarnation == segment[1].incarnation);
        if (!follows) {
            break;
        }
        small++;
    }
    return small;
}

size_t log_segments_to_join(const struct log_segment *segments, size_t count)
{
    for (size_t tier = 0; tier < TIERS; tier++) {
        size_t small = count_small(segments, count, tier);
        if (small >= LOG_SEGMENTS_JOINED) {
            return small;
        }
    }
    return 0;
}

/* ---- bytes ---- */

static void put_u64(uint8_t *at, uint64_t number)
{
    uint64_t little = htole64(number);
    memcpy(at, &little, sizeof little);
}

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t little;
    memcpy(&little, at, sizeof little);
    return le64toh(little);
}

uint8_t *log_segment_pack(const struct log_segment *segment, const uint8_t *bytes,
    const struct log_mark *marks, size_t mark_count, size_t *ret_size)
{
    size_t size = (size_t)(segment->end - segment->begin);
    size_t hashed = HEAD_BYTES + mark_count * MARK_BYTES + size;
    uint8_t *object = malloc(hashed + SHA256_BYTES);
    struct sha256 hash;
    if (object == NULL) {
        return NULL;
    }
    CADRE_ASSERT(mark_count <= UINT32_MAX);
    uint32_t little = htole32((uint32_t)mark_count);
    memcpy(object, MAGIC, MAGIC_BYTES);
    memcpy(object + MAGIC_BYTES, &little, sizeof little);
    put_u64(object + MAGIC_BYTES + 4, size);
    uint8_t *at = object + HEAD_BYTES;
    for (size_t i = 0; i < mark_count; i++, at += MARK_BYTES) {
        put_u64(at, marks[i].offset - segment->begin);
        put_u64(at + 8, marks[i].received_us << STREAM_BITS | (uint64_t)marks[i].stream);
    }
    memcpy(at, bytes, size);
    if (sha256_of(object, hashed, &hash, NULL) != CADRE_OK) {
        free(object);
        return NULL;
    }
    memcpy(object + hashed, hash.bytes, SHA256_BYTES);
    *ret_size = hashed + SHA256_BYTES;
    return object;
}

static cadre_status check_object(const struct log_segment *segment, const uint8_t *object,
    size_t size, size_t *ret_marks, struct cadre_error *error)
{
    struct sha256 hash;
    uint64_t bytes = segment->end - segment->begin;
    bool is_long = size >= HEAD_BYTES + SHA256_BYTES && memcmp(object, MAGIC, MAGIC_BYTES) == 0;
    uint32_t little = 0;
    memcpy(&little, object + (is_long ? MAGIC_BYTES : 0), is_long ? sizeof little : 0);
    uint64_t marks = le32toh(little);
    if (is_long && get_u64(object + MAGIC_BYTES + 4) == bytes &&
        bytes <= size && /* else the sum may wrap */
        size == HEAD_BYTES + marks * MARK_BYTES + bytes + SHA256_BYTES &&
        sha256_of(object, size - SHA256_BYTES, &hash, NULL) == CADRE_OK &&
        memcmp(hash.bytes, object + size - SHA256_BYTES, SHA256_BYTES) == 0) {
        *ret_marks = (size_t)marks;
        return CADRE_OK;
    }
    char name[LOG_SEGMENT_NAME_BYTES];
    log_segment_name(segment, name);
    return cadre_error_set(
        error, CADRE_DATA_LOSS, "the piece %s of a log is not what was put there", name);
}

cadre_status log_segment_unpack(const struct log_segment *segment, const uint8_t *object,
    size_t size, const uint8_t **ret_bytes, struct log_mark **ret_marks, size_t *ret_mark_count,
    struct cadre_error *error)
{
    CADRE_TRY(check_object(segment, object, size, ret_mark_count, error));
    *ret_marks = calloc(*ret_mark_count + 1, sizeof **ret_marks);
    if (*ret_marks == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a log");
    }
    const uint8_t *at = object + HEAD_BYTES;
    for (size_t i = 0; i < *ret_mark_count; i++, at += MARK_BYTES) {
        uint64_t stamp = get_u64(at + 8);
        uint64_t stream = stamp & ((1U << STREAM_BITS) - 1);
        (*ret_marks)[i] = (struct log_mark){.offset = segment->begin + get_u64(at),
            .stream = stream <= LOG_STREAM_STDERR ? (enum log_stream)stream : LOG_STREAM_ANY,
            .received_us = stamp >> STREAM_BITS};
    }
    *ret_bytes = at;
    return CADRE_OK;
}
