/* SPDX-License-Identifier: Apache-2.0
 * cadre_export and cadre_import: variables as a file that others read, and back; files that cannot
 * be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/unit/runtime/job.h"
#include "training.h"
#include "worker/library/runtime/state/format/safetensors.h"

static const char *self;

static cadre_variable *create(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const void *values)
{
    cadre_variable *variable;
    cadre_tensor *tensor;
    assert_public_ok(cadre_variable_create(strategy, name, dtype, rank, dims, NULL, &variable));
    assert_public_ok(cadre_tensor_from_data(dtype, rank, dims, values, &tensor));
    assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, tensor));
    cadre_tensor_release(tensor);
    return variable;
}

static void assert_held(const cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const void *values, size_t bytes)
{
    cadre_variable *variable = training_find(strategy, name);
    assert_non_null(variable);
    assert_int_equal(cadre_variable_dtype(variable), dtype);
    assert_int_equal(cadre_variable_rank(variable), rank);
    if (rank > 0) {
        assert_memory_equal(cadre_variable_dims(variable), dims, rank * sizeof *dims);
    }
    assert_memory_equal(cadre_variable_read(NULL, variable), values, bytes);
}

static char *read_whole(const char *folder, const char *name, size_t *ret_size)
{
    struct cadre_error error;
    char path[TEST_PATH_BYTES];
    char *bytes;
    assert_ok(file_read(test_path(path, folder, name), 65536, &bytes, ret_size, &error), &error);
    return bytes;
}

/* --- there and back --- */

static const float matrix[] = {1, 2, 3, 4, 5, 6};
static const uint16_t halves[] = {0x3c00, 0xc000}; /* 1 and -2 */
static const uint8_t bits[] = {1, 0, 1};
static const int64_t two_by_three[] = {2, 3};
static const int64_t two[] = {2};
static const int64_t three[] = {3};

static void make_model(cadre_strategy *strategy)
{
    const cadre_variable_options summed = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    const double pi = 3.25;
    cadre_variable *seen;
    create(strategy, "dense/kernel", CADRE_F32, 2, two_by_three, matrix);
    create(strategy, "half", CADRE_F16, 1, two, halves);
    create(strategy, "brain", CADRE_BF16, 1, two, halves);
    create(strategy, "mask", CADRE_BOOL, 1, three, bits);
    create(strategy, "pi", CADRE_F64, 0, NULL, &pi);
    create(strategy, "none", CADRE_I32, 1, (const int64_t[]){0}, bits);
    assert_public_ok(cadre_variable_create(strategy, "seen", CADRE_I64, 0, NULL, &summed, &seen));
    assert_public_ok(cadre_variable_assign_literal(NULL, seen, CADRE_ASSIGN, 12));
}

static void a_model_comes_back(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    cadre_strategy *strategy = training_strategy(2);
    make_model(strategy);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    test_path(path, test_temp_dir(), "model.safetensors");
    assert_public_ok(cadre_export(strategy, path, NULL, 0));
    cadre_strategy_release(strategy);

    strategy = training_strategy(3);
    const double pi = 3.25;
    assert_public_ok(cadre_import(strategy, path));
    assert_held(strategy, "dense/kernel", CADRE_F32, 2, two_by_three, matrix, sizeof matrix);
    assert_held(strategy, "half", CADRE_F16, 1, two, halves, sizeof halves);
    assert_held(strategy, "brain", CADRE_BF16, 1, two, halves, sizeof halves);
    assert_held(strategy, "mask", CADRE_BOOL, 1, three, bits, sizeof bits);
    assert_held(strategy, "pi", CADRE_F64, 0, NULL, &pi, sizeof pi);
    assert_held(strategy, "none", CADRE_I32, 1, (const int64_t[]){0}, bits, 0);
    assert_null(training_find(strategy, "seen")); /* what is combined is to be named */
    assert_int_equal(cadre_variable_kind(training_find(strategy, "pi")), CADRE_VARIABLE_MIRRORED);
    assert_int_equal(cadre_variable_components(training_find(strategy, "pi")), 3);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static void signatures_name_what_a_file_offers(void **state)
{
    (void)state;
    static const cadre_signature signatures[] = {
        {"weights", "dense/kernel"}, {"examples", "seen"}, {"pi", NULL}};
    struct cadre_error error = {0};
    struct safetensors_entry *entries;
    size_t count;
    size_t size;
    uint64_t position;
    cadre_strategy *strategy = training_strategy(2);
    make_model(strategy);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_export(strategy, "named.safetensors", signatures, 3));
    cadre_strategy_release(strategy);
    char *bytes = read_whole(training_folder(), "named.safetensors", &size); /* where outputs go */
    assert_ok(safetensors_decode(bytes, size, &entries, &count, &position, &error), &error);
    assert_int_equal(count, 3);
    assert_int_equal(position, 1);
    assert_non_null(memmem(bytes, size, "\"variable/weights\":\"dense/kernel\"", 33));
    assert_null(memmem(bytes, size, "variable/pi", 11));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, "examples") == 0) {
            assert_int_equal(*(const int64_t *)entries[i].data, 12); /* the total */
        }
    }
    free(entries);
    free(bytes);

    /* The variables are found again under their own names. */
    char path[TEST_PATH_BYTES];
    test_path(path, training_folder(), "named.safetensors");
    strategy = training_strategy(1);
    assert_public_ok(cadre_import(strategy, path));
    assert_held(strategy, "dense/kernel", CADRE_F32, 2, two_by_three, matrix, sizeof matrix);
    assert_null(training_find(strategy, "weights"));
    assert_non_null(training_find(strategy, "seen"));
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    const float zeros[6] = {0};
    create(strategy, "dense/kernel", CADRE_F32, 2, two_by_three, zeros);
    cadre_restore_result found;
    assert_public_ok(cadre_restore(strategy, path, &found));
    assert_int_equal(found.restored, 1);
    assert_held(strategy, "dense/kernel", CADRE_F32, 2, two_by_three, matrix, sizeof matrix);
    cadre_strategy_release(strategy);
}

