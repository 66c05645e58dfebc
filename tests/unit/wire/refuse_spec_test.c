/* SPDX-License-Identifier: Apache-2.0
 * Every rule for a JobSpec, which comes from people: one bent field at a time is refused by name.
 */
#include "common/pure/assert.h"
#include "tests/unit/wire/refuse.h"

SEND(job_spec)

#define BEND_SPEC(field, value, code, text)                                                        \
    do {                                                                                           \
        struct job_spec spec = sample_spec;                                                        \
        spec.field = value;                                                                        \
        assert_error(send_job_spec(&spec), code, &error, text);                                    \
    } while (0)

static void job_spec_fields(void **state)
{
    (void)state;
    char *name = long_text(LIMIT_NAME_BYTES);
    BEND_SPEC(name, "", INVALID, "JobSpec.name is empty");
    BEND_SPEC(name, name, TOO_LARGE, "has 128 bytes; at most 127 are accepted");
    BEND_SPEC(name, "a\x1b[31m", INVALID, "JobSpec.name \"a?[31m\" has a control character");
    BEND_SPEC(name, "a\xc2\x9b", INVALID, "has a control character");
    BEND_SPEC(name, "a\xff", INVALID, "JobSpec.name \"a?\" is not UTF-8");
    BEND_SPEC(name, "a\xed\xa0\x80", INVALID, "is not UTF-8");
    BEND_SPEC(workers, 0, INVALID, "JobSpec.workers is 0; it must be from 1 to 16384");
    BEND_SPEC(workers, 16385, INVALID, "JobSpec.workers is 16385; it must be from 1 to 16384");
    BEND_SPEC(replicas, 257, INVALID, "JobSpec.replicas is 257; it must be from 0 to 256");
    BEND_SPEC(gpus, 65, INVALID, "JobSpec.gpus is 65; it must be from 0 to 64");
    BEND_SPEC(strategy, name, TOO_LARGE, "JobSpec.strategy");
    BEND_SPEC(workers_min, 3, INVALID, "JobSpec.workers_min is 3; it must be from 0 to 2");
    BEND_SPEC(max_restarts, 1000001, INVALID, "JobSpec.max_restarts is 1000001");
    BEND_SPEC(wait_us, UINT64_MAX, INVALID, "JobSpec.wait_us");
    BEND_SPEC(stall_us, UINT64_MAX, INVALID, "JobSpec.stall_us");
    BEND_SPEC(checkpoint_every, LIMIT_POSITION + 1, INVALID, "JobSpec.checkpoint_every");
    BEND_SPEC(limits.memory_bytes, 1048575, INVALID, "JobLimits.memory_bytes is 1048575");
    BEND_SPEC(limits.cpu_thousandths, 9, INVALID, "JobLimits.cpu_thousandths is 9");
    BEND_SPEC(limits.pids, 1, INVALID, "JobLimits.pids is 1; it must be from 2 to 4194304");
    BEND_SPEC(limits.time_limit_us, 1ULL << 62, INVALID, "JobLimits.time_limit_us is");
    BEND_SPEC(checkpoints_kept, 1001, INVALID, "JobSpec.checkpoints_kept is 1001");
    BEND_SPEC(checkpoint_folder, "a/b", INVALID,
        "JobSpec.checkpoint_folder \"a/b\" is not an absolute path");
    BEND_SPEC(checkpoint_folder, "/a/..", INVALID, "has a component \"..\"");
    BEND_SPEC(checkpoint_folder, "/a/../b", INVALID, "has a component \"..\"");
    BEND_SPEC(checkpoint_folder, "/a\n", INVALID, "has a control character");
    BEND_SPEC(checkpoint_folder, "s3://", INVALID,
        "JobSpec.checkpoint_folder \"s3://\" names no bucket: write s3://BUCKET/KEY");
    BEND_SPEC(checkpoint_folder, "s3://Bucket/a", INVALID, "has a bucket whose name is not of");
    BEND_SPEC(checkpoint_folder, "s3://bucket/a\n", INVALID, "has a control character");
    BEND_SPEC(checkpoint_folder, "https://host/a", INVALID, "is read only");
    BEND_SPEC(checkpoint_folder, "gs://bucket/a", INVALID, "begins with");
    name[LIMIT_NAME_BYTES - 1] = '\0';
    struct job_spec longest = sample_spec;
    longest.name = name;
    assert_ok(send_job_spec(&longest), &error);
    static const char *const good[] = {
        "/a/..b/c../...", "s3://bucket", "s3://bucket/", "s3://bucket/a/../b c+%/"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        longest.checkpoint_folder = good[i];
        assert_ok(send_job_spec(&longest), &error);
    }
    free(name);
    char *folder = long_text(LIMIT_FILE_NAME_BYTES);
    folder[0] = '/';
    BEND_SPEC(checkpoint_folder, folder, TOO_LARGE, "has 1024 bytes; at most 1023 are accepted");
    free(folder);
}

