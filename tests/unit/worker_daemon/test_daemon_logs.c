/* SPDX-License-Identifier: Apache-2.0
 * A task's log on its way: what the coordinator has is let go, what it does not take in time is
 * dropped and said. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/daemon/daemon.h"

static struct daemon stand;
static struct task_files task;
static char sent[64 * 1024];
static size_t sent_size;

void later_arm(struct daemon *daemon)
{
    (void)daemon; /* nothing here makes the coordinator want a pause */
    fail();
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    assert_ptr_equal(daemon, &stand);
    assert_int_equal(up->log.offset, sent_size);
    memcpy(sent + sent_size, up->log.bytes, up->log.size_bytes);
    sent_size += up->log.size_bytes;
}

void outputs_resume(struct task_files *files)
{
    (void)files;
}

static int set_up(void **state)
{
    (void)state;
    stand = (struct daemon){.linked = true, .options = {.log_limit_bytes = 4096}};
    task = (struct task_files){.daemon = &stand, .log_fd = memfd_create("log", MFD_CLOEXEC)};
    sent_size = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return close(task.log_fd);
}

static void print(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char line[16];
        int length = snprintf(line, sizeof line, "line %05u\n", i);
        logs_write(&task, (const uint8_t *)line, (size_t)length);
    }
}

/* Ten times the limit, and the coordinator keeps up: every byte arrives. */
static void all_arrives_while_it_is_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4000; i += 100) {
        print(i, 100);
        logs_acked(&task, sent_size);
    }
    assert_int_equal(sent_size, 44000);
    for (unsigned i = 0; i < 4000; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %05u\n", i);
        assert_memory_equal(sent + (size_t)i * 11, line, 11);
    }
    assert_int_equal(stand.counts.log_dropped_bytes, 0);
    assert_int_equal(stand.counts.log_read_bytes, 44000);
    assert_true(task.log_gone >= 44000 - 4096); /* it takes no more room than the limit */
}

/* The coordinator is away: what does not fit is dropped, once it is back that is said, and later
 * lines arrive. */
static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    stand.linked = false;
    print(0, 1000);
    assert_int_equal(task.log_bytes, 4096);
    uint64_t dropped = stand.counts.log_dropped_bytes;
    assert_int_equal(dropped, 11000 - 4096);
    stand.linked = true;
    logs_ship(&task);
    assert_int_equal(sent_size, 4096);
    logs_acked(&task, sent_size);
    print(5000, 3);
    logs_acked(&task, sent_size);
    sent[sent_size] = '\0';
    char told[64];
    snprintf(told, sizeof told, "[cadre: %llu bytes of output were dropped here",
        (unsigned long long)dropped);
    assert_non_null(strstr(sent, told));
    assert_non_null(strstr(sent, "line 05002\n"));
    assert_int_equal(stand.counts.log_dropped_bytes, dropped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_arrives_while_it_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
