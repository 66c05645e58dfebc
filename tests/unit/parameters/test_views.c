/* SPDX-License-Identifier: Apache-2.0
 * What a push is based on, shard by shard. */
#include <pthread.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/parameters/parameter_views.h"

static void each_shard_has_its_own(void **state)
{
    (void)state;
    struct parameter_views *views = parameter_views_new(3);
    uint64_t versions[3] = {7, 1000, VIEW_NONE};
    uint64_t found[3];
    assert_int_equal(parameter_views_keep(views, versions), 7);
    parameter_views_find(views, 7, found);
    assert_memory_equal(found, versions, sizeof found);
    parameter_views_find(views, 8, found);
    assert_int_equal(found[0], 8);
    assert_int_equal(found[1], 8);
    parameter_views_free(views);
}

static void *keep_other(void *user)
{
    uint64_t versions[2] = {7, 2000};
    parameter_views_keep(user, versions);
    return NULL;
}

static void a_threads_own_goes_first(void **state)
{
    (void)state;
    struct parameter_views *views = parameter_views_new(2);
    uint64_t versions[2] = {7, 1000};
    uint64_t found[2];
    pthread_t thread;
    parameter_views_keep(views, versions);
    assert_int_equal(pthread_create(&thread, NULL, keep_other, views), 0);
    pthread_join(thread, NULL);
    parameter_views_find(views, 7, found);
    assert_int_equal(found[1], 1000);
    for (uint64_t i = 0; i < 100; i++) { /* old ones are forgotten, and the number serves */
        versions[0] = 100 + i;
        parameter_views_keep(views, versions);
    }
    parameter_views_find(views, 7, found);
    assert_int_equal(found[1], 7);
    parameter_views_find(views, 199, found);
    assert_int_equal(found[1], 1000);
    parameter_views_free(views);
}

static void one_shard_needs_none(void **state)
{
    (void)state;
    struct parameter_views *views = parameter_views_new(1);
    uint64_t version = 5;
    uint64_t found = 0;
    assert_int_equal(parameter_views_keep(views, &version), 5);
    parameter_views_find(views, 3, &found);
    assert_int_equal(found, 3);
    version = VIEW_NONE;
    assert_int_equal(parameter_views_keep(views, &version), 0);
    parameter_views_free(views);
}

static void of_many_shards_fewer_are_kept(void **state)
{
    (void)state;
    static uint64_t versions[100000];
    static uint64_t found[100000];
    struct parameter_views *views = parameter_views_new(100000);
    for (uint64_t round = 1; round < 4; round++) {
        versions[0] = round;
        versions[99999] = round + 5;
        for (size_t i = 1; i < 99999; i++) {
            versions[i] = round + 1;
        }
        assert_int_equal(parameter_views_keep(views, versions), round);
        parameter_views_find(views, round, found);
        assert_memory_equal(found, versions, sizeof found);
    }
    parameter_views_find(views, 1, found);
    assert_int_equal(found[99999], 1);
    parameter_views_free(views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shard_has_its_own),
        cmocka_unit_test(a_threads_own_goes_first),
        cmocka_unit_test(one_shard_needs_none),
        cmocka_unit_test(of_many_shards_fewer_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