static struct job_spec ps_job_spec(uint32_t workers, uint32_t servers)
{
    struct job_spec spec = sample_spec;
    spec.strategy = PS_JOB_STRATEGY;
    spec.ps_job = (struct ps_job){.workers = workers, .servers = servers};
    spec.workers = (uint32_t)ps_job_task_count(&spec.ps_job);
    spec.workers_min = spec.workers;
    return spec;
}

static void job_spec_ps_job(void **state)
{
    (void)state;
    struct job_spec spec = ps_job_spec(2, 2);
    assert_ok(send_job_spec(&spec), &error);
    spec.ps_job.backups = true;
    assert_ok(send_job_spec(&spec), &error);
    spec.strategy = "mirrored";
    assert_error(send_job_spec(&spec), INVALID, &error, "only the strategy parameter_server uses");
    spec = sample_spec;
    spec.strategy = PS_JOB_STRATEGY;
    assert_error(send_job_spec(&spec), INVALID, &error, "no parameter server: give it one or more");
    spec = ps_job_spec(0, 1);
    assert_error(send_job_spec(&spec), INVALID, &error, "PsJob.workers is 0; it must be from 1");
    spec = ps_job_spec(1, 1);
    spec.ps_job.evaluators = 2;
    assert_error(send_job_spec(&spec), INVALID, &error, "PsJob.evaluators is 2; it must be from 0");
    spec = ps_job_spec(1, 1);
    spec.ps_job.backups = true;
    assert_error(send_job_spec(&spec), INVALID, &error, "one parameter server, which no other");
    spec = ps_job_spec(1, 1);
    spec.workers_min = 2;
    assert_error(send_job_spec(&spec), INVALID, &error,
        "JobSpec.workers is 3, at least 2; a job of these types has 3 tasks");
    spec = ps_job_spec(1, 1);
    spec.workers = spec.workers_min = 4;
    assert_error(send_job_spec(&spec), INVALID, &error, "JobSpec.workers is 4");
    spec = ps_job_spec(16382, 2);
    spec.workers = spec.workers_min = 16384;
    assert_error(send_job_spec(&spec), INVALID, &error, "has more than 16384 tasks");
}

static void job_spec_file_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *part;
    } cases[] = {
        {"", "empty"},
        {"/etc/passwd", "relative"},
        {"../x", "not allowed"},
        {"a/../../x", "not allowed"},
        {"a/./b", "not allowed"},
        {"a//b", "empty part"},
        {"a/", "empty part"},
        {"a\nb", "control characters"},
        {"a\xe2\x80\xae"
         "b",
            "control characters"},
        {"a\xff", "not UTF-8"},
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(cases); i++) {
        struct job_file files[2] = {sample_spec.files[0], {.name = cases[i].name}};
        struct job_spec spec = sample_spec;
        spec.files = files;
        assert_error(send_job_spec(&spec), INVALID, &error, cases[i].part);
        assert_non_null(strstr(error.text, "JobFile.name"));
        assert_non_null(strstr(error.text, "(in JobSpec.files[1])"));
        spec = sample_spec;
        spec.program.name = cases[i].name;
        assert_error(send_job_spec(&spec), INVALID, &error, cases[i].part);
    }
    char *name = long_text(4096);
    struct job_file file = {.name = name};
    struct job_spec spec = sample_spec;
    spec.files = &file;
    spec.file_count = 1;
    assert_error(send_job_spec(&spec), TOO_LARGE, &error, "has 4096 bytes; at most 1023");
    name[256] = '\0';
    assert_error(send_job_spec(&spec), INVALID, &error, "longer than 255 bytes");
    name[255] = '\0';
    assert_ok(send_job_spec(&spec), &error);
    free(name);
}