/* The same values are the same bytes, whatever the number of replicas. */
static void equal_values_are_equal_files(void **state)
{
    (void)state;
    const char *folder = test_temp_dir();
    const char *names[] = {"one.safetensors", "two.safetensors"};
    char *bytes[2];
    size_t sizes[2];
    for (uint32_t i = 0; i < 2; i++) {
        char path[TEST_PATH_BYTES];
        cadre_strategy *strategy = training_strategy(i + 1);
        make_model(strategy);
        assert_public_ok(cadre_export(strategy, test_path(path, folder, names[i]), NULL, 0));
        cadre_strategy_release(strategy);
        bytes[i] = read_whole(folder, names[i], &sizes[i]);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* --- files that cannot be read --- */

static const char *write_tensors(const char *header, size_t data_bytes, char path[TEST_PATH_BYTES])
{
    struct cadre_error error;
    uint8_t file[4096] = {0};
    size_t length = strlen(header);
    assert_true(8 + length + data_bytes <= sizeof file);
    file[0] = (uint8_t)(length & 0xff);
    file[1] = (uint8_t)(length >> 8);
    memcpy(file + 8, header, length);
    test_path(path, test_temp_dir(), "wrong.safetensors");
    assert_ok(file_write_atomic(path, file, 8 + length + data_bytes, 0644, &error), &error);
    return path;
}

#define F32(name, shape, begin, end)                                                               \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

static void wrong_files_are_refused(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        cadre_status status;
        const char *reported;
    } cases[] = {
        {"{" F32("a", "2", "0", "8") "}", 7, CADRE_DATA_LOSS, "tensor 'a' is at bytes 0 to 8"},
        {"{" F32("a", "3", "0", "8") "}", 8, CADRE_DATA_LOSS, "which is not its shape's size"},
        {"{" F32("a", "2", "0", "8") "," F32("b", "1", "4", "8") "}", 8, CADRE_DATA_LOSS,
            "tensors 'a' and 'b' overlap"},
        {"{" F32("a", "1", "0", "4") "," F32("a", "1", "4", "8") "}", 8, CADRE_DATA_LOSS,
            "duplicate"},
        {"{" F32("a", "1", "0", "4") "}", 8, CADRE_DATA_LOSS, "belong to no tensor"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, CADRE_DATA_LOSS,
            "unknown type 'F8_E4M3'; write it as"},
        {"{\"a\":3}", 0, CADRE_DATA_LOSS, "tensor 'a' is not whole"},
        {"{\"a\"", 0, CADRE_DATA_LOSS, "not a JSON object"},
        {"{" F32("a", "1,1,1,1,1,1,1,1,1", "0", "4") "}", 4, CADRE_DATA_LOSS, "not whole"},
        {"{" F32("", "1", "0", "4") "}", 4, CADRE_INVALID_ARGUMENT, "is empty"},
        {"{" F32("\\u00e9", "1", "0", "4") "}", 4, CADRE_INVALID_ARGUMENT, "printable ASCII"},
        {"{\"__metadata__\":{\"variable/a\":\"b\"}," F32("a", "1", "0", "4") "," F32(
             "b", "1", "4", "8") "}",
            8, CADRE_DATA_LOSS, "holds two values of variable 'b'"},
        {"{" F32("z", "1", "0", "4") "," F32("there", "1", "4", "8") "}", 8, CADRE_ALREADY_EXISTS,
            "holds 'there', and the program has a variable of that name; give it its value by"},
    };
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const float one = 1;
    create(strategy, "there", CADRE_F32, 0, NULL, &one);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[TEST_PATH_BYTES];
        write_tensors(cases[i].header, cases[i].data, path);
        assert_public_error(cadre_import(strategy, path), cases[i].status, cases[i].reported);
        assert_non_null(strstr(cadre_error_message(), "wrong.safetensors"));
        assert_null(training_find(strategy, "a"));
        assert_null(training_find(strategy, "z"));
    }
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, '{', '}'};
    test_path(path, test_temp_dir(), "huge.safetensors");
    for (size_t size = 0; size <= sizeof huge; size++) {
        assert_ok(file_write_atomic(path, huge, size, 0644, &error), &error);
        assert_public_error(cadre_import(strategy, path), CADRE_DATA_LOSS, "huge.safetensors");
        assert_public_error(
            cadre_restore(strategy, path, NULL), CADRE_DATA_LOSS, "huge.safetensors");
    }
    cadre_strategy_release(strategy);
}

