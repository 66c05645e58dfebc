/* SPDX-License-Identifier: Apache-2.0
 * A task's log on its way: what the coordinator has is freed, what it does not take in time is
 * dropped and reported. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/log_pause.h"
#include "worker/host/daemon/logs.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"

#define SENT_MAX    ((size_t)1 << 20)
#define LIMIT_BYTES 16384

static struct daemon fixture;
static struct task_files task;
static char sent[SENT_MAX];
static size_t sent_size;
static unsigned unanswered;
static bool armed; /* the pause after which the daemon tries again */

void retry_arm(struct daemon *daemon)
{
    assert_ptr_equal(daemon, &fixture);
    armed = true;
}

static uint64_t
    pause_us; /* after which short pieces are sent together; 0: they were sent at once */

void log_pause_arm(struct daemon *daemon, uint64_t after_us)
{
    assert_ptr_equal(daemon, &fixture);
    pause_us = after_us;
}

static void (*take)(const struct agent_log *chunk);

static void take_in_order(const struct agent_log *chunk)
{
    assert_int_equal(chunk->offset, sent_size);
    memcpy(sent + sent_size, chunk->bytes, chunk->size_bytes);
    sent_size += chunk->size_bytes;
    unanswered++;
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    assert_ptr_equal(daemon, &fixture);
    assert_true(up->log.size_bytes > 0);
    take(&up->log);
}

/* Everything that was sent is stored. */
static void answer_all(void)
{
    while (unanswered > 0) {
        unanswered--;
        logs_acked(&task, sent_size);
    }
}

void outputs_resume(struct task_files *files)
{
    (void)files;
}

void removal_start(struct task_files *files)
{
    (void)files;
    fail();
}

static bool held; /* the task's pipes */

void agent_set_output_paused(struct agent *agent, struct task_ref ref, bool hold)
{
    (void)agent;
    assert_true(task_ref_equal(ref, task.ref));
    held = hold;
}

static bool disk_is_slow; /* a turn ends when the test calls end_io() */

static void end_io(void)
{
    struct file_work *work = &task.log_work;
    assert_true(work->running);
    work->in_thread(work->user);
    work->running = false;
    work->done(work->user);
}

void file_work_start(struct file_work *work, struct file_work_pool *file_pool,
    void (*act)(void *user), void (*done)(void *user), void *user)
{
    assert_ptr_equal(file_pool, &fixture.file_pool);
    assert_ptr_equal(work, &task.log_work);
    assert_false(work->running);
    work->in_thread = act;
    work->done = done;
    work->user = user;
    work->running = true;
    if (!disk_is_slow) {
        end_io();
    }
}

static void end_turns(void)
{
    while (task.log_work.running) {
        end_io();
    }
}

static int set_up(void **state)
{
    (void)state;
    fixture = (struct daemon){.linked = true, .options = {.log_limit_bytes = LIMIT_BYTES}};
    task = (struct task_files){.daemon = &fixture,
        .log.fd = memfd_create("log", MFD_CLOEXEC),
        .log.marks_fd = memfd_create("marks", MFD_CLOEXEC)};
    sent_size = 0;
    unanswered = 0;
    armed = false;
    pause_us = 0;
    held = false;
    disk_is_slow = false;
    take = take_in_order;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_file_close(&task.log);
    return 0;
}

static void print(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char line[16];
        int length = snprintf(line, sizeof line, "line %05u\n", i);
        logs_write(&task, LOG_STREAM_STDOUT, (const uint8_t *)line, (size_t)length);
    }
}

/* Ten times the limit, and the coordinator keeps up: every byte arrives. */
static void all_arrives_while_it_is_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4000; i += 100) {
        print(i, 100);
        answer_all();
    }
    assert_int_equal(sent_size, 44000);
    for (unsigned i = 0; i < 4000; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %05u\n", i);
        assert_memory_equal(sent + (size_t)i * 11, line, 11);
    }
    assert_int_equal(fixture.counts.log_dropped_bytes, 0);
    assert_int_equal(fixture.counts.log_read_bytes, 44000);
    assert_true(task.log.gone >= 44000 - LIMIT_BYTES); /* it takes no more room than the limit */
}

/* The coordinator is away: what does not fit is dropped; once it is back that is reported, and
 * later lines arrive. */
