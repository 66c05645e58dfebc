/* SPDX-License-Identifier: Apache-2.0
 * The index of a descriptor set: names of every kind, and sets that are damaged. What the stream
 * answers is tested by a client in another language (tests/integration/test_reflection.py). */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "common/rpc/fields.h"
#include "common/rpc/reflection_index.h"
#include "common/wire/descriptors.h"
#include "tests/lib/test.h"

static void names_of_every_kind_are_found(void **state)
{
    (void)state;
    struct reflection_index index = {0};
    struct cadre_error error;
    assert_ok(
        reflection_index_fill(&index, wire_descriptors, wire_descriptors_size, &error), &error);
    static const struct {
        const char *name;
        const char *file; /* NULL: it is no name */
        enum symbol_kind kind;
    } cases[] = {
        {"cadre.v1.Jobs", "cadre/v1/jobs.proto", SYMBOL_SERVICE},
        {".cadre.v1.Jobs", "cadre/v1/jobs.proto", SYMBOL_SERVICE},
        {"cadre.v1.Jobs.Submit", "cadre/v1/jobs.proto", SYMBOL_OTHER},
        {"cadre.v1.JobInfo", "cadre/v1/jobs.proto", SYMBOL_MESSAGE},
        {"cadre.v1.JobInfo.state", "cadre/v1/jobs.proto", SYMBOL_OTHER},
        {"cadre.v1.JOB_STATE_QUEUED", "cadre/v1/jobs.proto", SYMBOL_OTHER},
        {"cadre.v1.LogsRequest._slot", "cadre/v1/jobs.proto", SYMBOL_OTHER},
        {"grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto",
            SYMBOL_OTHER},
        {"grpc.health.v1.HealthCheckResponse.SERVING", "grpc/health/v1/health.proto", SYMBOL_OTHER},
        {"cadre.v1", NULL, SYMBOL_OTHER},
        {"cadre.v1.JobState.JOB_STATE_QUEUED", NULL, SYMBOL_OTHER},
        {"", NULL, SYMBOL_OTHER},
        {".", NULL, SYMBOL_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct symbol *symbol =
            reflection_symbol(&index, cases[i].name, strlen(cases[i].name));
        assert_int_equal(symbol != NULL, cases[i].file != NULL);
        if (symbol != NULL) {
            const struct described_file *file = &index.files[symbol->file];
            assert_int_equal(symbol->kind, cases[i].kind);
            assert_int_equal(file->name_size, strlen(cases[i].file));
            assert_memory_equal(file->name, cases[i].file, file->name_size);
        }
    }
    assert_null(reflection_symbol(&index, "cadre.v1.Jobs\0x", 15));
    assert_int_equal(index.service_count, 6);
    reflection_index_free(&index);
}

/* Cut anywhere it is refused, unless the cut is between two files. */
static void cut_sets_are_refused(void **state)
{
    (void)state;
    size_t whole = 0;
    for (size_t size = 0; size < wire_descriptors_size; size += 1 + size / 64) {
        struct reflection_index index = {0};
        struct cadre_error error;
        uint8_t *copy = malloc(size + 1); /* its end is the end of the memory, for the sanitizer */
        memcpy(copy, wire_descriptors, size);
        uint8_t *exact = realloc(copy, size > 0 ? size : 1);
        struct field_reader reader = field_reader(exact, size);
        struct field field;
        while (field_next(&reader, &field)) {
        }
        cadre_status status = reflection_index_fill(&index, exact, size, &error);
        assert_int_equal(status, reader.broken ? CADRE_INVALID_ARGUMENT : CADRE_OK);
        whole += status == CADRE_OK;
        reflection_index_free(&index);
        free(exact);
    }
    assert_true(whole >= 1);
}

static void bent_sets_do_no_harm(void **state)
{
    (void)state;
    struct prng prng = {.state = 20};
    size_t refused = 0;
    for (int round = 0; round < 100; round++) {
        struct reflection_index index = {0};
        struct cadre_error error;
        uint8_t *copy = malloc(wire_descriptors_size);
        memcpy(copy, wire_descriptors, wire_descriptors_size);
        for (int i = 0; i < 8; i++) {
            copy[prng_next(&prng) % wire_descriptors_size] = (uint8_t)prng_next(&prng);
        }
        refused += reflection_index_fill(&index, copy, wire_descriptors_size, &error) != CADRE_OK;
        reflection_index_free(&index);
        free(copy);
    }
    assert_in_range(refused, 1, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_every_kind_are_found),
        cmocka_unit_test(cut_sets_are_refused),
        cmocka_unit_test(bent_sets_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