static void misuse_is_reported(void **state)
{
    static const cadre_signature twice[] = {{"a", "v"}, {"a", "w"}};
    static const cadre_signature absent[] = {{"a", "absent"}};
    static const cadre_signature unnamed[] = {{NULL, "v"}};
    static const cadre_signature words[] = {{"words", NULL}};
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const float one = 1;
    cadre_variable *strings;
    create(strategy, "v", CADRE_F32, 0, NULL, &one);
    create(strategy, "w", CADRE_F32, 0, NULL, &one);
    assert_public_error(cadre_export(strategy, NULL, NULL, 0), CADRE_INVALID_ARGUMENT, "path");
    assert_public_error(
        cadre_export(strategy, "model", NULL, 0), CADRE_INVALID_ARGUMENT, "does not end with");
    assert_public_error(cadre_export(strategy, "gs://b/m.safetensors", NULL, 0),
        CADRE_INVALID_ARGUMENT, "which begins with a scheme");
    assert_public_error(cadre_export(strategy, "https://host/m.safetensors", NULL, 0),
        CADRE_INVALID_ARGUMENT, "which is read only");
    assert_public_error(cadre_export(strategy, "a/.safetensors", NULL, 0), CADRE_INVALID_ARGUMENT,
        "does not end with");
    assert_public_error(
        cadre_export(strategy, "m.safetensors", NULL, 2), CADRE_INVALID_ARGUMENT, "signatures");
    assert_public_error(
        cadre_export(strategy, "m.safetensors", twice, 2), CADRE_ALREADY_EXISTS, "called 'a'");
    assert_public_error(cadre_export(strategy, "m.safetensors", absent, 1), CADRE_NOT_FOUND,
        "no variable 'absent'");
    assert_public_error(
        cadre_export(strategy, "m.safetensors", unnamed, 1), CADRE_INVALID_ARGUMENT, "is NULL");
    assert_public_error(cadre_export(strategy, "/nonexistent/m.safetensors", NULL, 0),
        CADRE_NOT_FOUND, "/nonexistent");
    assert_public_error(cadre_import(strategy, "/nonexistent/m.safetensors"), CADRE_NOT_FOUND,
        "/nonexistent/m.safetensors");
    assert_public_error(
        cadre_import(strategy, "checkpoint-1.json"), CADRE_INVALID_ARGUMENT, "does not end with");
    assert_public_ok(cadre_variable_create(
        strategy, "words", CADRE_STRING, 1, (const int64_t[]){2}, NULL, &strings));
    assert_public_error(cadre_export(strategy, "m.safetensors", NULL, 0), CADRE_INVALID_ARGUMENT,
        "variable 'words' holds strings, which a safetensors file cannot hold; name");
    assert_public_error(
        cadre_export(strategy, "m.safetensors", words, 1), CADRE_INVALID_ARGUMENT, "leave it out");
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_public_error(
        cadre_import(strategy, "m.safetensors"), CADRE_FAILED_PRECONDITION, "after the first step");
    cadre_strategy_release(strategy);
    assert_public_error(cadre_import(cadre_strategy_current(), "m.safetensors"),
        CADRE_FAILED_PRECONDITION, "the default strategy has no variables");
    assert_public_error(cadre_restore(cadre_strategy_current(), "m.safetensors", NULL),
        CADRE_FAILED_PRECONDITION, "make a strategy");
}

