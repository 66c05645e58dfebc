/* SPDX-License-Identifier: Apache-2.0
 * Counts by hash, against counts by number: through growth, and with hashes that begin alike. */
#include <string.h>

#include "common/pure/prng.h"
#include "coordinator/daemon/contents/content_references_state.h"
#include "tests/lib/test.h"

#define HASHES 5000

static struct sha256 hash_of(uint32_t number)
{
    struct sha256 hash = {{0}};
    hash.bytes[0] = (uint8_t)number; /* many begin alike: they take places behind each other */
    memcpy(hash.bytes + 20, &number, sizeof number);
    return hash;
}

static void nothing_is_needed_at_first(void **state)
{
    (void)state;
    struct content_refcounts counts = {0};
    struct sha256 hash = hash_of(1);
    assert_int_equal(content_refcounts_of(&counts, &hash), 0);
    content_refcounts_free(&counts);
}

static void every_reference_is_counted(void **state)
{
    (void)state;
    static uint32_t model[HASHES];
    struct content_refcounts counts = {0};
    struct prng prng = {.state = 5};
    for (unsigned i = 0; i < 60000; i++) {
        uint32_t number = (uint32_t)(prng_next(&prng) % HASHES);
        struct sha256 hash = hash_of(number);
        if (model[number] > 0 && prng_next(&prng) % 2 == 0) {
            assert_int_equal(content_refcounts_drop(&counts, &hash), --model[number]);
        } else {
            assert_true(content_refcounts_add(&counts, &hash));
            model[number]++;
        }
    }
    for (uint32_t number = 0; number < HASHES; number++) {
        struct sha256 hash = hash_of(number);
        assert_int_equal(content_refcounts_of(&counts, &hash), model[number]);
    }
    content_refcounts_free(&counts);
}

/* Checkpoints come and go for ever: unused contents do not add up. */
static void what_is_dropped_takes_no_room(void **state)
{
    (void)state;
    struct content_refcounts counts = {0};
    for (uint32_t number = 0; number < 200000; number++) {
        struct sha256 hash = hash_of(number);
        assert_true(content_refcounts_add(&counts, &hash));
        assert_int_equal(content_refcounts_drop(&counts, &hash), 0);
    }
    assert_true(counts.capacity <= 4096);
    content_refcounts_free(&counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_needed_at_first),
        cmocka_unit_test(every_reference_is_counted),
        cmocka_unit_test(what_is_dropped_takes_no_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
