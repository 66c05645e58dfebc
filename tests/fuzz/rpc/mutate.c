/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include <stdbool.h>
#include <string.h>

#include "common/rpc/fields.h"

#define FIELDS_MAX 256
#define DEPTH_MAX  12

/* A field and where it stands in its message. */
struct piece {
    struct field field;
    const uint8_t *from;
    size_t size;
};

struct pieces {
    struct piece at[FIELDS_MAX];
    size_t count;
};

static const uint64_t numbers[] = {0, 1, 2, 3, 4, 7, 8, 63, 64, 127, 128, 255, 256, 1023, 16383,
    16384, 16385, 65535, 65536, UINT64_C(1) << 31, (UINT64_C(1) << 31) - 1, UINT32_MAX,
    UINT64_C(1) << 32, UINT64_C(1) << 62, (UINT64_C(1) << 62) + 1, INT64_MAX, UINT64_C(1) << 63,
    UINT64_MAX};

static const char *const texts[] = {"", ".", "..", "../x", "/", "/etc/passwd", "a/../b", "a//b",
    "a\nb", "\x1b[31m", "\xff\xfe", "\xc2", "%s%n", "0/x", "0", "w0", "CADRE_SLOT=9", "="};

static bool read_pieces(const uint8_t *bytes, size_t size, struct pieces *pieces)
{
    struct field_reader reader = field_reader(bytes, size);
    pieces->count = 0;
    while (pieces->count < FIELDS_MAX) {
        struct piece *piece = &pieces->at[pieces->count];
        piece->from = reader.at;
        if (!field_next(&reader, &piece->field)) {
            break;
        }
        piece->size = (size_t)(reader.at - piece->from);
        pieces->count++;
    }
    return !reader.broken && reader.at == reader.end && pieces->count > 0;
}

static void put_raw(struct field_writer *writer, const void *bytes, size_t size)
{
    if (size <= MUTATE_BYTES_MAX - writer->size) {
        memcpy(writer->at + writer->size, bytes, size);
        writer->size += size;
    }
}

static void put_bytes(struct field_writer *writer, uint32_t id, const void *bytes, size_t size)
{
    if (size + 16 <= MUTATE_BYTES_MAX - writer->size) {
        field_put_bytes(writer, id, bytes, size);
    }
}

/* Flips, cuts and lengthens without a thought for the encoding. */
static size_t break_bytes(
    struct prng *prng, const uint8_t *bytes, size_t size, uint8_t *ret_bytes, size_t room)
{
    size = size < room ? size : room;
    if (size > 0) {
        memcpy(ret_bytes, bytes, size);
    }
    for (uint64_t i = prng_uniform(prng, 4); size > 0 && i > 0; i--) {
        ret_bytes[prng_uniform(prng, size)] ^= (uint8_t)(1 << prng_uniform(prng, 8));
    }
    if (prng_chance(prng, 1, 3)) {
        size = prng_uniform(prng, size + 1);
    }
    for (uint64_t i = prng_chance(prng, 1, 3) ? prng_uniform(prng, 40) : 0; i > 0 && size < room;
         i--) {
        ret_bytes[size++] = (uint8_t)prng_next(prng);
    }
    return size;
}

static uint64_t bend_number(struct prng *prng, uint64_t number)
{
    switch (prng_uniform(prng, 4)) {
    case 0:
        return number + 1;
    case 1:
        return number - 1;
    case 2:
        return prng_uniform(prng, 6);
    default:
        return numbers[prng_uniform(prng, sizeof numbers / sizeof numbers[0])];
    }
}

static size_t mutate_at(
    struct prng *prng, const uint8_t *bytes, size_t size, uint8_t *ret_bytes, int depth);

static void bend_content(
    struct prng *prng, struct field_writer *writer, const struct field *field, int depth)
{
    static _Thread_local uint8_t rooms[DEPTH_MAX + 1][MUTATE_BYTES_MAX];
    uint8_t *room = rooms[depth];
    if (prng_chance(prng, 2, 3) && depth < DEPTH_MAX) {
        put_bytes(
            writer, field->id, room, mutate_at(prng, field->bytes, field->size, room, depth + 1));
    } else if (prng_chance(prng, 1, 3)) {
        const char *text = texts[prng_uniform(prng, sizeof texts / sizeof texts[0])];
        put_bytes(writer, field->id, text, strlen(text) + prng_uniform(prng, 2));
    } else if (prng_chance(prng, 1, 4)) {
        size_t size = prng_uniform(prng, 6000);
        memset(room, 'a', size);
        put_bytes(writer, field->id, room, size);
    } else {
        put_bytes(writer, field->id, room,
            break_bytes(prng, field->bytes, field->size, room, MUTATE_BYTES_MAX / 2));
    }
}

/* Writes one field with another value. */
static void bend(
    struct prng *prng, struct field_writer *writer, const struct piece *piece, int depth)
{
    const struct field *field = &piece->field;
    if (MUTATE_BYTES_MAX - writer->size < 32) {
        return;
    }
    if (field->kind == FIELD_NUMBER) {
        field_put_number(writer, field->id, bend_number(prng, field->number));
    } else if (field->kind == FIELD_BYTES) {
        bend_content(prng, writer, field, depth);
    } else {
        uint8_t copy[16];
        memcpy(copy, piece->from, piece->size < sizeof copy ? piece->size : sizeof copy);
        copy[piece->size - 1 - prng_uniform(prng, 4)] = (uint8_t)prng_next(prng);
        put_raw(writer, copy, piece->size);
    }
}

static size_t mutate_at(
    struct prng *prng, const uint8_t *bytes, size_t size, uint8_t *ret_bytes, int depth)
{
    struct pieces pieces;
    struct field_writer writer = {.at = ret_bytes};
    if (!read_pieces(bytes, size, &pieces) || prng_chance(prng, 1, 16)) {
        return break_bytes(prng, bytes, size, ret_bytes, MUTATE_BYTES_MAX / 2);
    }
    size_t chosen = prng_uniform(prng, pieces.count);
    size_t other = prng_uniform(prng, pieces.count);
    uint64_t how = prng_uniform(prng, 12);
    for (size_t i = 0; i < pieces.count; i++) {
        const struct piece *piece = &pieces.at[i];
        if (i != chosen) {
            put_raw(&writer, piece->from, piece->size);
        } else if (how < 7) {
            bend(prng, &writer, piece, depth);
        } else if (how == 7) { /* left out */
        } else if (how == 8) {
            for (uint64_t times = 2 + prng_uniform(prng, 20); times > 0; times--) {
                put_raw(&writer, piece->from, piece->size);
            }
        } else if (how == 9) { /* once more, or in another's place */
            put_raw(&writer, pieces.at[other].from, pieces.at[other].size);
            bend(prng, &writer, piece, depth);
        } else if (how == 10 && writer.size + 32 < MUTATE_BYTES_MAX) { /* an unknown field */
            field_put_number(&writer, 100 + (uint32_t)prng_uniform(prng, 1 << 20), prng_next(prng));
            put_raw(&writer, piece->from, piece->size);
        } else if (writer.size + 32 < MUTATE_BYTES_MAX) { /* another kind of value */
            field_put_number(&writer, piece->field.id, prng_uniform(prng, 300));
        }
    }
    return writer.size;
}

size_t mutate(
    struct prng *prng, const uint8_t *bytes, size_t size, uint8_t ret_bytes[MUTATE_BYTES_MAX])
{
    return mutate_at(prng, bytes, size, ret_bytes, 0);
}
