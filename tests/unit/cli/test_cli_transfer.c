/* SPDX-License-Identifier: Apache-2.0
 * The status line of an upload or download, at times of a clock that the test sets. */
#include "coordinator/cli/render/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"

#define MIB (UINT64_C(1024) * 1024)

static char *printed;
static size_t printed_bytes;

/* As on a terminal of 120 columns. */
static FILE *open_shown(struct transfer *transfer)
{
    FILE *err = open_memstream(&printed, &printed_bytes);
    assert_non_null(err);
    transfer_open(transfer, stdout, err, CADRE_US_PER_S);
    assert_false(transfer->screen.live);
    transfer->screen.live = true;
    transfer->screen.err_style.columns = 120;
    return err;
}

static void it_has_bytes_rate_and_time_left(void **state)
{
    (void)state;
    struct transfer transfer;
    FILE *err = open_shown(&transfer);
    transfer_show(&transfer, "fetching a (1 of 2)", 0, 64 * MIB, CADRE_US_PER_S);
    assert_string_equal(
        transfer.screen.status, "fetching a (1 of 2)  0 B/64.0 MiB [>                   ]");
    transfer_show(&transfer, "fetching a (1 of 2)", 32 * MIB, 64 * MIB, 5 * CADRE_US_PER_S);
    assert_string_equal(transfer.screen.status,
        "fetching a (1 of 2)  32.0 MiB/64.0 MiB [==========>         ]  8.0 MiB/s  0:04 left");
    transfer_show(&transfer, "fetching b (2 of 2)", 64 * MIB, 64 * MIB, 9 * CADRE_US_PER_S);
    assert_string_equal(transfer.screen.status,
        "fetching b (2 of 2)  64.0 MiB/64.0 MiB [====================]  8.0 MiB/s  0:00 left");
    transfer_clear(&transfer);
    assert_string_equal(transfer.screen.status, "");
    fclose(err);
    assert_non_null(strstr(printed, "\r\033[K"));
    free(printed);
}

static void it_is_drawn_ten_times_a_second(void **state)
{
    (void)state;
    struct transfer transfer;
    FILE *err = open_shown(&transfer);
    for (uint64_t i = 0; i < 1000; i++) { /* one second */
        transfer_show(
            &transfer, "uploading", i * MIB, 1000 * MIB, CADRE_US_PER_S + i * CADRE_US_PER_MS);
    }
    fclose(err);
    size_t lines = 0;
    for (const char *at = printed; (at = strstr(at, "\ruploading")) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines, 10);
    free(printed);
}

static void a_pipe_gets_nothing(void **state)
{
    (void)state;
    struct transfer transfer;
    FILE *err = open_shown(&transfer);
    transfer.screen.live = false;
    transfer_show(&transfer, "uploading", 1, 2, 9 * CADRE_US_PER_S);
    transfer_clear(&transfer);
    fclose(err);
    assert_int_equal(printed_bytes, 0);
    free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_bytes_rate_and_time_left),
        cmocka_unit_test(it_is_drawn_ten_times_a_second),
        cmocka_unit_test(a_pipe_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
