/* SPDX-License-Identifier: Apache-2.0
 * Tables of files: compared with a plain list of samples; deals; bytes of any origin. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/input/sharding/file_shares.h"

#define FILES   7
#define SAMPLES 60

static cadre_status consumed(
    struct file_shares *shares, uint64_t file, uint64_t first, uint64_t count)
{
    return file_shares_consumed(
        shares, &(struct file_run){.file = file, .first = first, .count = count}, NULL);
}

static void check_against(const struct file_shares *shares, bool seen[FILES][SAMPLES])
{
    uint64_t samples = 0;
    for (size_t f = 0; f < FILES; f++) {
        const struct file_share *file = &shares->files[f];
        bool own[SAMPLES] = {false};
        for (size_t i = 0; i < file->consumed_count; i++) {
            assert_true(file->consumed[i].first < file->consumed[i].end);
            assert_true(i == 0 || file->consumed[i - 1].end < file->consumed[i].first);
            for (uint64_t s = file->consumed[i].first; s < file->consumed[i].end; s++) {
                own[s] = true;
                samples++;
            }
        }
        assert_memory_equal(own, seen[f], sizeof own);
    }
    assert_int_equal(file_shares_count(shares).samples, samples);
}

static bool are_equal(const struct file_shares *a, const struct file_shares *b)
{
    if (a->epoch != b->epoch || a->step != b->step || a->workers != b->workers ||
        a->file_count != b->file_count) {
        return false;
    }
    for (size_t i = 0; i < a->file_count; i++) {
        const struct file_share *one = &a->files[i];
        const struct file_share *other = &b->files[i];
        if (one->owner != other->owner || one->done != other->done ||
            one->dropped != other->dropped || one->consumed_count != other->consumed_count) {
            return false;
        }
        for (size_t k = 0; k < one->consumed_count; k++) {
            if (one->consumed[k].first != other->consumed[k].first ||
                one->consumed[k].end != other->consumed[k].end) {
                return false;
            }
        }
    }
    return true;
}

static void through_bytes(const struct file_shares *shares)
{
    struct cadre_error error = {0};
    uint8_t *bytes = NULL;
    size_t count = 0;
    struct file_shares back = {0};
    ASSERT_OK(file_shares_encode(shares, &bytes, &count, &error));
    ASSERT_OK(file_shares_decode(bytes, count, &back, &error));
    assert_true(are_equal(shares, &back));
    assert_int_equal(back.done_count, shares->done_count);
    assert_int_equal(back.dropped_count, shares->dropped_count);
    file_shares_clear(&back);
    free(bytes);
}

static void random_runs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct prng prng;
        struct file_shares shares = {0};
        struct cadre_error error = {0};
        bool seen[FILES][SAMPLES] = {{false}};
        prng = (struct prng){.state = prng_mix(seed)};
        ASSERT_OK(file_shares_init(&shares, seed, FILES, 3, &error));
        for (int i = 0; i < 80; i++) {
            uint64_t file = prng_uniform(&prng, FILES);
            uint64_t first = prng_uniform(&prng, SAMPLES);
            uint64_t count = prng_uniform(&prng, SAMPLES - first < 9 ? SAMPLES - first + 1 : 9);
            bool twice = false;
            for (uint64_t s = first; s < first + count; s++) {
                twice = twice || seen[file][s];
            }
            assert_int_equal(
                consumed(&shares, file, first, count), twice ? CADRE_DATA_LOSS : CADRE_OK);
            for (uint64_t s = first; s < first + count && !twice; s++) {
                seen[file][s] = true;
            }
            check_against(&shares, seen);
        }
        shares.step = seed * 1000;
        through_bytes(&shares);
        struct file_shares copy = {0};
        ASSERT_OK(file_shares_copy(&shares, &copy, &error));
        assert_true(are_equal(&shares, &copy));
        ASSERT_OK(file_shares_done(&copy, 3, &error));
        assert_false(are_equal(&shares, &copy));
        ASSERT_OK(file_shares_assign(&copy, 5, &error));
        through_bytes(&copy);
        file_shares_clear(&copy);
        file_shares_clear(&shares);
    }
}

static void what_was_dropped_is_kept(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_shares shares = {0};
    ASSERT_OK(file_shares_init(&shares, 4, FILES, 3, &error));
    ASSERT_OK(consumed(&shares, 2, 5, 4));
    assert_false(
        file_shares_overlaps(&shares, &(struct file_run){.file = 2, .first = 1, .count = 4}));
    assert_true(
        file_shares_overlaps(&shares, &(struct file_run){.file = 2, .first = 1, .count = 5}));
    assert_true(
        file_shares_overlaps(&shares, &(struct file_run){.file = 2, .first = 8, .count = 1}));
    assert_false(
        file_shares_overlaps(&shares, &(struct file_run){.file = 2, .first = 9, .count = 1}));
    assert_true(file_shares_overlaps(&shares, &(struct file_run){.file = FILES, .count = 1}));
    for (uint64_t file = 0; file < FILES; file++) {
        ASSERT_OK(file_shares_done(&shares, file | (file == 2 ? FILE_SHARES_DROPPED : 0), &error));
        ASSERT_OK(file_shares_done(&shares, file, &error)); /* what was said first holds */
        assert_int_equal(shares.done_count, file + 1);
    }
    assert_int_equal(shares.dropped_count, 1);
    assert_true(file_shares_overlaps(&shares, &(struct file_run){.file = 0, .count = 1}));
    through_bytes(&shares);
    struct file_shares copy = {0};
    ASSERT_OK(file_shares_copy(&shares, &copy, &error));
    assert_int_equal(copy.done_count, FILES);
    assert_int_equal(copy.dropped_count, 1);
    assert_true(copy.files[2].dropped);
    assert_true(are_equal(&shares, &copy));
    copy.files[2].dropped = false;
    assert_false(are_equal(&shares, &copy));
    file_shares_clear(&copy);
    file_shares_clear(&shares);
}

