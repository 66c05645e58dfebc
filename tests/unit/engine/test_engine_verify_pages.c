/* SPDX-License-Identifier: Apache-2.0
 * The proof of a job with more epochs, or generations, than one page holds. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/engine/stage.h"

#define EPOCHS  20000
#define PLANS   (LIMIT_PAGE_GENERATIONS + 10)
#define MINUTES 40000 /* four weeks */

static void commit(struct stage *stage, const struct core_record *records, size_t count)
{
    struct store_record *written = calloc(count, sizeof *written);
    assert_non_null(written);
    for (size_t i = 0; i < count; i++) {
        written[i].record = &records[i];
    }
    struct store *store = stage->store.inner;
    assert_ok(store->ops->commit(store, written, count, true, &stage->error), &stage->error);
    free(written);
}

/* `count` epochs of two steps from `first` on, of which `steps` are committed. */
static void record_epochs(
    struct stage *stage, uint32_t stream, uint64_t first, size_t count, uint64_t steps)
{
    struct core_record *records = calloc(count, sizeof *records);
    assert_non_null(records);
    for (size_t i = 0; i < count; i++) {
        uint64_t epoch = first + i;
        records[i].job = (struct job_id){1};
        records[i].type = CORE_RECORD_CONSUMED;
        records[i].consumption.cursor = (struct cursor){
            .stream = stream, .epoch = epoch, .first = 2 * epoch, .begin = 2 * epoch, .steps = 2};
        records[i].consumption.consumption = (struct consumption){
            .steps = steps, .samples = 8 * steps, .consumed = {epoch, stream}, .provable = true};
    }
    commit(stage, records, count);
    free(records);
}

static const struct verify_response *page_of(struct stage *stage, const struct verify_from *from)
{
    static struct verify_response response;
    const struct verify_request request = {.id = {1}, .from = *from};
    assert_ok(engine_verify(stage->engine, &request, &response, &stage->error), &stage->error);
    assert_true(response.epoch_count <= LIMIT_PAGE_EPOCHS);
    assert_true(response.generation_count <= LIMIT_PAGE_GENERATIONS);
    assert_true(response.verified_count <= LIMIT_PAGE_VERIFIED);
    for (size_t i = 1; i < response.epoch_count; i++) {
        const struct cursor *before = &response.epochs[i - 1].cursor;
        const struct cursor *after = &response.epochs[i].cursor;
        assert_true(before->stream < after->stream ||
                    (before->stream == after->stream && before->epoch < after->epoch));
    }
    return &response;
}

static void assert_epoch(const struct verify_epoch *epoch, uint32_t stream, uint64_t number)
{
    assert_int_equal(epoch->stream, stream);
    assert_int_equal(epoch->cursor.epoch, number);
    assert_int_equal(epoch->consumption.consumed[0], number);
    assert_int_equal(epoch->consumption.steps, 2);
}

/* The first page also has the newest epochs, as they are now; what begins or is consumed meanwhile
 * is on later pages only, and newer than those. */
static void every_epoch_is_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    distributed(stage, 1, 1, 0, 16);
    flush(stage);
    record_epochs(stage, 1, 0, EPOCHS, 2);
    record_epochs(stage, 2, 0, 3, 2);
    struct verify_from from = {0};
    const struct verify_response *page = page_of(stage, &from);
    size_t in_order = page->epoch_count - 2;
    assert_int_equal(in_order, LIMIT_PAGE_EPOCHS - LIMIT_STREAMS);
    assert_int_equal(page->generation_count, 1);
    assert_epoch(&page->epochs[in_order], 1, EPOCHS - 1);
    assert_epoch(&page->epochs[in_order + 1], 2, 2);
    assert_string_equal(page->epochs[in_order].name, "train");
    uint64_t reported = 0;
    unsigned pages = 1;
    for (; reported < in_order; reported++) {
        assert_epoch(&page->epochs[reported], 1, reported);
    }
    record_epochs(stage, 1, EPOCHS, 5, 1);
    while (page->more) {
        from = page->next;
        page = page_of(stage, &from);
        pages++;
        for (size_t i = 0; i < page->epoch_count; i++) {
            if (page->epochs[i].stream == 1 && page->epochs[i].cursor.epoch < EPOCHS - 1) {
                assert_epoch(&page->epochs[i], 1, reported++);
            }
        }
        assert_int_equal(page->generation_count, 0);
    }
    assert_int_equal(reported, EPOCHS - 1);
    assert_int_equal(pages, 3);
    stage_close(stage);
}

static void every_generation_is_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct core_record *records = calloc(PLANS, sizeof *records);
    assert_non_null(records);
    for (size_t i = 0; i < PLANS; i++) {
        records[i].job = (struct job_id){1};
        records[i].type = CORE_RECORD_PLAN;
        records[i].plan.generation = (struct generation){2 + i, 1};
        records[i].plan.resume = i;
    }
    commit(stage, records, PLANS);
    free(records);
    struct verify_from from = {0};
    const struct verify_response *page = page_of(stage, &from);
    assert_int_equal(page->generation_count, LIMIT_PAGE_GENERATIONS);
    assert_int_equal(page->generations[0].generation.number, 1);
    assert_true(page->more);
    record_epochs(stage, 1, PLANS, 1, 2);
    from = page->next;
    page = page_of(stage, &from);
    assert_int_equal(page->generation_count, PLANS + 1 - LIMIT_PAGE_GENERATIONS);
    assert_int_equal(page->generations[0].generation.number, LIMIT_PAGE_GENERATIONS + 1);
    assert_int_equal(page->epoch_count, 1);
    assert_false(page->more);
    stage_close(stage);
}

static void record_verified(struct stage *stage, uint64_t first, size_t count)
{
    struct core_record *records = calloc(count, sizeof *records);
    assert_non_null(records);
    for (size_t i = 0; i < count; i++) {
        records[i].job = (struct job_id){1};
        records[i].type = CORE_RECORD_VERIFIED;
        records[i].verified = (struct verified){.position = first + i, .digest = 1 + first + i};
    }
    commit(stage, records, count);
    free(records);
}

static size_t assert_follow(const struct verify_response *page, size_t count, uint64_t first)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(page->verified[i].position, first + i);
        assert_int_equal(page->verified[i].digest, 1 + first + i);
    }
    return count;
}

/* The first page also has the newest; those that are found meanwhile come after it. */
static void every_verified_position_is_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct verify_from from = {0};
    assert_int_equal(page_of(stage, &from)->verified_count, 0);
    record_verified(stage, 0, 3);
    const struct verify_response *page = page_of(stage, &from);
    assert_int_equal(page->verified_count, 3);
    assert_false(page->more);
    record_verified(stage, 3, MINUTES - 3);
    page = page_of(stage, &from);
    assert_int_equal(page->verified_count, LIMIT_PAGE_VERIFIED);
    size_t reported = assert_follow(page, LIMIT_PAGE_VERIFIED - 1, 0);
    assert_int_equal(page->verified[reported].position, MINUTES - 1);
    assert_true(page->more);
    record_verified(stage, MINUTES, 1);
    unsigned pages = 1;
    for (; page->more; pages++) {
        from = page->next;
        page = page_of(stage, &from);
        assert_int_equal(page->generation_count, 0);
        reported += assert_follow(page, page->verified_count, reported);
    }
    assert_int_equal(reported, MINUTES + 1);
    assert_int_equal(pages, 3);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_epoch_is_reported),
        cmocka_unit_test(every_generation_is_reported),
        cmocka_unit_test(every_verified_position_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
