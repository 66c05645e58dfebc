/* SPDX-License-Identifier: Apache-2.0
 * The digest of sample ids: order does not matter, everything else does. */
#include "tests/unit/input/cmocka_unit.h"

#include "common/pure/digest.h"

static struct digest digest_of(
    const char *name, size_t bytes, uint64_t epoch, const uint64_t *ids, size_t count)
{
    struct digest_key key = digest_key_make(name, bytes, epoch);
    struct digest digest = {0};
    for (size_t i = 0; i < count; i++) {
        digest_add(&digest, &key, ids[i]);
    }
    return digest;
}

static void order_does_not_matter(void **state)
{
    (void)state;
    const uint64_t there[] = {1, 2, 3, 900};
    const uint64_t back[] = {900, 3, 2, 1};
    struct digest a = digest_of("train", 5, 0, there, 4);
    struct digest b = digest_of("train", 5, 0, back, 4);
    assert_true(digest_equal(&a, &b));

    struct digest first = digest_of("train", 5, 0, there, 1);
    struct digest rest = digest_of("train", 5, 0, there + 1, 3);
    digest_merge(&first, &rest);
    assert_true(digest_equal(&a, &first));

    struct digest_key key = digest_key_make("train", 5, 0);
    struct digest each = {0};
    digest_add_each(&each, &key, back, 3);
    digest_add_each(&each, &key, back + 3, 1);
    digest_add_each(&each, &key, back, 0);
    assert_true(digest_equal(&a, &each));
}

static void everything_else_matters(void **state)
{
    (void)state;
    const uint64_t ids[] = {1, 2, 3, 4};
    const uint64_t twice[] = {1, 2, 3, 3};
    const uint64_t sum[] = {0, 3, 3, 4}; /* the same sum of ids */
    struct digest digests[] = {
        digest_of("train", 5, 0, ids, 4),
        digest_of("train", 5, 1, ids, 4),
        digest_of("trait", 5, 0, ids, 4),
        digest_of("train", 4, 0, ids, 4),
        digest_of("", 0, 0, ids, 4),
        digest_of("train", 5, 0, ids, 3),
        digest_of("train", 5, 0, twice, 4),
        digest_of("train", 5, 0, sum, 4),
        digest_of("train", 5, 0, ids, 0),
    };
    for (size_t i = 0; i < sizeof digests / sizeof digests[0]; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_true(digests[i].lane[0] != digests[j].lane[0]);
            assert_true(digests[i].lane[1] != digests[j].lane[1]);
        }
        assert_true(digests[i].lane[0] == 0 || digests[i].lane[0] != digests[i].lane[1]);
    }
}

/* Fixed numbers: the coordinator's records outlive a build. */
static void numbers_never_change(void **state)
{
    (void)state;
    const uint64_t ids[] = {0, 1, UINT64_MAX};
    struct digest digest = digest_of("train", 5, 7, ids, 3);
    assert_true(digest.lane[0] == UINT64_C(0x1651BB42389E5DFE));
    assert_true(digest.lane[1] == UINT64_C(0xE69EC53632D0918C));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(everything_else_matters),
        cmocka_unit_test(numbers_never_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
