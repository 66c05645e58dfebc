/* SPDX-License-Identifier: Apache-2.0
 * The values of the sample messages of traces. Included by samples.c alone. */
#ifndef CADRE_TESTS_UNIT_WIRE_SAMPLES_TRACE_H
#define CADRE_TESTS_UNIT_WIRE_SAMPLES_TRACE_H

#include "common/wire/wire.h"

static const struct trace_span traced_spans[] = {
    {.kind = TRACE_ALL_REDUCE,
        .thread = TRACE_THREAD_COMMUNICATION,
        .replica = 65535,
        .step = LIMIT_POSITION,
        .begin_ns = 1501,
        .end_ns = 1504,
        .arrived_ns = 1502,
        .bytes = 1505,
        .match = UINT64_MAX},
    {.kind = INT32_MAX},
};
static const struct task_up spans = {
    .type = TASK_UP_SPANS,
    .spans = {.id = 1506,
        .asked_ns = 1507,
        .answered_ns = 1508,
        .clock = 1509,
        .position = 1510,
        .spans = traced_spans,
        .span_count = 2,
        .sent = 1511,
        .lost = 1512,
        .ended = true,
        .own_numbers = true},
};
static const struct task_up spans_none = {.type = TASK_UP_SPANS, .spans = {.id = 1}};
static const struct task_down trace = {
    .type = TASK_DOWN_TRACE,
    .trace = {.id = 1513,
        .first = 1514,
        .end = 1516,
        .limit_us = LIMIT_TRACE_TIME_US,
        .asked_ns = 1515,
        .own_numbers = true},
};
static const struct task_down trace_off = {.type = TASK_DOWN_TRACE};
static const struct trace_request trace_request = {.id = {1520},
    .next = true,
    .first = LIMIT_POSITION,
    .steps = LIMIT_TRACE_STEPS,
    .limit_us = LIMIT_TRACE_TIME_US};
static const struct trace_request trace_request_bare = {.id = {1}, .steps = 1};
static const struct trace_task traced_tasks[] = {
    {.slot = 16383,
        .incarnation = 1521,
        .state = TRACE_TASK_GONE,
        .worker = "w1",
        .pid = INT32_MAX,
        .clock = 1522,
        .offset_ns = UINT64_MAX,
        .error_ns = 1523,
        .position = LIMIT_POSITION,
        .spans = 1524,
        .lost = 1525,
        .missing = 1526},
    {.worker = ""},
};
static const struct trace_response trace_response = {.first = 1527,
    .end = 1528,
    .clock_ns = 1529,
    .wall_us = 1530,
    .tasks = traced_tasks,
    .task_count = 2,
    .slot = 16382,
    .incarnation = 1531,
    .spans = traced_spans,
    .span_count = 2,
    .ended = true,
    .own_numbers = true,
    .text = "job 3 has ended"};
static const struct trace_response trace_response_bare = {.text = ""};

#endif
