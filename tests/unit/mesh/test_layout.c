/* SPDX-License-Identifier: Apache-2.0
 * Packed offsets over lists of buffers: cuts never split an element, pieces cover everything once.
 */
#include "worker/library/mesh/layout.h"

#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"

static void test_cuts(void **state)
{
    (void)state;
    struct layout layout = {.count = 0};
    struct cadre_error error;
    static const struct mesh_buffer buffers[] = {
        {.bytes = 3, .dtype = MESH_U8},
        {.bytes = 0, .dtype = MESH_F64},
        {.bytes = 16, .dtype = MESH_F64},
        {.bytes = 0, .dtype = MESH_F32},
        {.bytes = 6, .dtype = MESH_BF16},
    };
    assert_ok(mesh_layout_set(&layout, buffers, 5, &error), &error);
    assert_int_equal(layout.bytes, 25);
    static const size_t wanted[] = {0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 11, 11, 11, 11, 11, 11, 11, 11,
        19, 19, 21, 21, 23, 23, 25, 25};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(mesh_layout_cut(&layout, i), wanted[i]);
    }
    assert_ok(mesh_layout_set(&layout, NULL, 0, &error), &error);
    assert_int_equal(layout.bytes, 0);
    assert_int_equal(mesh_layout_cut(&layout, 0), 0);
    mesh_layout_finish(&layout);
}

/* Random lists in random parts: gathered and scattered again, every byte is where it was. */
static void test_parts_cover_everything(void **state)
{
    (void)state;
    struct layout layout = {.count = 0};
    struct cadre_error error;
    struct prng prng = {.state = 5};
    for (unsigned round = 0; round < 300; round++) {
        uint8_t from[8][64];
        uint8_t to[8][64];
        uint8_t packed[512];
        struct mesh_buffer source[8];
        struct mesh_buffer target[8];
        size_t count = prng_uniform(&prng, 9);
        uint32_t parts = (uint32_t)prng_uniform(&prng, 9) + 1;
        for (size_t i = 0; i < count; i++) {
            enum mesh_dtype dtype = (enum mesh_dtype)prng_uniform(&prng, 9);
            size_t size = mesh_dtype_bytes(dtype);
            source[i] = (struct mesh_buffer){.data = from[i],
                .bytes = prng_uniform(&prng, 64 / size + 1) * size,
                .dtype = dtype};
            target[i] = source[i];
            target[i].data = to[i];
            for (size_t k = 0; k < 64; k++) {
                from[i][k] = (uint8_t)prng_next(&prng);
            }
            memset(to[i], 0, 64);
        }
        assert_ok(mesh_layout_set(&layout, source, count, &error), &error);
        size_t end = 0;
        for (uint32_t part = 0; part < parts; part++) {
            size_t low;
            size_t high;
            mesh_layout_part(&layout, 0, layout.bytes, part, parts, &low, &high);
            assert_int_equal(low, end);
            assert_int_equal(mesh_layout_cut(&layout, low), low);
            mesh_layout_gather(&layout, source, low, high, packed);
            mesh_layout_scatter(&layout, target, low, high, packed);
            end = high;
        }
        assert_int_equal(end, layout.bytes);
        for (size_t i = 0; i < count; i++) {
            assert_memory_equal(from[i], to[i], source[i].bytes);
        }
    }
    mesh_layout_finish(&layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_parts_cover_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
