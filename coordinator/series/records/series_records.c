/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/series/records/series_records.h"

#include <string.h>

#include <isa-l/crc64.h>

#include "common/pure/assert.h"

/* All numbers are little-endian.
 *     u32 bytes of the payload, u32 type, u64 sum of type and payload; payload */
#define HEAD_BYTES    16
#define VALUE_BYTES   20
#define BUCKET_BYTES  64
#define BEGIN_BYTES   40
#define BEGIN_BYTES_1 32 /* in files of version 1 */
#define START_BYTES   16
#define VALUES_MAX    LIMIT_REPORTED_VALUES /* of a record */
#define PAYLOAD_BYTES ((size_t)16 + LIMIT_SERIES_BUCKETS * BUCKET_BYTES)

_Static_assert(PAYLOAD_BYTES >= 4 + VALUES_MAX * VALUE_BYTES &&
                   PAYLOAD_BYTES >= LIMIT_METRIC_GENERATIONS * START_BYTES,
    "the longest record is of buckets");

enum record_type {
    RECORD_HEAD = 1, /* the text VERSION; in version 1 no record names a source: all is training */
    RECORD_BEGIN,    /* generation, lap, first, numbered, source: u64 each */
    RECORD_NAME,     /* the next series: u8 source, its name */
    RECORD_BUCKETS,  /* of the newest series: u64 stride; buckets */
    RECORD_VALUES,   /* values: u32 series, u64 step, f64 */
    RECORD_LOST,     /* u64: so many bytes were damaged */
    RECORD_STARTS    /* in a snapshot: of generations, number and first step: u64 each */
};

static const char version[] = "cadre series 2";
static const char version_1[] = "cadre series 1";

/* ---- numbers ---- */

static void put_number(uint8_t *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(number >> (8 * i));
    }
}

static uint64_t get_number(const uint8_t *from, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        number |= (uint64_t)from[i] << (8 * i);
    }
    return number;
}

static void put_double(uint8_t *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(to, bits, 8);
}

