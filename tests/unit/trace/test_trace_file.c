/* SPDX-License-Identifier: Apache-2.0
 * The file for Perfetto: it is JSON whatever the names are, and the spans of a thread nest. */
#include "tests/lib/test.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/trace/json_trace.h"
#include "coordinator/cli/trace/trace_file.h"
#include "tests/unit/trace/made_trace.h"

static json_t *write_and_read(struct trace_store *store, const char *conclusion)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t error;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_true(trace_waits(store));
    assert_true(trace_file_write(store, 3, conclusion, file));
    assert_int_equal(fclose(file), 0);
    json_t *read = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (read == NULL) {
        fail_msg("%s at %d", error.text, error.position);
    }
    free(text);
    return read;
}

static double number_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text != NULL ? text : "";
}

/* Each span is within the one that is open, or behind it. */
static void assert_nested(const json_t *events, double pid, double tid)
{
    double ends[16];
    size_t depth = 0;
    size_t i;
    const json_t *event;
    json_array_foreach((json_t *)events, i, event)
    {
        if (strcmp(text_of(event, "ph"), "X") != 0 || number_of(event, "pid") != pid ||
            number_of(event, "tid") != tid) {
            continue;
        }
        double begin = number_of(event, "ts");
        double end = begin + number_of(event, "dur");
        while (depth > 0 && ends[depth - 1] <= begin + 0.0005) {
            depth--;
        }
        assert_true(depth == 0 || end <= ends[depth - 1] + 0.0015);
        assert_true(depth < 16);
        ends[depth++] = end;
    }
}

static void spans_nest_and_tasks_have_names(void **state)
{
    (void)state;
    const struct made_task tasks[] = {{.input_us = 100, .function_us = 800},
        {.input_us = 700, .checkpoint_us = 50, .function_us = 800, .ahead_us = 300000000}};
    struct trace_store store = {0};
    size_t named = 0;
    size_t waits = 0;
    size_t i;
    const json_t *event;
    made_trace(&store, tasks, 2, 5, true);
    json_t *read = write_and_read(&store, "it is so");
    const json_t *events = json_object_get(read, "traceEvents");
    json_array_foreach((json_t *)events, i, event)
    {
        const json_t *arguments = json_object_get(event, "args");
        if (strcmp(text_of(event, "name"), "process_name") == 0) {
            named++;
            assert_string_equal(text_of(arguments, "name"),
                number_of(event, "pid") == 1 ? "task 0 on w (pid 100)" : "task 1 on w (pid 101)");
        }
        waits += strcmp(text_of(event, "name"), "wait for task 1") == 0 ? 1 : 0;
        assert_true(number_of(event, "ts") < 1e6); /* on one clock */
    }
    assert_int_equal(named, 2);
    assert_int_equal(waits, 5);
    assert_nested(events, 1, 1);
    assert_nested(events, 2, 1);
    const json_t *about = json_object_get(read, "otherData");
    assert_string_equal(text_of(about, "conclusion"), "it is so");
    assert_int_equal(number_of(about, "job"), 3);
    json_decref(read);
    trace_store_free(&store);
}

static void hostile_names_stay_text(void **state)
{
    (void)state;
    static const char *const names[] = {
        "\"},{\"", "</script><b>", "a\\u0000b\\", "\x01\n\t", "\xff\xfe", "\xe2\x80\xae", ""};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        const struct made_task task = {.function_us = 10, .worker = names[n]};
        struct trace_store store = {0};
        size_t i;
        const json_t *event;
        made_trace(&store, &task, 1, 1, true);
        store.spans[0].kind = 77; /* of a later version */
        store.spans[0].thread = 9;
        json_t *read = write_and_read(&store, names[n]);
        json_array_foreach(json_object_get(read, "traceEvents"), i, event)
        {
            const char *kind = text_of(event, "ph");
            assert_true(strcmp(kind, "X") == 0 || strcmp(kind, "M") == 0);
        }
        json_decref(read);
        trace_store_free(&store);
    }
}

static void the_numbers_are_json(void **state)
{
    (void)state;
    const struct made_task tasks[] = {{.function_us = 100}, {.function_us = 900}};
    struct trace_store store = {0};
    struct trace_conclusion conclusion;
    made_trace(&store, tasks, 2, 4, false);
    assert_true(trace_waits(&store));
    assert_true(trace_conclude(&store, &conclusion));
    json_t *json = json_of_trace(&store, &conclusion, 3, "trace-3.json", "so");
    assert_non_null(json);
    assert_int_equal(number_of(json, "awaited"), 1);
    assert_int_equal(number_of(json, "steps"), 4);
    assert_int_equal(json_array_size(json_object_get(json, "tasks")), 2);
    assert_true(fabs(number_of(json, "step_us") - 1000) < 1);
    json_decref(json);
    trace_conclusion_free(&conclusion);
    trace_store_free(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_nest_and_tasks_have_names),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(the_numbers_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
