/* SPDX-License-Identifier: Apache-2.0
 * What a process keeps of the daemon's own standing: nothing that is better than a task's. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/host/isolate/confine.h"

#define SCORE "/proc/self/oom_score_adj"

static bool set_score(int score)
{
    FILE *file = fopen(SCORE, "we");
    bool set = file != NULL && fprintf(file, "%d", score) > 0;
    return file != NULL && fclose(file) == 0 && set;
}

static int own_oom_score(void)
{
    int score = -1;
    FILE *file = fopen(SCORE, "re");
    if (file == NULL || fscanf(file, "%d", &score) != 1) {
        return -1;
    }
    fclose(file);
    return score;
}

/* Of a task that this process becomes; 0 to 255. */
static int become_task(void)
{
    const struct task_confinement confinement = {0};
    return confine_self(&confinement, NULL) ? own_oom_score() / 5 : 254;
}

static int run(int (*body)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int task_of_one_that_is_spared(void)
{
    return set_score(-500) ? become_task() : 255;
}

static char path[TEST_PATH_BYTES];

/* Without the right to set a score: a file of ours is mounted over the kernel's. */
static int task_that_sees_a_file(void)
{
    char score = '?';
    test_write(path, "-500");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(path, SCORE, NULL, MS_BIND, NULL) != 0) {
        return 255;
    }
    (void)become_task();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return read(fd, &score, 1) == 1 && score == '0' ? 0 : 1;
}

static void the_kernel_does_not_spare_it(void **state)
{
    (void)state;
    int score = run(task_of_one_that_is_spared);
    if (score == 255) {
        test_path(path, test_temp_dir(), "score");
        score = run(task_that_sees_a_file);
    }
    if (score == 255) {
        print_message("neither allowed to lower " SCORE " nor to mount\n");
        skip();
    }
    assert_int_equal(score, 0);
}

static int task_of_one_that_goes_first(void)
{
    return set_score(1000) ? become_task() : 255;
}

static void one_that_goes_first_stays_so(void **state)
{
    (void)state;
    assert_int_equal(run(task_of_one_that_goes_first), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_does_not_spare_it),
        cmocka_unit_test(one_that_goes_first_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
