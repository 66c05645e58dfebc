/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of cutting batches, compared with going through the rows one by one. */
#include "tests/unit/input/cmocka_unit.h"

#include "worker/library/input/batching/rebatch.h"

static void split_pieces_tile_the_batch(void **state)
{
    (void)state;
    for (int64_t rows = 0; rows < 40; rows++) {
        for (uint64_t pieces = 1; pieces < 12; pieces++) {
            int64_t each = (rows + (int64_t)pieces - 1) / (int64_t)pieces;
            int64_t next = 0;
            for (uint64_t piece = 0; piece < pieces; piece++) {
                struct row_range range = rebatch_split_piece(rows, pieces, piece);
                assert_int_equal(range.first, next);
                assert_int_equal(range.count, rows - next < each ? rows - next : each);
                next += range.count;
            }
            assert_int_equal(next, rows);
        }
    }
    struct row_range huge = rebatch_split_piece(INT64_MAX, 2, 1);
    assert_int_equal(huge.count, INT64_MAX / 2);
}

/* The list as the semantics word it: c entries of q + 1, then q, rotated left by worker * replicas.
 */
static int64_t list_entry(
    int64_t rows, uint64_t workers, uint64_t replicas, uint64_t worker, uint64_t index)
{
    int64_t length = (int64_t)(workers * replicas);
    uint64_t common = (index + worker * replicas) % (uint64_t)length;
    return rows / length + ((int64_t)common < rows % length ? 1 : 0);
}

/* Cuts `total` rows entry by entry; gives the number of pieces. */
static uint64_t check_stream(
    int64_t rows, uint64_t workers, uint64_t replicas, uint64_t worker, int64_t total)
{
    struct size_list list = size_list_make(rows, workers, replicas, worker);
    int64_t next = 0;
    for (uint64_t piece = 0;; piece++) {
        int64_t wanted = list_entry(rows, workers, replicas, worker, piece);
        int64_t count = total - next < wanted ? total - next : wanted;
        if (wanted > 0 && count == 0) {
            return piece;
        }
        struct row_range range = size_list_piece(&list, piece, total);
        assert_int_equal(range.first, next);
        assert_int_equal(range.count, count);
        next += count;
    }
}

static void size_lists_cut_streams(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 12; rows++) {
        for (uint64_t workers = 1; workers < 5; workers++) {
            for (uint64_t replicas = 1; replicas < 4; replicas++) {
                for (uint64_t worker = 0; worker < workers; worker++) {
                    struct size_list list = size_list_make(rows, workers, replicas, worker);
                    for (int64_t total = 0; total < 30; total++) {
                        uint64_t pieces = check_stream(rows, workers, replicas, worker, total);
                        assert_int_equal(size_list_pieces(&list, total), pieces);
                    }
                }
            }
        }
    }
}

/* One step of all workers is one global batch, in any phase of the cycle. */
static void steps_sum_to_the_batch(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 20; rows++) {
        for (uint64_t step = 0; step < 9; step++) {
            int64_t sum = 0;
            for (uint64_t worker = 0; worker < 3; worker++) {
                struct size_list list = size_list_make(rows, 3, 2, worker);
                sum += size_list_rows_before(&list, 2 * step + 2) -
                       size_list_rows_before(&list, 2 * step);
            }
            assert_int_equal(sum, rows);
        }
    }
}

static void large_numbers_saturate(void **state)
{
    (void)state;
    struct size_list list = size_list_make(1000, 2, 2, 1);
    assert_int_equal(size_list_rows_before(&list, UINT64_MAX), INT64_MAX);
    assert_int_equal(size_list_pieces(&list, INT64_C(1) << 60), (UINT64_C(1) << 60) / 250 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_pieces_tile_the_batch),
        cmocka_unit_test(size_lists_cut_streams),
        cmocka_unit_test(steps_sum_to_the_batch),
        cmocka_unit_test(large_numbers_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
