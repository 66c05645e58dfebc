/* SPDX-License-Identifier: Apache-2.0
 * Prometheus' text format, byte by byte. */
#include <math.h>
#include <string.h>

#include "common/http/exposition.h"
#include "tests/lib/test.h"

static void assert_text(struct exposition *out, const char *wanted)
{
    exposition_text(out, "%c", '\0');
    assert_false(out->failed);
    assert_string_equal(out->text, wanted);
    exposition_free(out);
}

static void families_and_samples(void **state)
{
    (void)state;
    struct exposition out = {0};
    exposition_one_count(&out, "a_total", EXPOSITION_COUNTER, "Counts.", UINT64_MAX);
    exposition_family(&out, "b", EXPOSITION_GAUGE, "Two of them.");
    exposition_count_by(&out, "state", "ready", 3);
    exposition_sample(
        &out, (const struct exposition_label[]){{"state", "away"}, {"zone", "1"}}, 2, 0.1);
    assert_text(&out, "# HELP a_total Counts.\n# TYPE a_total counter\na_total "
                      "18446744073709551615\n# HELP b Two of them.\n# TYPE b gauge\n"
                      "b{state=\"ready\"} 3\nb{state=\"away\",zone=\"1\"} 0.1\n");
}

static void numbers_read_back(void **state)
{
    (void)state;
    struct exposition out = {0};
    const double values[] = {
        0, 1.0 / 3, 1e300, -2.5, (double)NAN, (double)INFINITY, -(double)INFINITY, 1795391433.25};
    exposition_family(&out, "v", EXPOSITION_GAUGE, "Values.");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        exposition_sample(&out, NULL, 0, values[i]);
    }
    assert_text(&out, "# HELP v Values.\n# TYPE v gauge\nv 0\nv 0.3333333333333333\nv 1e+300\n"
                      "v -2.5\nv NaN\nv +Inf\nv -Inf\nv 1795391433.25\n");
}

/* A job's name is anything. */
static void labels_are_escaped(void **state)
{
    (void)state;
    struct exposition out = {0};
    char large[600];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    exposition_family(&out, "j", EXPOSITION_GAUGE, "Jobs.");
    exposition_count_by(&out, "name", "a\"b\\c\nd\x80\x1b\xc3\xa9", 1);
    exposition_count_by(&out, "name", large, 2);
    exposition_text(&out, "%c", '\0');
    assert_non_null(strstr(out.text, "j{name=\"a\\\"b\\\\c\\nd??\xc3\xa9\"} 1\n"));
    assert_true(out.size < 400);
    exposition_free(&out);
}

static void a_histogram_adds_up(void **state)
{
    (void)state;
    struct exposition out = {0};
    struct histogram histogram = {0};
    histogram_add(&histogram, 50);
    histogram_add(&histogram, 51);
    histogram_add(&histogram, 60000000);
    exposition_family(&out, "h_seconds", EXPOSITION_HISTOGRAM, "Times.");
    exposition_histogram(&out, &histogram);
    exposition_text(&out, "%c", '\0');
    assert_non_null(strstr(out.text, "h_seconds_bucket{le=\"5e-05\"} 1\n"
                                     "h_seconds_bucket{le=\"0.0001\"} 2\n"));
    assert_non_null(strstr(out.text, "h_seconds_bucket{le=\"10\"} 2\n"
                                     "h_seconds_bucket{le=\"+Inf\"} 3\n"
                                     "h_seconds_sum 60.000101\nh_seconds_count 3\n"));
    exposition_free(&out);
}

static void a_process_tells_of_itself(void **state)
{
    (void)state;
    static const char *const names[] = {"\nprocess_resident_memory_bytes ",
        "\nprocess_start_time_seconds ", "\nprocess_open_fds ", "\nprocess_max_fds ",
        "\nprocess_virtual_memory_bytes ", "\nprocess_cpu_seconds_total ",
        "\ncadre_build_info{program=\"p\",version=\"",
        "\ncadre_tls_certificate_expiry_timestamp_seconds 1234\n"};
    struct exposition out = {0};
    const struct tls_material tls = {.not_after_s = 1234};
    process_metrics(&out, "p", &tls);
    exposition_text(&out, "%c", '\0');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_non_null(strstr(out.text, names[i]));
    }
    exposition_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_and_samples),
        cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(a_histogram_adds_up),
        cmocka_unit_test(a_process_tells_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