static void a_full_disk_leaves_the_file_that_is_there(void **state)
{
    static const char *const points[] = {
        "checkpoint.create", "checkpoint.write", "checkpoint.fsync"};
    (void)state;
    const char *folder = test_temp_dir();
    char path[TEST_PATH_BYTES];
    size_t size;
    cadre_strategy *strategy = training_strategy(1);
    const float one = 1;
    cadre_variable *v = create(strategy, "v", CADRE_F32, 0, NULL, &one);
    test_path(path, folder, "m.safetensors");
    assert_public_ok(cadre_export(strategy, path, NULL, 0));
    char *first = read_whole(folder, "m.safetensors", &size);
    assert_public_ok(cadre_variable_assign_literal(NULL, v, CADRE_ASSIGN, 5));
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        size_t now;
        fault_arm(points[i], 1);
        assert_public_error(
            cadre_export(strategy, path, NULL, 0), CADRE_RESOURCE_EXHAUSTED, "No space left");
        assert_true(fault_disarm());
        char *bytes = read_whole(folder, "m.safetensors", &now);
        assert_int_equal(now, size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
    }
    free(first);
    assert_public_ok(cadre_export(strategy, path, NULL, 0)); /* the strategy goes on */
    cadre_strategy_release(strategy);
}

/* --- as tasks of a job --- */

/* Exports, and a second run imports: the path is in the environment's MODEL. */
static int program(const char *how)
{
    cadre_strategy *strategy = job_strategy();
    if (strcmp(how, "export") == 0) {
        cadre_variable *v;
        CADRE_CHECK(cadre_variable_create(strategy, "v", CADRE_F64, 1, &(int64_t){3}, NULL, &v));
        CADRE_CHECK(cadre_variable_assign_literal(NULL, v, CADRE_ASSIGN, 2.5));
        CADRE_CHECK(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
        CADRE_CHECK(cadre_export(strategy, getenv("MODEL"), NULL, 0));
        return cadre_finish(strategy);
    }
    CADRE_CHECK(cadre_import(strategy, getenv("MODEL")));
    const double *values = cadre_variable_read(NULL, training_find(strategy, "v"));
    printf("v %g %g\n", values[0], values[2]);
    CADRE_CHECK(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    cadre_status status = cadre_export(strategy, "/nonexistent/m.safetensors", NULL, 0);
    printf("%s: %s\n", cadre_status_name(status), cadre_error_message());
    return cadre_finish(strategy);
}

static unsigned times_printed(const struct job_end *end, const char *line)
{
    unsigned times = 0;
    for (const char *at = end->printed; (at = strstr(at, line)) != NULL; at++) {
        times++;
    }
    return times;
}

static void all_tasks_have_what_the_first_reads(void **state)
{
    static const char *const ways[] = {"export", "import"};
    (void)state;
    struct job_end end;
    char model[TEST_PATH_BYTES + 32];
    snprintf(model, sizeof model, "MODEL=%s/m.safetensors", test_temp_dir());
    for (int i = 0; i < 2; i++) {
        const char *environment[] = {model, "CADRE_VERIFY_STATE=1"};
        const struct local_options options = {.program = self,
            .arguments = &ways[i],
            .argument_count = 1,
            .environment = environment,
            .environment_count = 2,
            .tasks = 2,
            .replicas = 2,
            .output = test_temp_dir(),
            .grace_us = 1000000};
        job_run(&options, &end);
        if (end.exit_code != 0) {
            job_wrong(ways[i], &end);
        }
    }
    if (times_printed(&end, "v 2.5 2.5\n") != 2 || times_printed(&end, "NOT_FOUND: ") != 2) {
        job_wrong("import", &end);
    }
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1) {
        return program(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_comes_back),
        cmocka_unit_test(signatures_name_what_a_file_offers),
        cmocka_unit_test(equal_values_are_equal_files),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(misuse_is_reported),
        cmocka_unit_test(a_full_disk_leaves_the_file_that_is_there),
        cmocka_unit_test(all_tasks_have_what_the_first_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