static void deals(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_shares shares = {0};
    struct file_shares fresh = {0};
    ASSERT_OK(file_shares_init(&shares, 4, FILES, 3, &error));
    for (size_t f = 0; f < FILES; f++) {
        assert_int_equal(shares.files[f].owner, f % 3);
    }
    ASSERT_OK(file_shares_assign(&shares, 2, &error));
    ASSERT_OK(file_shares_init(&fresh, 4, FILES, 2, &error));
    assert_true(are_equal(&shares, &fresh));
    ASSERT_OK(file_shares_done(&shares, 0, &error));
    ASSERT_OK(file_shares_done(&shares, 3, &error));
    ASSERT_OK(file_shares_done(&shares, 3, &error));
    ASSERT_OK(file_shares_assign(&shares, 2, &error));
    const uint32_t owners[] = {9, 0, 1, 9, 0, 1, 0};
    for (size_t f = 0; f < FILES; f++) {
        assert_true(owners[f] == 9 || shares.files[f].owner == owners[f]);
    }
    assert_int_equal(file_shares_count(&shares).done, 2);
    through_bytes(&shares);
    /* More workers than files: some have none. */
    ASSERT_OK(file_shares_assign(&shares, 500, &error));
    assert_int_equal(shares.files[6].owner, 4);
    through_bytes(&shares);
    file_shares_clear(&shares);
    file_shares_clear(&fresh);
}

static void refusals(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_shares shares = {0};
    assert_int_equal(file_shares_init(&shares, 0, 1, 0, &error), CADRE_INVALID_ARGUMENT);
    assert_int_equal(file_shares_init(&shares, 0, 1, FILE_SHARES_WORKERS_MAX + 1, &error),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        file_shares_init(&shares, 0, FILE_SHARES_FILES_MAX + 1, 1, &error), CADRE_INVALID_ARGUMENT);
    ASSERT_OK(file_shares_init(&shares, 0, FILES, 2, &error));
    assert_int_equal(consumed(&shares, FILES, 0, 1), CADRE_INVALID_ARGUMENT);
    assert_int_equal(consumed(&shares, 0, UINT64_MAX, 1), CADRE_INVALID_ARGUMENT);
    assert_int_equal(consumed(&shares, 0, 1, UINT64_MAX), CADRE_INVALID_ARGUMENT);
    assert_int_equal(consumed(&shares, 0, FILE_SHARES_SAMPLES_MAX, 1), CADRE_INVALID_ARGUMENT);
    assert_int_equal(consumed(&shares, 0, FILE_SHARES_SAMPLES_MAX - 1, 1), CADRE_OK);
    assert_int_equal(file_shares_done(&shares, FILES, &error), CADRE_INVALID_ARGUMENT);
    assert_int_equal(file_shares_assign(&shares, 0, &error), CADRE_INVALID_ARGUMENT);
    assert_int_equal(file_shares_done(&shares, 1, &error), CADRE_OK);
    assert_int_equal(consumed(&shares, 1, 0, 1), CADRE_DATA_LOSS);
    assert_int_equal(consumed(&shares, 1, 0, 0), CADRE_OK);
    file_shares_clear(&shares);
    struct file_shares none = {0};
    ASSERT_OK(file_shares_init(&none, 0, 0, 1, &error));
    through_bytes(&none);
    file_shares_clear(&none);
}

