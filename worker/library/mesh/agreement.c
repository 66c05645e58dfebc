/* SPDX-License-Identifier: Apache-2.0
 * Joining call records into one state, and the sentence about the first two calls that differ. */
#include "worker/library/mesh/agreement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool record_equal(const struct call_record *a, const struct call_record *b)
{
    return !a->wrong && !b->wrong && mesh_call_shape_equal(&a->shape, &b->shape);
}

void mesh_agreement_join(struct agreement *agreement, const struct agreement *other)
{
    const struct call_record *candidate = NULL;
    if (!record_equal(&agreement->first, &other->first)) {
        candidate = &other->first;
    } else if (other->differs) {
        candidate = &other->other;
    }
    if (candidate != NULL &&
        (!agreement->differs || candidate->replica < agreement->other.replica)) {
        agreement->differs = true;
        agreement->other = *candidate;
    }
}

static void agreement_describe(const struct call_record *record, char *ret_text, size_t size)
{
    if (record->text[0] != '\0') {
        snprintf(ret_text, size, "%s", record->text);
        return;
    }
    char shape[112];
    mesh_call_shape_describe(&record->shape, shape, sizeof shape);
    snprintf(ret_text, size, "replica %" PRIu32 " called %s", record->replica, shape);
}

/* Whether the two texts are equal, so that the message must add what else differs. */
static bool read_alike(const struct call_record *a, const struct call_record *b)
{
    char text_a[112];
    char text_b[112];
    mesh_call_shape_describe(&a->shape, text_a, sizeof text_a);
    mesh_call_shape_describe(&b->shape, text_b, sizeof text_b);
    return a->text[0] == '\0' && b->text[0] == '\0' && strcmp(text_a, text_b) == 0;
}

void mesh_agreement_explain(const struct agreement *agreement, char *ret_text, size_t size)
{
    char first[MESH_NOTE_BYTES];
    char other[MESH_NOTE_BYTES];
    agreement_describe(&agreement->first, first, sizeof first);
    if (agreement->first.wrong || !agreement->differs) {
        snprintf(ret_text, size, "%s", first);
        return;
    }
    agreement_describe(&agreement->other, other, sizeof other);
    if (agreement->other.wrong) {
        snprintf(ret_text, size, "%s", other);
        return;
    }
    if (agreement->first.text[0] != '\0' && agreement->other.text[0] != '\0') {
        snprintf(ret_text, size, "%s, %s", first, other);
        return;
    }
    const char *end =
        read_alike(&agreement->first, &agreement->other) ? " of other sizes or types" : "";
    snprintf(ret_text, size, "%s, but %s%s", other, first, end);
}
