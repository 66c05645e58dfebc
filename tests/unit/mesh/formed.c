/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mesh/formed.h"

#include "tests/lib/test.h"

void await_formed(struct mesh *const *meshes, uint32_t count)
{
    struct cadre_error error;
    for (uint32_t formed = 0; formed < count;) {
        formed = 0;
        for (uint32_t i = 0; i < count; i++) {
            cadre_status status = meshes[i]->ops->form_test(meshes[i], &error);
            assert_true(status == CADRE_OK || status == CADRE_PENDING);
            formed += status == CADRE_OK ? 1 : 0;
        }
    }
}
