/* SPDX-License-Identifier: Apache-2.0
 * What a push is based on, shard by shard: what the closure, or the thread, has read last. */
#include <pthread.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/served/read_versions.h"

static void each_shard_has_its_own(void **state)
{
    (void)state;
    struct read_versions *views = read_versions_new(3);
    const uint64_t some[3] = {7, 1000, READ_VERSION_NONE};
    const uint64_t other[3] = {READ_VERSION_NONE, 1001, READ_VERSION_NONE};
    const uint64_t wanted[3] = {7, 1001, READ_VERSION_NONE};
    uint64_t found[3];
    assert_false(read_versions_find(views, 0, found));
    read_versions_record(views, 0, some);
    read_versions_record(views, 0, other); /* of the second shard alone */
    assert_true(read_versions_find(views, 0, found));
    assert_memory_equal(found, wanted, sizeof found);
    read_versions_free(views);
}

static void a_closure_begins_with_none(void **state)
{
    (void)state;
    struct read_versions *views = read_versions_new(2);
    const uint64_t before[2] = {7, 1000};
    const uint64_t after[2] = {READ_VERSION_NONE, 9};
    uint64_t found[2];
    read_versions_record(views, 5, before);
    assert_false(read_versions_find(views, 6, found));
    assert_false(read_versions_find(views, 0, found));
    assert_true(read_versions_find(views, 5, found));
    read_versions_record(views, 6, after);
    assert_true(read_versions_find(views, 6, found));
    assert_memory_equal(found, after, sizeof found);
    assert_false(read_versions_find(views, 5, found)); /* the thread runs another one */
    read_versions_free(views);
}

struct other {
    struct read_versions *views;
    uint64_t closure;
    uint64_t found[2];
    bool knows;
};

static void *keep_other(void *user)
{
    struct other *other = user;
    const uint64_t versions[2] = {8, 2000};
    other->knows = read_versions_find(other->views, other->closure, other->found);
    read_versions_record(other->views, other->closure, versions);
    return NULL;
}

static void keep_in_a_thread(struct other *other)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, keep_other, other), 0);
    pthread_join(thread, NULL);
}

/* Outside of closures each thread has its own; threads of one closure share what it has read. */
static void threads_share_within_a_closure(void **state)
{
    (void)state;
    struct other other = {.views = read_versions_new(2)};
    const uint64_t versions[2] = {7, 1000};
    uint64_t found[2];
    read_versions_record(other.views, 0, versions);
    keep_in_a_thread(&other);
    assert_false(other.knows);
    assert_true(read_versions_find(other.views, 0, found));
    assert_memory_equal(found, versions, sizeof found);
    read_versions_record(other.views, 3, versions);
    other.closure = 3;
    keep_in_a_thread(&other);
    assert_true(other.knows);
    assert_int_equal(other.found[1], 1000);
    assert_true(read_versions_find(other.views, 3, found));
    assert_int_equal(found[1], 2000);
    read_versions_free(other.views);
}

/* Those of threads that are gone are given up, the ones that were used longest ago first. */
static void old_ones_are_forgotten(void **state)
{
    (void)state;
    static uint64_t found[100000];
    static uint64_t versions[100000];
    struct read_versions *few = read_versions_new(100000);
    struct read_versions *views = read_versions_new(2);
    struct other other = {.views = views};
    versions[99999] = 4;
    read_versions_record(few, 0, versions);
    assert_true(read_versions_find(few, 0, found));
    assert_memory_equal(found, versions, sizeof found);
    read_versions_record(views, 1000, versions);
    for (other.closure = 1; other.closure < 300; other.closure++) {
        keep_in_a_thread(&other);
        assert_true(read_versions_find(views, 1000, found)); /* it is in use */
    }
    assert_true(read_versions_find(views, 299, found));
    assert_false(read_versions_find(views, 1, found));
    read_versions_free(views);
    read_versions_free(few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shard_has_its_own),
        cmocka_unit_test(a_closure_begins_with_none),
        cmocka_unit_test(threads_share_within_a_closure),
        cmocka_unit_test(old_ones_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
