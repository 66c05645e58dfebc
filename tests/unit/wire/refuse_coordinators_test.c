/* SPDX-License-Identifier: Apache-2.0
 * The rules for what coordinators say of themselves. */
#include "tests/unit/wire/refuse.h"

SEND(leader_response)
SEND(list_coordinators_response)

static struct leader_response good_leader(void)
{
    return (struct leader_response){
        .self = {.name = "c1", .addresses = "h1:1", .state = COORDINATOR_LEADING, .version = "1"}};
}

static void fields_are_checked(void **state)
{
    (void)state;
    char *text = long_text(LIMIT_TEXT_BYTES);
    struct leader_response leader = good_leader();
    assert_ok(send_leader_response(&leader), &error);
    leader.self.name = "";
    assert_error(send_leader_response(&leader), INVALID, &error, "CoordinatorInfo.name is empty");
    leader = good_leader();
    leader.self.state = "";
    assert_error(send_leader_response(&leader), INVALID, &error, "CoordinatorInfo.state is empty");
    leader = good_leader();
    leader.self.addresses = text;
    assert_error(send_leader_response(&leader), TOO_LARGE, &error, "CoordinatorInfo.addresses");
    leader = good_leader();
    leader.self.age_us = UINT64_MAX;
    assert_error(send_leader_response(&leader), INVALID, &error, "CoordinatorInfo.age_us");
    leader = good_leader();
    leader.self.term = (struct term){.cluster = 1, .start = 0};
    assert_error(send_leader_response(&leader), INVALID, &error, "Term.start is 0");
    leader = good_leader();
    leader.may_lead_us = UINT64_MAX;
    assert_error(send_leader_response(&leader), INVALID, &error, "LeaderResponse.may_lead_us");
    leader = good_leader();
    leader.leader = "a\n";
    assert_error(send_leader_response(&leader), INVALID, &error, "LeaderResponse.leader");
    leader = good_leader();
    leader.leader_addresses = text;
    assert_error(
        send_leader_response(&leader), TOO_LARGE, &error, "LeaderResponse.leader_addresses");
    free(text);
}

static void a_list_has_a_limit(void **state)
{
    (void)state;
    struct coordinator_info many[LIMIT_COORDINATORS + 1];
    for (size_t i = 0; i <= LIMIT_COORDINATORS; i++) {
        many[i] = good_leader().self;
    }
    struct list_coordinators_response list = {many, LIMIT_COORDINATORS};
    assert_ok(send_list_coordinators_response(&list), &error);
    list.count++;
    assert_error(send_list_coordinators_response(&list), TOO_LARGE, &error,
        "ListCoordinatorsResponse.coordinators has 65 entries");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_checked), cmocka_unit_test(a_list_has_a_limit)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
