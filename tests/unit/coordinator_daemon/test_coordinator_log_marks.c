/* SPDX-License-Identifier: Apache-2.0
 * Streams and times of a log, from the chunks of workers to what a reader gets: one stream, the
 * last lines, what came since a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/logs/log_followers.h"
#include "coordinator/daemon/logs/log_read.h"
#include "coordinator/daemon/logs/logs.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

static struct engine engine;
static struct daemon stand;
static struct agent_link agent;

void log_followers_written(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    (void)daemon;
    (void)job;
    (void)slot;
}

void log_followers_job_changed(struct daemon *daemon, struct job_id job)
{
    (void)daemon;
    (void)job;
}

struct agent_link *links_find(const struct daemon *daemon, struct link_id link)
{
    (void)daemon;
    return link.n == agent.id.n ? &agent : NULL;
}

void links_down(void *user, struct link_id link, const struct agent_down *down)
{
    (void)user;
    (void)link;
    assert_int_equal(down->type, AGENT_DOWN_LOG_ACK);
}

void links_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    (void)user;
    (void)link;
    (void)code;
    fail_msg("%s", text);
}

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    agent = (struct agent_link){.id = {7}};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    settle(&stand);
    assert_int_equal(agent.log_bytes, 0);
    daemon_close(&stand);
    return 0;
}

/* As a worker of an earlier version sends it. */
static void write_unmarked(uint64_t *at, const char *text)
{
    struct agent_log chunk = {.task = {.job = {1}, .incarnation = 1},
        .offset = *at,
        .bytes = (const uint8_t *)text,
        .size_bytes = strlen(text)};
    logs_append(&stand, agent.id, &chunk, true);
    *at += chunk.size_bytes;
}

/* Appends at the end of the log: of a stream, at a time. */
static void write_marked(uint64_t *at, enum log_stream stream, uint64_t us, const char *text)
{
    const struct log_mark mark = {.offset = *at, .stream = stream, .received_us = us};
    struct agent_log chunk = {.task = {.job = {1}, .incarnation = 1},
        .offset = *at,
        .bytes = (const uint8_t *)text,
        .size_bytes = strlen(text),
        .marks = &mark,
        .mark_count = 1};
    logs_append(&stand, agent.id, &chunk, true);
    *at += chunk.size_bytes;
}

static struct log_read *new_read(const struct logs_request *request, uint64_t *offset)
{
    struct log_read *read = calloc(1, sizeof *read);
    assert_non_null(read);
    read->daemon = &stand;
    read->job = (struct job_id){1};
    read->offsets = offset;
    read->request = request;
    read->slot_count = 1;
    return read;
}

/* What a reader gets of slot 0. */
static void assert_read(const struct logs_request *wanted, const char *text)
{
    char got[1024] = "";
    uint64_t offset = LOG_READ_BEGIN;
    uint64_t end = 0;
    bool done = false;
    for (unsigned part = 0; !done; part++) {
        CADRE_FREE_AT_EXIT struct log_read *read = new_read(wanted, &offset);
        assert_in_range(part, 0, 20);
        log_read(read);
        done = read->slots_done == 1;
        for (uint32_t i = 0; i < read->piece_count; i++) {
            const struct log_piece *piece = &read->pieces[i];
            size_t used = strlen(got);
            assert_true(part + i == 0 || piece->offset - piece->skipped_bytes == end);
            end = piece->offset + piece->size;
            assert_true(piece->size == 0 || piece->marks[0].offset == piece->offset);
            snprintf(got + used, sizeof got - used, "%.*s", (int)piece->size,
                (const char *)read->bytes + piece->at);
        }
        assert_true(end == 0 || offset == end);
    }
    assert_string_equal(got, text);
}