static double get_double(const uint8_t *from)
{
    uint64_t bits = get_number(from, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t series_records_sum(uint32_t type, const uint8_t *payload, size_t size)
{
    uint8_t head[8];
    put_number(head, type, 4);
    put_number(head + 4, size, 4);
    uint64_t sum = crc64_ecma_refl(0, head, sizeof head);
    return size > 0 ? crc64_ecma_refl(sum, payload, size) : sum;
}

/* ---- writing ---- */

/* A record whose payload the caller fills; NULL: no memory. */
static uint8_t *record_open(struct wire_buffer *buffer, size_t payload_bytes)
{
    CADRE_ASSERT(payload_bytes <= PAYLOAD_BYTES);
    if (!wire_buffer_reserve(buffer, HEAD_BYTES + payload_bytes)) {
        return NULL;
    }
    return buffer->bytes + buffer->size + HEAD_BYTES;
}

static void record_close(struct wire_buffer *buffer, enum record_type type, size_t payload_bytes)
{
    uint8_t *head = buffer->bytes + buffer->size;
    put_number(head, payload_bytes, 4);
    put_number(head + 4, (uint64_t)type, 4);
    put_number(head + 8, series_records_sum((uint32_t)type, head + HEAD_BYTES, payload_bytes), 8);
    buffer->size += HEAD_BYTES + payload_bytes;
}

static bool put_bytes(
    struct wire_buffer *buffer, enum record_type type, const void *bytes, size_t size)
{
    uint8_t *payload = record_open(buffer, size);
    if (payload == NULL) {
        return false;
    }
    memcpy(payload, bytes, size);
    record_close(buffer, type, size);
    return true;
}

bool series_records_head(struct wire_buffer *buffer)
{
    return put_bytes(buffer, RECORD_HEAD, version, sizeof version);
}

static bool put_begin(struct wire_buffer *buffer, const struct series_set *set,
    enum series_source source, uint64_t first)
{
    const struct series_current *current = &set->current[source];
    uint8_t *payload = record_open(buffer, BEGIN_BYTES);
    if (payload == NULL) {
        return false;
    }
    put_number(payload, current->generation, 8);
    put_number(payload + 8, current->lap, 8);
    put_number(payload + 16, first, 8);
    put_number(payload + 24, current->numbered ? 1 : 0, 8);
    put_number(payload + 32, source, 8);
    record_close(buffer, RECORD_BEGIN, BEGIN_BYTES);
    return true;
}

static bool plan_source(struct series_state *state, enum series_source source, uint64_t generation,
    uint64_t resume, struct wire_buffer *buffer)
{
    struct series_set *set = &state->set;
    if (set->current[source].numbered ||
        !series_set_begin(set, source, generation, 0, resume + 1)) {
        return true;
    }
    return series_set_names(set, source) == 0 || put_begin(buffer, set, source, resume + 1);
}

bool series_records_plan(
    struct series_state *state, uint64_t generation, uint64_t resume, struct wire_buffer *buffer)
{
    return plan_source(state, SERIES_TRAINING, generation, resume, buffer) &&
           plan_source(state, SERIES_EVALUATION, generation, resume, buffer);
}

static bool put_name(struct wire_buffer *buffer, enum series_source source, const char *name)
{
    uint8_t payload[1 + LIMIT_NAME_BYTES];
    size_t length = strlen(name);
    CADRE_ASSERT(length < LIMIT_NAME_BYTES);
    payload[0] = (uint8_t)source;
    memcpy(payload + 1, name, length);
    return put_bytes(buffer, RECORD_NAME, payload, 1 + length);
}

/* Whether the source is in the generation and lap of the values. */
static bool is_current(const struct series_current *current, const struct task_values *values)
{
    return values->generation.number == current->generation && values->lap == current->lap;
}

/* The first of the values says from which step on a program that numbers its steps itself does them
 * again. */
static bool begin_with(struct series_state *state, enum series_source source,
    const struct task_values *values, struct wire_buffer *buffer)
{
    struct series_set *set = &state->set;
    uint64_t first = values->numbered ? values->values[0].step : UINT64_MAX;
    bool newer = series_set_begin(set, source, values->generation.number, values->lap, first);
    if (newer) {
        set->current[source].numbered = values->numbered;
        if (values->numbered && source == SERIES_TRAINING) {
            (void)series_starts_note(&state->starts, values->generation.number, first);
        }
    } else if (!is_current(&set->current[source], values) || series_set_names(set, source) > 0) {
        return true;
    }
    return put_begin(buffer, set, source, first);
}

bool series_records_values(struct series_state *state, enum series_source source,
    const struct task_values *values, struct wire_buffer *buffer)
{
    struct series_set *set = &state->set;
    CADRE_ASSERT(values->value_count <= VALUES_MAX);
    if (values->value_count == 0 || !begin_with(state, source, values, buffer)) {
        return values->value_count == 0;
    }
    if (!is_current(&set->current[source], values)) {
        return true; /* of a generation that is over */
    }
    uint8_t rows[VALUES_MAX * VALUE_BYTES];
    size_t size = 0;
    for (size_t i = 0; i < values->value_count; i++) {
        const struct reported_value *value = &values->values[i];
        CADRE_ASSERT(value->name < values->name_count);
        const char *name = values->names[value->name];
        uint32_t count = set->count;
        enum series_added added = series_set_add(set, source, name, value->step, value->value);
        if (set->count > count && !put_name(buffer, source, name)) {
            return false;
        }
        if (added == SERIES_ADDED) {
            const struct series *series = series_set_find(set, name);
            put_number(rows + size, (uint64_t)(series - set->series), 4);
            put_number(rows + size + 4, value->step, 8);
            put_double(rows + size + 12, value->value);
            size += VALUE_BYTES;
        }
    }
    return size == 0 || put_bytes(buffer, RECORD_VALUES, rows, size);
}

bool series_records_lost(struct series_state *state, uint64_t bytes, struct wire_buffer *buffer)
{
    uint8_t payload[8];
    state->lost_bytes += bytes;
    put_number(payload, bytes, sizeof payload);
    return put_bytes(buffer, RECORD_LOST, payload, sizeof payload);
}

static bool put_buckets(struct wire_buffer *buffer, const struct series *series)
{
    size_t size = 8 + series->bucket_count * BUCKET_BYTES;
    uint8_t *to = record_open(buffer, size);
    if (to == NULL) {
        return false;
    }
    put_number(to, series->stride, 8);
    to += 8;
    for (size_t i = 0; i < series->bucket_count; i++, to += BUCKET_BYTES) {
        const struct series_bucket *bucket = &series->buckets[i];
        put_number(to, bucket->first_step, 8);
        put_number(to + 8, bucket->last_step, 8);
        put_number(to + 16, bucket->count, 8);
        put_number(to + 24, bucket->not_finite, 8);
        put_double(to + 32, bucket->minimum);
        put_double(to + 40, bucket->maximum);
        put_double(to + 48, bucket->mean);
        put_double(to + 56, bucket->last);
    }
    record_close(buffer, RECORD_BUCKETS, size);
    return true;
}

static bool put_starts(struct wire_buffer *buffer, const struct series_starts *starts)
{
    uint8_t *to = record_open(buffer, starts->count * START_BYTES);
    if (to == NULL) {
        return false;
    }
    for (size_t i = 0; i < starts->count; i++, to += START_BYTES) {
        put_number(to, starts->items[i].generation, 8);
        put_number(to + 8, starts->items[i].step, 8);
    }
    record_close(buffer, RECORD_STARTS, starts->count * START_BYTES);
    return true;
}

static bool put_points(struct wire_buffer *buffer, const struct series *series, uint32_t index)
{
    for (size_t at = 0; at < series->point_count;) {
        size_t count =
            series->point_count - at < VALUES_MAX ? series->point_count - at : VALUES_MAX;
        uint8_t *to = record_open(buffer, count * VALUE_BYTES);
        if (to == NULL) {
            return false;
        }
        for (size_t i = 0; i < count; i++, to += VALUE_BYTES) {
            struct series_point point = series_point_at(series, at + i);
            put_number(to, index, 4);
            put_number(to + 4, point.step, 8);
            put_double(to + 12, point.value);
        }
        record_close(buffer, RECORD_VALUES, count * VALUE_BYTES);
        at += count;
    }
    return true;
}

bool series_records_snapshot(const struct series_state *state, struct wire_buffer *buffer)
{
    const struct series_set *set = &state->set;
    uint8_t lost[8];
    put_number(lost, state->lost_bytes, sizeof lost);
    bool good = series_records_head(buffer);
    for (enum series_source source = 0; source < SERIES_SOURCES; source++) {
        bool empty = series_set_names(set, source) == 0;
        good = good && (empty || put_begin(buffer, set, source, UINT64_MAX));
    }
    good = good && (state->starts.count == 0 || put_starts(buffer, &state->starts));
    for (uint32_t i = 0; good && i < set->count; i++) {
        const struct series *series = &set->series[i];
        good = put_name(buffer, series->source, series->name);
        good = good && (series->bucket_count == 0 || put_buckets(buffer, series));
        good = good && put_points(buffer, series, i);
    }
    return good && (state->lost_bytes == 0 || put_bytes(buffer, RECORD_LOST, lost, sizeof lost));
}

/* ---- replaying ---- */

static bool replay_begin(struct series_state *state, const uint8_t *payload, size_t size)
{
    struct series_set *set = &state->set;
    bool sized = size == (state->outdated ? BEGIN_BYTES_1 : BEGIN_BYTES);
    uint64_t source = sized && !state->outdated ? get_number(payload + 32, 8) : SERIES_TRAINING;
    if (!sized || get_number(payload + 24, 8) > 1 || source >= SERIES_SOURCES) {
        return false;
    }
    struct series_current *current = &set->current[source];
    uint64_t generation = get_number(payload, 8);
    uint64_t lap = get_number(payload + 8, 8);
    uint64_t first = get_number(payload + 16, 8);
    current->numbered = get_number(payload + 24, 8) == 1;
    if (current->numbered && source == SERIES_TRAINING &&
        first != UINT64_MAX) { /* not of a snapshot */
        if (first > LIMIT_POSITION) {
            return false;
        }
        (void)series_starts_note(&state->starts, generation, first);
    }
    /* Of a source whose values had no room it is written more than once. */
    return series_set_begin(set, (enum series_source)source, generation, lap, first) ||
           (current->generation == generation && current->lap == lap);
}

static bool replay_starts(struct series_starts *starts, const uint8_t *payload, size_t size)
{
    bool good = size % START_BYTES == 0 && size / START_BYTES <= LIMIT_METRIC_GENERATIONS;
    for (size_t at = 0; good && at < size; at += START_BYTES) {
        good = get_number(payload + at + 8, 8) <= LIMIT_POSITION &&
               series_starts_note(
                   starts, get_number(payload + at, 8), get_number(payload + at + 8, 8));
    }
    return good;
}

static bool replay_name(struct series_state *state, const uint8_t *payload, size_t size)
{
    char name[LIMIT_NAME_BYTES];
    uint8_t source = SERIES_TRAINING;
    if (!state->outdated && size > 0) {
        source = payload[0];
        payload++;
        size--;
    }
    if (size == 0 || size >= sizeof name || memchr(payload, 0, size) != NULL ||
        source >= SERIES_SOURCES) {
        return false;
    }
    memcpy(name, payload, size);
    name[size] = '\0';
    return series_set_put(&state->set, (enum series_source)source, name) != NULL;
}

static bool replay_buckets(struct series_set *set, const uint8_t *payload, size_t size)
{
    if (set->count == 0 || size < 8 || (size - 8) % BUCKET_BYTES != 0) {
        return false;
    }
    struct series *series = &set->series[set->count - 1];
    uint64_t stride = get_number(payload, 8);
    if (stride == 0 || stride > LIMIT_POSITION || (stride & (stride - 1)) != 0 ||
        series->bucket_count > 0) {
        return false;
    }
    series->stride = stride;
    for (const uint8_t *from = payload + 8; from < payload + size; from += BUCKET_BYTES) {
        const struct series_bucket bucket = {.first_step = get_number(from, 8),
            .last_step = get_number(from + 8, 8),
            .count = get_number(from + 16, 8),
            .not_finite = get_number(from + 24, 8),
            .minimum = get_double(from + 32),
            .maximum = get_double(from + 40),
            .mean = get_double(from + 48),
            .last = get_double(from + 56)};
        if (!series_put_bucket(series, &bucket)) {
            return false;
        }
    }
    return true;
}

static bool replay_values(struct series_set *set, const uint8_t *payload, size_t size)
{
    if (size % VALUE_BYTES != 0) {
        return false;
    }
    for (const uint8_t *from = payload; from < payload + size; from += VALUE_BYTES) {
        uint64_t index = get_number(from, 4);
        uint64_t step = get_number(from + 4, 8);
        if (index >= set->count || step > LIMIT_POSITION ||
            series_set_add(set, set->series[index].source, set->series[index].name, step,
                get_double(from + 12)) != SERIES_ADDED) {
            return false;
        }
    }
    return true;
}

static bool series_records_take(
    struct series_state *state, uint32_t type, const uint8_t *payload, size_t size, bool first)
{
    if (first != (type == RECORD_HEAD)) {
        return false;
    }
    switch (type) {
    case RECORD_HEAD:
        state->outdated = size == sizeof version_1 && memcmp(payload, version_1, size) == 0;
        return state->outdated || (size == sizeof version && memcmp(payload, version, size) == 0);
    case RECORD_BEGIN:
        return replay_begin(state, payload, size);
    case RECORD_NAME:
        return replay_name(state, payload, size);
    case RECORD_BUCKETS:
        return replay_buckets(&state->set, payload, size);
    case RECORD_VALUES:
        return replay_values(&state->set, payload, size);
    case RECORD_LOST:
        state->lost_bytes += size == 8 ? get_number(payload, 8) : 0;
        return size == 8;
    case RECORD_STARTS:
        return replay_starts(&state->starts, payload, size);
    default:
        return false;
    }
}

static bool are_zeros(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < size && bytes[at] == 0) {
        at++;
    }
    return at == size;
}

enum series_end series_records_replay(
    const uint8_t *bytes, size_t size, struct series_state *state, size_t *ret_size)
{
    series_set_open(&state->set, LIMIT_SERIES_POINTS, LIMIT_SERIES_BUCKETS);
    state->starts.count = 0;
    state->lost_bytes = 0;
    state->outdated = false;
    size_t at = 0;
    *ret_size = 0;
    while (size - at >= HEAD_BYTES) {
        const uint8_t *head = bytes + at;
        size_t payload_bytes = (size_t)get_number(head, 4);
        uint32_t type = (uint32_t)get_number(head + 4, 4);
        if (payload_bytes <= PAYLOAD_BYTES && payload_bytes > size - at - HEAD_BYTES) {
            return SERIES_END_TORN;
        }
        if (payload_bytes > PAYLOAD_BYTES ||
            series_records_sum(type, head + HEAD_BYTES, payload_bytes) != get_number(head + 8, 8) ||
            !series_records_take(state, type, head + HEAD_BYTES, payload_bytes, at == 0)) {
            return are_zeros(head, size - at) ? SERIES_END_TORN : SERIES_END_DAMAGED;
        }
        at += HEAD_BYTES + payload_bytes;
        *ret_size = at;
    }
    return at == size ? SERIES_END_WHOLE : SERIES_END_TORN;
}
