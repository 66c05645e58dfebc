/* SPDX-License-Identifier: Apache-2.0
 * The line of progress that people see. */
#include <math.h>
#include <string.h>

#include "common/base/progress_bar.h"
#include "tests/lib/test.h"

static void a_whole_line(void **state)
{
    (void)state;
    char text[PROGRESS_BAR_TEXT_BYTES];
    const struct progress_bar_metric metrics[] = {{"loss", 0.21345}, {"accuracy", 0.97}};
    struct progress_bar bar = {.stream = "train",
        .epoch = 2,
        .epochs = 20,
        .step = 10,
        .steps = 20,
        .samples_per_s = 9123,
        .left_s = 64.2,
        .metrics = metrics,
        .metric_count = 2};
    assert_string_equal(progress_bar_render(&bar, 0, text),
        "train  epoch 3/20  step 10/20 [==========>         ]  loss 0.2135  accuracy 0.97  9.12k "
        "samples/s  1:04 left");
    assert_string_equal(progress_bar_render_epoch(&bar, text),
        "train  epoch 3/20  step 10/20  loss 0.2135  accuracy 0.97  9.12k samples/s");
    assert_int_equal(strlen(progress_bar_render(&bar, 30, text)), 30);
    bar.left_s = 7384;
    assert_non_null(strstr(progress_bar_render(&bar, 0, text), "  2:03:04 left"));
}

static void unknown_things_are_left_out(void **state)
{
    (void)state;
    char text[PROGRESS_BAR_TEXT_BYTES];
    struct progress_bar bar = {.left_s = -1};
    assert_string_equal(progress_bar_render(&bar, 0, text), "step 0");
    bar.left_s = NAN;
    bar.samples_per_s = NAN;
    assert_string_equal(progress_bar_render(&bar, 0, text), "step 0");
    bar = (struct progress_bar){.step = 30, .steps = 20, .left_s = -1};
    assert_string_equal(progress_bar_render(&bar, 0, text), "step 30/20 [====================]");
}

static void other_work_has_a_bar_too(void **state)
{
    (void)state;
    char text[PROGRESS_BAR_TEXT_BYTES];
    struct progress_work part = {
        .doing = "reading the ledger", .units = "epochs", .done = 500, .whole = 2000};
    assert_string_equal(progress_bar_render_work(&part, 0, text),
        "reading the ledger  500/2000 epochs [=====>              ]");
    assert_string_equal(progress_bar_render_work(&part, 46, text),
        "reading the ledger  500/2000 epochs [==>     ]");
    assert_string_equal(progress_bar_render_work(&part, 24, text), "reading the ledger  500/");
    part.whole = 0;
    assert_string_equal(progress_bar_render_work(&part, 0, text), "reading the ledger  500 epochs");
    part = (struct progress_work){.doing = "fetching", .amount = "1 B/4 B", .done = 1, .whole = 4};
    assert_string_equal(
        progress_bar_render_work(&part, 0, text), "fetching  1 B/4 B [=====>              ]");
    part.rate = "1 B/s";
    part.left_s = 63;
    assert_string_equal(progress_bar_render_work(&part, 0, text),
        "fetching  1 B/4 B [=====>              ]  1 B/s  1:03 left");
    assert_string_equal(
        progress_bar_render_work(&part, 36, text), "fetching  1 B/4 B  1 B/s  1:03 left");
}

static void it_never_overflows(void **state)
{
    (void)state;
    char text[PROGRESS_BAR_TEXT_BYTES + 1];
    char name[200];
    memset(name, 'x', sizeof name - 1);
    name[0] = '\033';
    name[199] = '\0';
    struct progress_bar_metric metrics[20];
    for (int i = 0; i < 20; i++) {
        metrics[i] = (struct progress_bar_metric){name, -1.2345678e-300};
    }
    struct progress_bar bar = {.stream = name,
        .epoch = UINT64_MAX - 1,
        .epochs = UINT64_MAX,
        .step = UINT64_MAX,
        .steps = UINT64_MAX,
        .samples_per_s = 1e300,
        .left_s = 1e300,
        .metrics = metrics,
        .metric_count = 20};
    text[PROGRESS_BAR_TEXT_BYTES] = '!';
    assert_int_equal(strlen(progress_bar_render(&bar, 0, text)), PROGRESS_BAR_TEXT_BYTES - 1);
    assert_int_equal(text[0], '?');
    assert_int_equal(text[PROGRESS_BAR_TEXT_BYTES], '!');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_line),
        cmocka_unit_test(unknown_things_are_left_out),
        cmocka_unit_test(other_work_has_a_bar_too),
        cmocka_unit_test(it_never_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
