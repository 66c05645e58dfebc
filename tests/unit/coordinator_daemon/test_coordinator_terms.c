/* SPDX-License-Identifier: Apache-2.0
 * Hellos that have seen more of a shared log than the coordinator: the log is looked at, and
 * nothing is sent (rule HA12). Without a shared log a later start is refused, as ever. */
#include "coordinator/daemon/base/authorization.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/links.h"
#include "tests/lib/test.h"

static struct daemon stand;
static unsigned looks;
static uint64_t seen_term;
static uint64_t seen_index;

struct term engine_term(const struct engine *engine)
{
    (void)engine;
    return (struct term){.cluster = 9, .start = 4, .nonce = 77};
}

void engine_supersede(struct engine *engine, uint64_t start)
{
    (void)engine;
    (void)start;
    fail();
}

static void look(struct daemon *daemon, uint64_t term, uint64_t index)
{
    assert_ptr_equal(daemon, &stand);
    looks++;
    seen_term = term;
    seen_index = index;
}

static cadre_status check(const struct term *seen, uint64_t index, struct cadre_error *error)
{
    const struct agent_hello hello = {
        .name = "w1", .library_version = "", .seen = *seen, .seen_index = index};
    looks = 0;
    return terms_check(&stand, (struct link_id){1}, &hello, error);
}

static void with_a_shared_log_it_is_read_again(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    static const struct {
        struct term seen;
        uint64_t index;
        uint64_t looked_for; /* an index; 0: none */
    } cases[] = {{{9, 5, 1}, 10, 10}, {{9, 5, 1}, 200, 200}, {{9, 4, 77}, 101, 101},
        {{9, 4, 78}, 3, UINT64_MAX}, {{9, 4, 77}, 100, 0}, {{9, 3, 5}, 900, 0}, {{8, 7, 5}, 900, 0},
        {{0, 0, 0}, 0, 0}};
    stand = (struct daemon){.log_index = 100, .hello_ahead = look};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_status status = check(&cases[i].seen, cases[i].index, &error);
        if (cases[i].looked_for == 0) {
            assert_ok(status, &error);
            assert_int_equal(looks, 0);
            continue;
        }
        assert_error(status, CADRE_UNAVAILABLE, &error, "this coordinator reads the log again");
        assert_int_equal(looks, 1);
        assert_int_equal(seen_term, cases[i].seen.start);
        assert_int_equal(seen_index, cases[i].looked_for);
    }
}

static void without_one_it_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand = (struct daemon){0};
    assert_error(check(&(struct term){9, 5, 1}, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "has served the later start 5 of this cluster's coordinator");
    assert_error(check(&(struct term){9, 4, 78}, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "two run with copies of one state directory");
    assert_ok(check(&(struct term){9, 4, 77}, 900, &error), &error);
    assert_int_equal(looks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_a_shared_log_it_is_read_again),
        cmocka_unit_test(without_one_it_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