static void a_reader_gets_the_stream_and_the_lines_it_asks_for(void **state)
{
    (void)state;
    uint64_t at = 0;
    write_unmarked(&at, "old\n");
    write_marked(&at, LOG_STREAM_STDOUT, 100, "out 1\nout");
    write_marked(&at, LOG_STREAM_STDERR, 200, "err 1\n");
    write_marked(&at, LOG_STREAM_STDOUT, 300, " 2\n");
    settle(&stand);
    write_marked(&at, LOG_STREAM_STDERR, 400, "err 2\nerr 3");
    settle(&stand);
    assert_read(&(struct logs_request){0}, "old\nout 1\nouterr 1\n 2\nerr 2\nerr 3");
    assert_read(&(struct logs_request){.stream = LOG_STREAM_STDOUT}, "old\nout 1\nout 2\n");
    assert_read(&(struct logs_request){.stream = LOG_STREAM_STDERR}, "err 1\nerr 2\nerr 3");
    assert_read(&(struct logs_request){.tail_lines = 1}, "err 3");
    assert_read(&(struct logs_request){.tail_lines = 2}, "err 2\nerr 3");
    assert_read(
        &(struct logs_request){.tail_lines = 2, .stream = LOG_STREAM_STDOUT}, "out 1\nout 2\n");
    assert_read(&(struct logs_request){.tail_lines = 1, .stream = LOG_STREAM_STDOUT}, "out 2\n");
    assert_read(&(struct logs_request){.tail_lines = 9, .stream = LOG_STREAM_STDERR},
        "err 1\nerr 2\nerr 3");
    assert_read(&(struct logs_request){.since_us = 300}, " 2\nerr 2\nerr 3");
    assert_read(&(struct logs_request){.since_us = 1}, "out 1\nouterr 1\n 2\nerr 2\nerr 3");
    assert_read(&(struct logs_request){.since_us = 401}, "");
    assert_read(&(struct logs_request){.since_us = 100, .tail_lines = 1}, "err 3");
    assert_read(&(struct logs_request){.since_us = 400, .tail_bytes = 30}, "err 2\nerr 3");
}

/* Many short runs: they do not fit one part, nor one block of the search for lines. */
static void many_streams_are_read_in_parts(void **state)
{
    (void)state;
    static char wanted[16384];
    uint64_t at = 0;
    size_t used = 0;
    stand.options.log_limit_bytes = UINT64_MAX;
    for (unsigned i = 0; i < 300; i++) {
        write_marked(&at, LOG_STREAM_STDOUT, i + 1, "o\n");
        write_marked(&at, LOG_STREAM_STDERR, i + 1, "e\n");
        used += i >= 50 ? (size_t)snprintf(wanted + used, sizeof wanted - used, "e\n") : 0;
        settle(&stand);
    }
    assert_read(&(struct logs_request){.stream = LOG_STREAM_STDERR, .tail_lines = 250}, wanted);
    assert_read(&(struct logs_request){.stream = LOG_STREAM_STDERR, .since_us = 51}, wanted);
}

/* The marks go on where the middle of the log was removed, and lines are counted across it. */
static void a_log_without_its_middle_keeps_its_marks(void **state)
{
    (void)state;
    uint64_t at = 0;
    char line[24];
    stand.options.log_limit_bytes = 800;
    for (unsigned i = 0; i < 400; i++) {
        snprintf(line, sizeof line, "line %04u\n", i);
        write_marked(&at, i % 2 == 0 ? LOG_STREAM_STDOUT : LOG_STREAM_STDERR, i + 1, line);
        settle(&stand);
    }
    assert_read(&(struct logs_request){.stream = LOG_STREAM_STDERR, .tail_lines = 2},
        "line 0397\nline 0399\n");
    assert_read(&(struct logs_request){.since_us = 399}, "line 0398\nline 0399\n");
    uint64_t offset = LOG_READ_BEGIN;
    /* More lines than are kept behind the hole. */
    const struct logs_request long_tail = {.tail_lines = 300};
    CADRE_FREE_AT_EXIT struct log_read *read = new_read(&long_tail, &offset);
    log_read(read);
    assert_int_equal(read->pieces[0].offset, 0);
    assert_int_equal(read->piece_count, 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_reader_gets_the_stream_and_the_lines_it_asks_for),
        TEST(many_streams_are_read_in_parts), TEST(a_log_without_its_middle_keeps_its_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