static void what_does_not_fit_is_reported(void **state)
{
    (void)state;
    fixture.linked = false;
    print(0, 2000);
    assert_int_equal(task.log.bytes, LIMIT_BYTES);
    uint64_t dropped = fixture.counts.log_dropped_bytes;
    assert_int_equal(dropped, 22000 - LIMIT_BYTES);
    fixture.linked = true;
    logs_ship(&task);
    assert_int_equal(sent_size, LIMIT_BYTES);
    answer_all();
    print(5000, 3);
    answer_all();
    sent[sent_size] = '\0';
    char report[64];
    snprintf(report, sizeof report, "[cadre: %llu bytes of output were dropped here",
        (unsigned long long)dropped);
    assert_non_null(strstr(sent, report));
    assert_non_null(strstr(sent, "line 05002\n"));
    assert_int_equal(fixture.counts.log_dropped_bytes, dropped);
}

/* The coordinator's disk took half of the last chunk there is: the other half comes again. */
static void the_end_of_a_chunk_comes_again(void **state)
{
    (void)state;
    print(0, 1);
    assert_int_equal(sent_size, 11);
    unanswered = 0;
    sent_size = 5;
    logs_acked(&task, 5);
    assert_true(armed);
    assert_int_equal(sent_size, 5); /* not before the pause is over */
    task.log_waits = false;
    logs_ship(&task);
    assert_int_equal(sent_size, 11);
    answer_all();
    assert_int_equal(task.log_acked, task.log.bytes);
}

/* ---- anything may happen ---- */

#define QUEUE_MAX 256

static struct prng prng;
static char stored[SENT_MAX];             /* the coordinator's file */
static enum log_stream streams[SENT_MAX]; /* of each byte of it */
static size_t stored_size;
static uint64_t answers[QUEUE_MAX]; /* on their way */
static size_t answer_count;
static unsigned refusals; /* of ten chunks so many find no room, or only for a part */

static void store_streams(const struct agent_log *chunk, size_t end)
{
    assert_in_range(chunk->mark_count, 1, LIMIT_LOG_MARKS);
    assert_int_equal(chunk->marks[0].offset, chunk->offset);
    for (size_t i = 0, at = stored_size; at < end; at++) {
        while (i + 1 < chunk->mark_count && chunk->marks[i + 1].offset <= at) {
            i++;
        }
        streams[at] = chunk->marks[i].stream;
        assert_true(chunk->marks[i].received_us > 0);
    }
}

/* As log_files.c has it. */
static void take_or_refuse(const struct agent_log *chunk)
{
    size_t end = (size_t)chunk->offset + chunk->size_bytes;
    assert_true(answer_count < QUEUE_MAX && end <= SENT_MAX);
    if (chunk->offset <= stored_size && end > stored_size) {
        size_t fits = end - stored_size;
        if (prng_chance(&prng, refusals, 10)) {
            fits = prng_uniform(&prng, fits);
        }
        memcpy(stored + stored_size, chunk->bytes + (stored_size - chunk->offset), fits);
        store_streams(chunk, stored_size + fits);
        stored_size += fits;
    }
    answers[answer_count++] = stored_size;
}

static void answer_one(void)
{
    uint64_t offset = answers[0];
    memmove(answers, answers + 1, --answer_count * sizeof answers[0]);
    logs_acked(&task, offset);
}

static void break_stream(void)
{
    fixture.linked = false;
    answer_count = 0;
}

static void end_pause(void)
{
    armed = false;
    if (task.log_waits) {
        task.log_waits = false;
        logs_ship(&task);
    }
}

static void restart_daemon(void)
{
    struct cadre_error error = {0};
    end_turns();
    if (task.log.dropped + task.log.lost > 0) {
        return; /* it ends without a word of that */
    }
    break_stream();
    log_file_close(&task.log);
    task = (struct task_files){.daemon = &fixture, .folder = task.folder};
    assert_ok(logs_reopen(&task, &error), &error);
}

/* The coordinator has less than it acknowledged, and is back at once. */
static void lose_power(void)
{
    end_turns();
    if (stored_size <= task.log.gone + 4096) {
        return;
    }
    break_stream();
    stored_size -= prng_uniform(&prng, stored_size - task.log.gone - 4095);
    fixture.linked = true;
    logs_linked(&task);
    end_turns();
    while (answer_count > 0) {
        answer_one();
        end_turns();
    }
}

/* The byte that the task printed there. */
static char printed(uint64_t at)
{
    return (char)('a' + prng_mix(at) % 26);
}

