/* SPDX-License-Identifier: Apache-2.0
 * A key of the mesh mixed with the secret of the cluster. */
#include "tests/lib/test.h"
#include "worker/library/runtime/task/session.h"

static const uint8_t secret[SESSION_KEY_BYTES] = "thirty-two bytes that are a key";
static const uint8_t other[SESSION_KEY_BYTES] = "thirty-two bytes of another key";

static void a_key_of_the_mesh_is_mixed(void **state)
{
    (void)state;
    uint8_t one[SESSION_KEY_BYTES] = "as it was sent";
    uint8_t two[SESSION_KEY_BYTES] = "as it was sent";
    uint8_t three[SESSION_KEY_BYTES] = "as it was sent";
    session_key_mix(secret, one);
    session_key_mix(secret, two);
    session_key_mix(other, three);
    assert_memory_equal(one, two, sizeof one);
    assert_memory_not_equal(one, three, sizeof one);
    assert_memory_not_equal(one, "as it was sent", 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_of_the_mesh_is_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
