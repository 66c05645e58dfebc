/* SPDX-License-Identifier: Apache-2.0
 * Packing and unpacking: many pieces of any size at any address, no byte beside them. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "plugin.h"

#define PIECES_MAX 400
#define GUARD      0xc3

static struct prng prng = {.state = 7};

/* Pieces one after the other, in memory and in the pack, with gaps between them. */
struct layout {
    struct device_piece pieces[PIECES_MAX];
    size_t at[PIECES_MAX]; /* in the memory of the pieces */
    size_t count;
    size_t memory_bytes;
    size_t pack_bytes;
};

static size_t draw_size(bool huge)
{
    switch (prng_uniform(&prng, 6)) {
    case 0:
        return prng_uniform(&prng, 4);
    case 1:
        return 4 * prng_uniform(&prng, 64);
    case 2:
        return 16 * prng_uniform(&prng, 200);
    case 3:
        return prng_uniform(&prng, 20000);
    default:
        return huge && prng_chance(&prng, 1, 40) ? 300001 : prng_uniform(&prng, 300);
    }
}

/* `step`: what addresses and offsets are multiples of. */
static void draw(struct layout *layout, size_t count, size_t step, bool huge)
{
    *layout = (struct layout){.count = count};
    for (size_t i = 0; i < count; i++) {
        size_t bytes = draw_size(huge);
        layout->memory_bytes += step * prng_uniform(&prng, 5);
        layout->pack_bytes += step * prng_uniform(&prng, 5);
        layout->at[i] = layout->memory_bytes;
        layout->pieces[i].offset = layout->pack_bytes;
        layout->pieces[i].bytes = bytes;
        layout->memory_bytes += (bytes + step - 1) / step * step;
        layout->pack_bytes += (bytes + step - 1) / step * step;
    }
    layout->memory_bytes += 64;
    layout->pack_bytes += 64;
}

/* Both ways at once: into a pack, and from there into memory of the same layout. */
static void check(struct layout *layout, void *stream)
{
    struct cadre_error error = {.code = CADRE_OK};
    size_t memory_bytes = layout->memory_bytes;
    unsigned char *from = malloc(memory_bytes);
    unsigned char *back = malloc(memory_bytes);
    unsigned char *pack = malloc(layout->pack_bytes);
    unsigned char *wanted = malloc(layout->pack_bytes);
    assert_true(from != NULL && back != NULL && pack != NULL && wanted != NULL);
    unsigned char *source = memory_of(0, memory_bytes, stream);
    unsigned char *target = memory_of(0, memory_bytes, stream);
    unsigned char *packed = memory_of(0, layout->pack_bytes, stream);
    for (size_t i = 0; i < memory_bytes; i += sizeof(uint64_t)) {
        uint64_t drawn = prng_next(&prng);
        memcpy(from + i, &drawn, memory_bytes - i < sizeof drawn ? memory_bytes - i : sizeof drawn);
    }
    memset(back, GUARD, memory_bytes);
    memset(wanted, GUARD, layout->pack_bytes);
    for (size_t i = 0; i < layout->count; i++) {
        layout->pieces[i].data = source + layout->at[i];
        memcpy(wanted + layout->pieces[i].offset, from + layout->at[i], layout->pieces[i].bytes);
        memcpy(back + layout->at[i], from + layout->at[i], layout->pieces[i].bytes);
    }
    upload(source, from, memory_bytes, stream);
    assert_ok(ops->fill(packed, GUARD, layout->pack_bytes, stream, &error), &error);
    assert_ok(ops->fill(target, GUARD, memory_bytes, stream, &error), &error);
    assert_ok(ops->pack(layout->pieces, layout->count, packed, stream, &error), &error);
    for (size_t i = 0; i < layout->count; i++) {
        layout->pieces[i].data = target + layout->at[i];
    }
    assert_ok(ops->unpack(layout->pieces, layout->count, packed, stream, &error), &error);
    download(pack, packed, layout->pack_bytes, stream);
    assert_memory_equal(pack, wanted, layout->pack_bytes);
    download(from, target, memory_bytes, stream);
    assert_memory_equal(from, back, memory_bytes);
    ops->memory_give(0, source, stream);
    ops->memory_give(0, target, stream);
    ops->memory_give(0, packed, stream);
    free(from);
    free(back);
    free(pack);
    free(wanted);
}

static void test_random_pieces(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 4, 8, 16, 256};
    static const size_t counts[] = {1, 2, 139, 140, 141, 280, 281, PIECES_MAX};
    struct layout *layout = calloc(1, sizeof *layout);
    void *stream = stream_of(0);
    assert_non_null(layout);
    for (size_t round = 0; round < 16; round++) {
        draw(layout, counts[round % 8], steps[(round / 2) % 6], round % 8 < 3);
        check(layout, stream);
    }
    settle(stream);
    ops->stream_close(stream);
    free(layout);
}

/* One huge piece between small ones: blocks share it, and its ends are right. */
static void test_a_huge_piece(void **state)
{
    (void)state;
    struct layout *layout = calloc(1, sizeof *layout);
    void *stream = stream_of(0);
    assert_non_null(layout);
    static const size_t sizes[] = {
        (size_t)34 << 20, 3000017, 3000034}; /* the first: many a block */
    for (size_t i = 0; i < 3; i++) {
        draw(layout, 3, i == 0 ? 16 : 1, false);
        size_t grown = sizes[i] - layout->pieces[1].bytes;
        layout->pieces[1].bytes += grown;
        layout->pieces[2].offset += grown;
        layout->at[2] += grown;
        layout->memory_bytes += grown;
        layout->pack_bytes += grown;
        check(layout, stream);
    }
    settle(stream);
    ops->stream_close(stream);
    free(layout);
}

static void test_no_pieces(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    struct device_piece none = {.data = NULL, .offset = 5, .bytes = 0};
    int local = 0;
    void *stream = stream_of(0);
    assert_ok(ops->pack(NULL, 0, NULL, stream, &error), &error);
    assert_ok(ops->unpack(&none, 1, NULL, stream, &error), &error);
    settle(stream);
    ops->stream_close(stream);
    assert_error(
        ops->pack(&none, 1, NULL, &local, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_pieces),
        cmocka_unit_test(test_a_huge_piece),
        cmocka_unit_test(test_no_pieces),
    };
    plugin_open_with_devices(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
