/* SPDX-License-Identifier: Apache-2.0
 * What the coordinator gets of fetches that take longer than a moment, and of no other. */
#include "worker/host/daemon/fetch_report.h"

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/task_files.h"

static struct daemon fixture;
static struct agent_fetch sent[4];
static size_t sent_count;
static unsigned reports;
static bool reported;

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    assert_ptr_equal(daemon, &fixture);
    assert_int_equal(up->type, AGENT_UP_HEARTBEAT);
    assert_in_range(up->heartbeat.fetch_count, 1, 4);
    sent_count = up->heartbeat.fetch_count;
    for (size_t i = 0; i < sent_count; i++) {
        sent[i] = up->heartbeat.fetches[i];
    }
    reports++;
    reported = true;
}

static void run_until(const bool *flag)
{
    assert_int_equal(rpc_loop_run_until(fixture.loop, flag,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
}

/* False: nothing keeps the loop alive, so no report is due any more. */
static bool is_due(void)
{
    return uv_is_active((const uv_handle_t *)&fixture.fetch_timer);
}

static void until_none_is_due(void)
{
    bool never = false;
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S);
    while (is_due()) {
        assert_true(clock_monotonic_us() < end_us);
        (void)rpc_loop_run_until(fixture.loop, &never, clock_monotonic_us() + 10 * CADRE_US_PER_MS);
    }
}

static void counts_are_reported_until_the_end(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct checkpoint_counts counts[2] = {
        {.done_bytes = 1, .whole_bytes = 10}, {.done_bytes = 30, .whole_bytes = 20}};
    struct task_files tasks[3] = {{.ref = {{7}, 0, 1}}, {.ref = {{7}, 1, 2}}, {.ref = {{8}, 0, 1}}};
    fixture = (struct daemon){.linked = true, .tasks = &tasks[0]};
    for (size_t i = 0; i < 3; i++) {
        tasks[i].daemon = &fixture;
        tasks[i].next = i < 2 ? &tasks[i + 1] : NULL;
    }
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    fetch_report_open(&fixture);
    fetch_report_begin(&tasks[0], FETCH_FILES, &counts[0]);
    fetch_report_end(&tasks[0]); /* it took no time */
    until_none_is_due();
    assert_int_equal(reports, 0);
    fetch_report_begin(&tasks[0], FETCH_FILES, &counts[0]);
    fetch_report_begin(&tasks[2], FETCH_CHECKPOINT, &counts[1]);
    run_until(&reported);
    assert_int_equal(sent_count, 2);
    assert_int_equal(sent[0].fetch.kind, FETCH_FILES);
    assert_int_equal(sent[0].fetch.done_bytes, 1);
    assert_int_equal(sent[0].fetch.whole_bytes, 10);
    assert_true(sent[0].fetch.elapsed_us > 0);
    assert_int_equal(sent[1].task.job.n, 8);
    assert_int_equal(sent[1].fetch.done_bytes, 20); /* never more than there is */
    uint64_t before_us = sent[0].fetch.elapsed_us;
    atomic_store(&counts[0].done_bytes, 9);
    fetch_report_end(&tasks[2]);
    fetch_report_begin(&tasks[0], FETCH_FILES, &counts[0]); /* the next of its files */
    reported = false;
    run_until(&reported);
    assert_int_equal(sent_count, 1);
    assert_int_equal(sent[0].fetch.done_bytes, 9);
    assert_true(sent[0].fetch.elapsed_us > before_us);
    fetch_report_end(&tasks[0]);
    unsigned before = reports;
    until_none_is_due();
    assert_int_equal(reports, before);
    fetch_report_close(&fixture);
    rpc_loop_close(fixture.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_reported_until_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
