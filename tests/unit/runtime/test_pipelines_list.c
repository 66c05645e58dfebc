/* SPDX-License-Identifier: Apache-2.0
 * Lists of files that a source holds, shared out by files or by samples: what AUTO chooses, and
 * that each record is consumed once, whatever is lost and whatever a job goes on from. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines_jobs.h"

static void a_loss_in_the_middle_of_a_list_is_survived(void **state)
{
    (void)state;
    for (uint64_t position = 0; position < 12; position++) {
        check_loss("PIPELINE=list", losses[position % 4], (uint32_t)(position % 3), position, 3, 1);
    }
}

/* There is something better than AUTO for a list of files: one warning, whichever task is lost. */
static void too_few_files_of_a_list_are_divided_by_samples(void **state)
{
    (void)state;
    static const char warning[] = "cadre: warning: dataset 'train' is divided by samples, not by "
                                  "files (CADRE_SHARD_AUTO): 5 files cannot be shared out among 6 "
                                  "workers";
    for (int dies = 0; dies < 2; dies++) {
        struct stage_end end;
        const char *const environment[] = {
            "PIPELINE=list", pipelines_files, "AUTO=1", dies == 1 ? "DIE_RUN=1:3" : NULL, NULL};
        struct stage_job job = job_of(6, 1, environment);
        check_exact(&job, dies == 1 ? 1 : UINT32_MAX, &end, "samples");
        const char *printed = strstr(end.erred[0], warning);
        if (printed == NULL) {
            show(&end);
        }
        assert_non_null(printed);
        assert_null(strstr(printed + sizeof warning, "is divided by"));
        assert_null(strstr(end.erred[2], "is divided by"));
        stage_end_free(&end);
    }
}

/* Each task reads all of what is no file and has no places. */
static void who_reads_all_is_reported(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"PIPELINE=generated", pipelines_files, "AUTO=1", NULL};
    struct stage_job job = job_of(2, 1, environment);
    check_exact(&job, UINT32_MAX, &end, "generated");
    assert_non_null(strstr(end.erred[0],
        "(CADRE_SHARD_AUTO), so each task reads all of it and uses its own part: "
        "CADRE_SHARD_FILE needs a source that reads files, and generator does not"));
    assert_null(strstr(end.erred[1], "reads all of it"));
    stage_end_free(&end);
}

/* AUTO stays with what the job began with, whatever it would choose now: samples, because older
 * versions divided all lists so; or pipelines_files, also for more tasks than there are files. */
static void a_list_stays_divided_as_it_began(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        uint32_t tasks;
    } cases[] = {{"SAMPLES=1", 2}, {"SAMPLES=1", 1}, {"AUTO=1", 7}, {"AUTO=1", 1}, {"AUTO=1", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        const char *const environment[] = {"PIPELINE=list", pipelines_files, "AUTO=1", NULL};
        leave_checkpoint("PIPELINE=list", cases[i].before, 4, path);
        struct stage_job job = job_of(cases[i].tasks, 1, environment);
        job.resume = 4;
        job.restore = path;
        check_exact(&job, UINT32_MAX, &end, cases[i].before);
        stage_end_free(&end);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return pipelines_program();
    }
    pipelines_jobs_open(argv[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_in_the_middle_of_a_list_is_survived),
        cmocka_unit_test(too_few_files_of_a_list_are_divided_by_samples),
        cmocka_unit_test(who_reads_all_is_reported),
        cmocka_unit_test(a_list_stays_divided_as_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
