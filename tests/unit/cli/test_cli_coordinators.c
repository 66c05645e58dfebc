/* SPDX-License-Identifier: Apache-2.0
 * Coordinators as a table and as JSON: one that leads, those that follow, and one alone. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render_coordinators.h"

#define S   UINT64_C(1000000)
#define NOW (1000 * S)

static const struct text_style plain;

static void assert_shown(const cadre_coordinator *coordinators, size_t count, const char *wanted)
{
    const cadre_coordinator_list list = {.coordinators = coordinators, .count = count};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(render_coordinators(&list, NOW, &plain, out));
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

static const cadre_coordinator three[] = {{.name = "h1",
                                              .addresses = "h1:7070",
                                              .state = "follower",
                                              .text = "",
                                              .term = 7,
                                              .since_us = 700 * S,
                                              .applied = 40,
                                              .head = 42,
                                              .version = "0.2.0",
                                              .age_us = 3 * S},
    {.name = "h2",
        .addresses = "h2:7070",
        .state = "leading",
        .text = "",
        .leads = true,
        .term = 7,
        .since_us = 700 * S,
        .applied = 42,
        .head = 42,
        .version = "0.2.0"},
    {.name = "h3",
        .addresses = "",
        .state = "refused",
        .text = "etcd holds an older ledger than this coordinator",
        .term = 6,
        .applied = 50,
        .head = 42,
        .version = "0.2.0",
        .age_us = 130 * S}};

static void they_are_a_table(void **state)
{
    (void)state;
    assert_shown(three, 3,
        "COORDINATOR  STATE     TERM    FOR  BEHIND    UPDATED  VERSION  ADDRESS\n"
        "h1           follower     7      -       2    3 s ago  0.2.0    h1:7070\n"
        "h2           leading      7  5 min       0        now  0.2.0    h2:7070\n"
        "h3           refused      6      -       0  2 min ago  0.2.0    -\n"
        "h3: etcd holds an older ledger than this coordinator\n");
}

static void a_cluster_without_a_leader_is_one(void **state)
{
    (void)state;
    assert_shown(three, 1,
        "COORDINATOR  STATE     TERM  FOR  BEHIND  UPDATED  VERSION  ADDRESS\n"
        "h1           follower     7    -       2  3 s ago  0.2.0    h1:7070\n"
        "No coordinator is known to lead now.\n");
}

static void one_alone_is_behind_nothing(void **state)
{
    (void)state;
    const cadre_coordinator one = {.name = "h1",
        .addresses = "unix:/run/cadre/socket",
        .state = "leading",
        .text = "",
        .leads = true,
        .term = 3,
        .since_us = 999 * S,
        .version = "0.2.0"};
    assert_shown(&one, 1,
        "COORDINATOR  STATE    TERM  FOR  BEHIND  UPDATED  VERSION  ADDRESS\n"
        "h1           leading     3  1 s       -      now  0.2.0    unix:/run/cadre/socket\n");
}

static void json_has_each(void **state)
{
    (void)state;
    const cadre_coordinator_list list = {.coordinators = three, .count = 1};
    json_t *json = json_of_coordinators(&list);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text,
        "{\"coordinators\":[{\"name\":\"h1\",\"address\":\"h1:7070\",\"state\":\"follower\","
        "\"text\":\"\",\"leader\":false,\"term\":7,\"since_us\":700000000,\"applied\":40,"
        "\"head\":42,\"lag_entries\":2,\"version\":\"0.2.0\",\"age_us\":3000000}]}");
    free(text);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_are_a_table),
        cmocka_unit_test(a_cluster_without_a_leader_is_one),
        cmocka_unit_test(one_alone_is_behind_nothing), cmocka_unit_test(json_has_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