static void job_spec_objects(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const char *part; /* NULL: it is good */
    } cases[] = {
        {"s3://bucket/a b+c%", NULL},
        {"https://host/a?X-Amz-Signature=1", NULL},
        {"http://127.0.0.1:9000/a", NULL},
        {"s3://bucket", "has no key after its bucket"},
        {"s3://bucket/a/", "names a folder"},
        {"s3://b/a", "has a bucket whose name is not of 3 to 63 bytes"},
        {"s3://bucket/a\n", "has a control character"},
        {"https://host", "names no host and path"},
        {"https:///a", "names no host and path"},
        {"https://host/a b", "encode them as %20"},
        {"ftp://host/a", "begins neither with s3:// nor with https://"},
        {"/a", "begins neither with s3:// nor with https://"},
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(cases); i++) {
        struct job_file file = {.name = "a", .url = cases[i].url};
        struct job_spec spec = sample_spec;
        spec.files = &file;
        spec.file_count = 1;
        if (cases[i].part == NULL) {
            assert_ok(send_job_spec(&spec), &error);
        } else {
            assert_error(send_job_spec(&spec), INVALID, &error, cases[i].part);
            assert_non_null(strstr(error.text, "JobFile.url"));
        }
    }
    BEND_SPEC(program.url, "s3://bucket/digits", INVALID, "JobSpec.program has a url");
    BEND_SPEC(outputs_folder, "/mnt/outputs", INVALID,
        "JobSpec.outputs_folder \"/mnt/outputs\" is not s3://BUCKET/KEY");
    BEND_SPEC(outputs_folder, "https://host/a", INVALID, "is not s3://BUCKET/KEY");
    BEND_SPEC(outputs_folder, "s3://b", INVALID, "has a bucket whose name is not of 3 to 63 bytes");
}

static void job_spec_files_have_names_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *first;
        const char *second;
        const char *part;
    } cases[] = {
        {"a", "a", "JobSpec.files has \"a\" twice"},
        {"a", "bin/digits", "JobSpec.files has \"bin/digits\" twice"},
        {"a/b", "a", "has \"a\" both as a file and as the folder of \"a/b\""},
        {"bin", "x", "has \"bin\" both as a file and as the folder of \"bin/digits\""},
        {"a", "a-b", NULL},
        {"a/b", "a-b", NULL},
        {"a/b", "a/bc", NULL},
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(cases); i++) {
        struct job_file files[] = {
            {.name = cases[i].first}, {.name = "a-"}, {.name = cases[i].second}};
        struct job_spec spec = sample_spec;
        spec.files = files;
        spec.file_count = 3;
        if (cases[i].part == NULL) {
            assert_ok(send_job_spec(&spec), &error);
        } else {
            assert_error(send_job_spec(&spec), INVALID, &error, cases[i].part);
        }
    }
    struct job_file huge = {.name = "a", .size_bytes = LIMIT_BLOB_BYTES + 1};
    struct job_spec spec = sample_spec;
    spec.files = &huge;
    spec.file_count = 1;
    assert_error(send_job_spec(&spec), INVALID, &error, "JobFile.size_bytes is 68719476737");
}

