/* SPDX-License-Identifier: Apache-2.0
 * The rules for the marks of a log: they are of the bytes that they come with. */
#include "tests/unit/wire/refuse.h"

SEND(agent_up)
SEND(logs_request)
SEND(log_chunk)

static void marks_are_of_the_bytes(void **state)
{
    (void)state;
    struct agent_up up = {.type = AGENT_UP_LOG, .log = {.task = {.job = {1}, .incarnation = 1}}};
    struct log_mark marks[2] = {{.offset = 1}, {.offset = 0}};
    up.log.size_bytes = 2;
    char *text = long_text(2);
    up.log.bytes = (const uint8_t *)text;
    up.log.marks = marks;
    up.log.mark_count = 2;
    assert_error(send_agent_up(&up), INVALID, &error, "AgentLog.marks are not of the data");
    marks[0].offset = 0;
    assert_error(send_agent_up(&up), INVALID, &error, "AgentLog.marks are not of the data");
    marks[1].offset = 2;
    assert_error(send_agent_up(&up), INVALID, &error, "AgentLog.marks are not of the data");
    marks[1].stream = 3;
    assert_error(send_agent_up(&up), INVALID, &error, "LogMark.stream is 3");
    free(text);
}

static void so_are_those_for_clients(void **state)
{
    (void)state;
    const struct log_mark late = {.offset = 1};
    assert_error(send_log_chunk(&(struct log_chunk){.job = {1},
                     .bytes = (const uint8_t *)"ab",
                     .size_bytes = 2,
                     .marks = &late,
                     .mark_count = 1}),
        INVALID, &error, "LogChunk.marks are not of the data");
    assert_error(send_logs_request(&(struct logs_request){.id = {1}, .stream = 3}), INVALID, &error,
        "LogsRequest.stream is 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_of_the_bytes), cmocka_unit_test(so_are_those_for_clients)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