/* Nothing is read of a task's pipes while what was read is not written, but the rest of one that
 * ended. */
static void print_some(uint64_t *at)
{
    uint8_t bytes[2048];
    if (held && !prng_chance(&prng, 1, 10)) {
        return;
    }
    bool error = prng_chance(&prng, 1, 3); /* in capitals */
    size_t size = 1 + prng_uniform(&prng, prng_chance(&prng, 1, 4) ? sizeof bytes : 100);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(error ? toupper(printed(*at + i)) : printed(*at + i));
    }
    bool fails = prng_chance(&prng, 1, 50);
    if (fails) {
        fault_arm("logs.write", 1);
    }
    logs_write(&task, error ? LOG_STREAM_STDERR : LOG_STREAM_STDOUT, bytes, size);
    if (fails) {
        end_turns();
        (void)fault_disarm();
    }
    *at += size;
}

/* What is stored is what was printed, or a report of how much of it is missing. */
static void check_stored(uint64_t total)
{
    uint64_t at = 0;
    for (size_t i = 0; i < stored_size;) {
        unsigned long long missing = 0;
        if (stored[i] == '\n') {
            assert_int_equal(sscanf(stored + i, "\n[cadre: %llu bytes of output", &missing), 1);
            i += strcspn(stored + i, "]") + 2;
            at += missing;
            continue;
        }
        assert_int_equal(tolower(stored[i]), printed(at));
        assert_int_equal(streams[i], isupper(stored[i]) ? LOG_STREAM_STDERR : LOG_STREAM_STDOUT);
        i++;
        at++;
    }
    assert_int_equal(at + task.log.dropped + task.log.lost, total);
}

static void do_anything(uint64_t *at)
{
    uint64_t what = prng_uniform(&prng, 100);
    if (task.log_work.running && prng_chance(&prng, 1, 3)) {
        end_io();
    } else if (what < 40) {
        print_some(at);
    } else if (what < 80 && answer_count > 0) {
        answer_one();
    } else if (what < 90 && armed) {
        end_pause();
    } else if (what < 92) {
        break_stream();
    } else if (what < 93) {
        restart_daemon();
    } else if (what < 94 && stored_size > task.log.gone + 4096) {
        lose_power();
    } else if (!fixture.linked) {
        fixture.linked = true;
        logs_linked(&task);
    }
}

static void begin_seed(uint64_t seed, char *folder)
{
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    prng = (struct prng){seed};
    fixture = (struct daemon){.options = {.log_limit_bytes = seed % 2 == 0 ? 65536 : 16384}};
    task = (struct task_files){.daemon = &fixture, .folder = folder};
    test_write(test_path(path, folder, "log"), "");
    assert_ok(logs_reopen(&task, &error), &error);
    stored_size = 0;
    answer_count = 0;
    armed = false;
    held = false;
    disk_is_slow = seed % 3 != 0;
    refusals = (unsigned)(seed % 4);
    take = take_or_refuse;
}

/* The coordinator is back, and has room. */
static void end_well(void)
{
    refusals = 0;
    fixture.linked = true;
    answer_count = 0;
    logs_linked(&task);
    for (unsigned ios = 0; answer_count > 0 || armed || task.log_work.running; ios++) {
        assert_true(ios < 10000);
        if (task.log_work.running) {
            end_io();
        } else if (answer_count > 0) {
            answer_one();
        } else {
            end_pause();
        }
    }
    assert_int_equal(task.log_acked, task.log.bytes);
    assert_int_equal(stored_size, task.log.bytes);
    assert_true(tasks_log_is_stored(&task));
    assert_false(held);
}

static void whatever_happens_each_byte_is_kept_or_reported(void **state)
{
    (void)state;
    char folder[TEST_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", test_temp_dir());
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t total = 0;
        begin_seed(seed, folder);
        for (unsigned i = 0; i < 1000; i++) {
            do_anything(&total);
        }
        end_well();
        check_stored(total);
        log_file_close(&task.log);
    }
}

/* What the coordinator had is sent again on a new stream, in several chunks: an answer that it
 * has them is no refusal. */
static void what_is_known_is_no_refusal(void **state)
{
    (void)state;
    fixture.options.log_limit_bytes = SENT_MAX;
    stored_size = 0;
    answer_count = 0;
    refusals = 0;
    take = take_or_refuse;
    print(0, 20000);
    break_stream();
    print(20000, 10);
    fixture.linked = true;
    logs_linked(&task);
    assert_true(answer_count > 6); /* 220 kB */
    while (answer_count > 0) {
        answer_one();
    }
    assert_false(armed);
    assert_int_equal(stored_size, task.log.bytes);
    assert_int_equal(task.log_acked, task.log.bytes);
}