static void job_spec_counts(void **state)
{
    (void)state;
    const char **many = calloc(LIMIT_ARGUMENTS + 1, sizeof *many);
    struct job_file *files = calloc(LIMIT_FILES_PER_JOB + 1, sizeof *files);
    assert_non_null(many);
    assert_non_null(files);
    for (size_t i = 0; i <= LIMIT_ARGUMENTS; i++) {
        many[i] = "A=1";
    }
    struct job_spec spec = sample_spec;
    spec.arguments = many;
    spec.argument_count = LIMIT_ARGUMENTS + 1;
    assert_error(send_job_spec(&spec), TOO_LARGE, &error,
        "JobSpec.arguments has 1025 entries; at most 1024 are accepted");
    spec = sample_spec;
    spec.environment = many;
    spec.environment_count = LIMIT_ARGUMENTS + 1;
    assert_error(send_job_spec(&spec), TOO_LARGE, &error, "JobSpec.environment has 1025 entries");
    for (size_t i = 0; i <= LIMIT_FILES_PER_JOB; i++) {
        files[i].name = "f";
    }
    spec = sample_spec;
    spec.files = files;
    spec.file_count = LIMIT_FILES_PER_JOB + 1;
    assert_error(send_job_spec(&spec), TOO_LARGE, &error, "JobSpec.files has 4097 entries");
    char *text = long_text(LIMIT_ARGUMENT_BYTES);
    const char *const one[] = {"a", text};
    spec = sample_spec;
    spec.arguments = one;
    spec.argument_count = 2;
    assert_error(send_job_spec(&spec), TOO_LARGE, &error, "has 65536 bytes; at most 65535");
    assert_non_null(strstr(error.text, "(in JobSpec.arguments[1])"));
    /* Each argument is good, but not seventeen of them. */
    text[LIMIT_ARGUMENT_BYTES - 1] = '\0';
    for (size_t i = 0; i < 17; i++) {
        many[i] = text;
    }
    spec.arguments = many;
    spec.argument_count = 17;
    wire_buffer_clear(&packed);
    assert_error(wire_pack_job_spec(&spec, &packed, &error), TOO_LARGE, &error,
        "a message of its kind has at most 1048576");
    assert_int_equal(packed.size, 0);
    free(text);
    free(many);
    free(files);
}

static void job_spec_environment(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        const char *part;
    } cases[] = {
        {"", "does not begin with a name"},
        {"=x", "does not begin with a name"},
        {"1A=x", "does not begin with a name"},
        {"A", "has no \"=\""},
        {"A B=x", "has a name with other characters"},
        {"A=\xff", "is not UTF-8"},
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(cases); i++) {
        const char *const entries[] = {"GOOD=1", cases[i].entry};
        struct job_spec spec = sample_spec;
        spec.environment = entries;
        spec.environment_count = 2;
        assert_error(send_job_spec(&spec), INVALID, &error, cases[i].part);
        assert_non_null(strstr(error.text, "(in JobSpec.environment[1])"));
    }
}

static void job_spec_restore_checkpoint(void **state)
{
    (void)state;
    struct job_spec spec = sample_spec;
    spec.has_restore_checkpoint = true;
    spec.restore_checkpoint = (struct checkpoint_ref){.position = 4,
        .shared = true,
        .path = "s3://bucket/a/checkpoint-4.json",
        .manifest_bytes = 10};
    assert_ok(send_job_spec(&spec), &error);
    spec.restore_checkpoint.path = "checkpoint-4.json";
    assert_error(send_job_spec(&spec), INVALID, &error,
        "restore_checkpoint is \"checkpoint-4.json\"; it must be shared, and an object");
    spec.restore_checkpoint.path = "s3://B/a";
    assert_error(send_job_spec(&spec), INVALID, &error, "has a bucket whose name");
    spec.restore_checkpoint.path = "s3://bucket/a\nb";
    assert_error(send_job_spec(&spec), INVALID, &error, "has a control character");
    spec.restore_checkpoint.path = "s3://bucket/a";
    spec.restore_checkpoint.shared = false;
    assert_error(send_job_spec(&spec), INVALID, &error, "it must be shared");
    spec.restore_checkpoint.shared = true;
    spec.restore_checkpoint.manifest_bytes = 0;
    assert_error(send_job_spec(&spec), INVALID, &error, "CheckpointRef.manifest_bytes is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_spec_fields),
        cmocka_unit_test(job_spec_ps_job),
        cmocka_unit_test(job_spec_file_names),
        cmocka_unit_test(job_spec_files_have_names_of_their_own),
        cmocka_unit_test(job_spec_objects),
        cmocka_unit_test(job_spec_counts),
        cmocka_unit_test(job_spec_restore_checkpoint),
        cmocka_unit_test(job_spec_environment),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
