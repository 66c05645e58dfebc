/* SPDX-License-Identifier: Apache-2.0
 * The key and text of an assigned value, by which replicas detect that they assign different
 * ones. */
#include <inttypes.h>
#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/variables/assign.h"
#include "worker/library/runtime/variables/change_note.h"

static const char *const hows[] = {[CADRE_ASSIGN] = "CADRE_ASSIGN",
    [CADRE_ASSIGN_ADD] = "CADRE_ASSIGN_ADD",
    [CADRE_ASSIGN_SUB] = "CADRE_ASSIGN_SUB"};

static uint64_t key_of(const cadre_tensor *value)
{
    if (cadre_tensor_dtype(value) != CADRE_STRING) {
        return change_key_bytes(0, cadre_tensor_const_data(value), cadre_tensor_bytes(value));
    }
    const cadre_string *strings = cadre_tensor_const_data(value);
    uint64_t key = 0;
    for (int64_t i = 0; i < cadre_tensor_count(value); i++) {
        key = collective_key(key, strings[i].size);
        key = change_key_bytes(key, strings[i].bytes, strings[i].size);
    }
    return key;
}

/* The fewest digits that identify the number. */
static void number_text(const cadre_tensor *value, char *text, size_t room)
{
    cadre_dtype dtype = cadre_tensor_dtype(value);
    if (dtype == CADRE_I64) {
        snprintf(text, room, "%" PRId64, *(const int64_t *)cadre_tensor_const_data(value));
        return;
    }
    double number = 0;
    reals_double(value, 0, 1, &number);
    snprintf(text, room, "%.*g", dtype == CADRE_F64 ? 17 : 9, number);
}

uint64_t assign_key(const struct assignment *assignment, char ret_value[ASSIGN_VALUE_BYTES])
{
    const cadre_tensor *value = assignment->value;
    CADRE_ASSERT((value == NULL) != (assignment->values == NULL));
    uint64_t key = change_key(assignment->function, assignment->variable);
    key = collective_key(key, assignment->how);
    const char *how = hows[assignment->how];
    if (assignment->values != NULL) { /* those of the replicas differ from task to task */
        snprintf(ret_value, ASSIGN_VALUE_BYTES, "%s", how);
        return key;
    }
    uint64_t own = key_of(value);
    int64_t count = cadre_tensor_count(value);
    int used =
        assignment->how == CADRE_ASSIGN ? 0 : snprintf(ret_value, ASSIGN_VALUE_BYTES, "%s, ", how);
    char *text = ret_value + used;
    size_t room = ASSIGN_VALUE_BYTES - (size_t)used;
    if (cadre_tensor_dtype(value) != CADRE_STRING &&
        (count == 1 || (assignment->literal && count > 0))) {
        number_text(value, text, room);
    } else {
        snprintf(text, room, "a value of digest %08x", (unsigned)(own >> 32));
    }
    return collective_key(key, own);
}