/* The coordinator lost what was freed here: the log reports that, at the same length. */
static void what_is_dropped_is_logged(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4000; i += 100) {
        print(i, 100);
        answer_all();
    }
    assert_int_equal(task.log.bytes, 44000);
    assert_true(task.log.gone > 22000 + 64);
    task.log_acked = 22000; /* as it reported */
    sent_size = 22000;
    logs_linked(&task);
    assert_int_equal(sent_size, 44000);
    sent[sent_size] = '\0';
    const char *report = strstr(sent + 22000, "[cadre: here 64 bytes were lost");
    assert_non_null(report);
    assert_true(report < sent + 22000 + 64);
    assert_null(memchr(sent, '\0', sent_size));
    assert_memory_equal(sent + 44000 - 11, "line 03999\n", 11);
}

/* All that flies is refused, each for itself: there is one pause, then one chunk, then the rest. */
static void one_refusal_is_one_pause(void **state)
{
    (void)state;
    fixture.options.log_limit_bytes = 1 << 20;
    prng = (struct prng){1};
    stored_size = 0;
    answer_count = 0;
    take = take_or_refuse;
    for (refusals = 10; answer_count < 30;) {
        print(0, 1);
    }
    size_t refused_at = stored_size;
    while (answer_count > 0) {
        answer_one();
    }
    assert_true(armed);
    assert_true(task.log_probes);
    print(1, 30);
    assert_int_equal(answer_count, 0);
    end_pause();
    assert_int_equal(answer_count, 1);
    assert_in_range(stored_size, refused_at, task.log.bytes);
    refusals = 0;
    while (answer_count > 0 || armed) {
        answer_count > 0 ? answer_one() : end_pause();
    }
    assert_int_equal(stored_size, task.log.bytes);
}

/* What was read of the task's pipes is written before more is; nothing of it is there before; and
 * a daemon that leaves waits for that alone. */
static void a_slow_disk_holds_up_the_task_alone(void **state)
{
    (void)state;
    disk_is_slow = true;
    print(0, 1);
    assert_true(held);
    print(1, 2); /* the rest of one that ended */
    assert_int_equal(sent_size, 0);
    assert_false(tasks_log_is_stored(&task));
    fixture.tasks = &task;
    assert_false(logs_pause_all(&fixture));
    end_io();
    assert_int_equal(sent_size, 11);
    assert_true(held);
    assert_false(logs_pause_all(&fixture));
    end_io();
    assert_true(logs_pause_all(&fixture));
    end_turns();
    assert_int_equal(sent_size, 33);
    assert_false(tasks_log_is_stored(&task));
    answer_all();
    end_turns();
    assert_true(tasks_log_is_stored(&task));
}

/* The first line after a pause, and the last ones, wait for nothing. */
static void short_pieces_are_sent_together(void **state)
{
    (void)state;
    fixture.log_pause_us = 3600 * CADRE_US_PER_S;
    print(0, 1);
    assert_int_equal(pause_us, 0);
    print(1, 9);
    assert_int_equal(sent_size, 11);
    assert_in_range(pause_us, 1, fixture.log_pause_us);
    task.log_due_us = 0; /* the pause is over */
    fixture.tasks = &task;
    logs_ship_all(&fixture);
    print(10, 1);
    assert_int_equal(sent_size, 110);
    logs_ship_rest(&task);
    task.collecting = true;
    print(11, 1);
    assert_int_equal(sent_size, 132);
}

static void a_lot_waits_for_no_pause(void **state)
{
    (void)state;
    fixture.log_pause_us = 3600 * CADRE_US_PER_S;
    fixture.options.log_limit_bytes = SENT_MAX;
    for (print(0, 1); sent_size == 11; print(0, 1)) {
        assert_true(task.log.bytes <= 33 * 1024);
    }
    assert_true(sent_size >= 32 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_arrives_while_it_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_a_chunk_comes_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_known_is_no_refusal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_dropped_is_logged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_refusal_is_one_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slow_disk_holds_up_the_task_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_pieces_are_sent_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lot_waits_for_no_pause, set_up, tear_down),
        cmocka_unit_test(whatever_happens_each_byte_is_kept_or_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
