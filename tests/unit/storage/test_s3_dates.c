/* SPDX-License-Identifier: Apache-2.0
 * Points in time as headers and documents have them. */
#include "common/storage/s3/dates.h"
#include "tests/lib/test.h"

static void times_of_headers(void **state)
{
    uint64_t s = 0;
    (void)state;
    assert_true(s3_http_date_parse("Fri, 24 May 2013 00:00:00 GMT", &s));
    assert_int_equal(s, 1369353600);
    assert_true(s3_http_date_parse("Thu, 01 Jan 1970 00:00:00 GMT", &s));
    assert_int_equal(s, 0);
    assert_true(s3_http_date_parse("Tue, 29 Feb 2000 23:59:59 GMT", &s));
    assert_int_equal(s, 951868799);
    assert_true(s3_http_date_parse("Mon, 30 Nov 2026 12:26:15 GMT", &s));
    assert_int_equal(s, 1796041575);
    assert_false(s3_http_date_parse(NULL, &s));
    assert_false(s3_http_date_parse("", &s));
    assert_false(s3_http_date_parse("Fri, ", &s));
    assert_false(s3_http_date_parse("Fri, 24 May 2013 00:00:00", &s));
    assert_false(s3_http_date_parse("Fri, 24 Mai 2013 00:00:00 GMT", &s));
    assert_false(s3_http_date_parse("Fri, 00 May 2013 00:00:00 GMT", &s));
    assert_false(s3_http_date_parse("Fri, 24 May 1969 00:00:00 GMT", &s));
    assert_false(s3_http_date_parse("Fri, 24 May 2013 24:00:00 GMT", &s));
    assert_false(s3_http_date_parse("Friday, 24-May-13 00:00:00 GMT", &s));
    assert_false(s3_http_date_parse("2013-05-24T00:00:00Z", &s));
}

static void times_of_documents(void **state)
{
    uint64_t us = 0;
    (void)state;
    assert_true(s3_iso_date_parse("2013-05-24T00:00:00Z", &us));
    assert_int_equal(us, UINT64_C(1369353600000000));
    assert_true(s3_iso_date_parse("2013-05-24T00:00:01.250Z", &us));
    assert_int_equal(us, UINT64_C(1369353601250000));
    assert_true(s3_iso_date_parse("2013-05-24T00:00:01.123456789Z", &us));
    assert_int_equal(us, UINT64_C(1369353601123456));
    assert_true(s3_iso_date_parse("2013-05-24T00:00:00+00:00", &us));
    assert_int_equal(us, UINT64_C(1369353600000000));
    assert_false(s3_iso_date_parse(NULL, &us));
    assert_false(s3_iso_date_parse("", &us));
    assert_false(s3_iso_date_parse("2013-05-24", &us));
    assert_false(s3_iso_date_parse("2013-05-24T00:00:00", &us));
    assert_false(s3_iso_date_parse("2013-13-24T00:00:00Z", &us));
    assert_false(s3_iso_date_parse("2013-05-24T00:00:00+02:00", &us));
    assert_false(s3_iso_date_parse("0000-05-24T00:00:00Z", &us));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_headers),
        cmocka_unit_test(times_of_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