/* What was not written as it would be again is no table: no byte can be changed unseen. */
static void damaged_bytes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_shares shares = {0};
    uint8_t *bytes = NULL;
    size_t count = 0;
    ASSERT_OK(file_shares_init(&shares, 300, FILES, 2, &error));
    assert_int_equal(consumed(&shares, 1, 3, 400), CADRE_OK);
    assert_int_equal(consumed(&shares, 1, 500, 1), CADRE_OK);
    assert_int_equal(consumed(&shares, 5, 0, 1), CADRE_OK);
    ASSERT_OK(file_shares_done(&shares, 2, &error));
    ASSERT_OK(file_shares_assign(&shares, 2, &error));
    ASSERT_OK(file_shares_encode(&shares, &bytes, &count, &error));
    for (size_t i = 0; i <= count; i++) {
        struct file_shares back = {0};
        uint8_t *own = malloc(count + 1);
        memcpy(own, bytes, count);
        for (int value = 0; value < 256 && i < count; value++) {
            own[i] = (uint8_t)value;
            cadre_status status = file_shares_decode(own, count, &back, &error);
            if (status == CADRE_OK) {
                uint8_t *again = NULL;
                size_t again_count = 0;
                ASSERT_OK(file_shares_encode(&back, &again, &again_count, &error));
                assert_int_equal(again_count, count);
                assert_memory_equal(again, own, count);
                free(again);
            } else {
                assert_int_equal(status, CADRE_INVALID_ARGUMENT);
                assert_null(back.files);
            }
            file_shares_clear(&back);
        }
        /* Cut short: entries may be left out at the end, which is another table. */
        memcpy(own, bytes, count);
        uint8_t *exact = malloc(i + 1);
        memcpy(exact, own, i);
        cadre_status status = file_shares_decode(exact, i, &back, &error);
        assert_true(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT);
        assert_true(i < count || status == CADRE_OK);
        file_shares_clear(&back);
        own[count] = 1;
        assert_int_equal(file_shares_decode(own, count + 1, &back, &error), CADRE_INVALID_ARGUMENT);
        free(exact);
        free(own);
    }
    free(bytes);
    file_shares_clear(&shares);
}

static void random_bytes(void **state)
{
    (void)state;
    struct prng prng;
    prng.state = 5;
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[40];
        struct file_shares back = {0};
        struct cadre_error error = {0};
        size_t count = prng_uniform(&prng, sizeof bytes);
        bytes[0] = 1;
        for (size_t k = 1; k < count; k++) {
            bytes[k] = (uint8_t)(prng_uniform(&prng, 3) > 0 ? prng_uniform(&prng, 6)
                                                            : prng_uniform(&prng, 256));
        }
        cadre_status status = file_shares_decode(bytes, count, &back, &error);
        assert_true(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT);
        if (status == CADRE_OK) {
            through_bytes(&back);
        }
        file_shares_clear(&back);
    }
}

/* A million samples consumed in order are one interval; 100000 untouched files are a few
 * bytes. */
static void compact(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_shares shares = {0};
    uint8_t *bytes = NULL;
    size_t count = 0;
    ASSERT_OK(file_shares_init(&shares, 0, 100000, 500, &error));
    for (uint64_t i = 0; i < 1000000; i += 100) {
        assert_int_equal(consumed(&shares, 99999, i, 100), CADRE_OK);
    }
    assert_int_equal(shares.files[99999].consumed_count, 1);
    ASSERT_OK(file_shares_encode(&shares, &bytes, &count, &error));
    assert_true(count < 24);
    free(bytes);
    through_bytes(&shares);
    file_shares_clear(&shares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs),
        cmocka_unit_test(deals),
        cmocka_unit_test(what_was_dropped_is_kept),
        cmocka_unit_test(refusals),
        cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
