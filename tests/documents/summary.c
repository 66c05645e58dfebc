/* SPDX-License-Identifier: Apache-2.0
 * What a training leaves for TensorBoard: cadre/summary.h. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "documents.h"

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static int event_files(void)
{
    char path[TEST_PATH_BYTES];
    int count = 0;
    DIR *folder = opendir(test_path(path, training_folder(), "events"));
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        count += strncmp(entry->d_name, "events.out.tfevents.", 20) == 0 ? 1 : 0;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* Numbers, the distribution of many, texts: each under a name, of the steps that are applied. The
 * first one begins a file in the folder events of the output folder. */
static void values_are_left_for_tensorboard(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    on_each_replica(strategy, nothing, NULL);
    OK(cadre_report(strategy, "loss", 0.25));
    cadre_tensor *weights = floats(-1, 0, 0.5, 1);
    OK(cadre_summary_histogram(strategy, "layer 1/weights", weights, 0)); /* 0: 30 buckets */
    OK(cadre_summary_text(strategy, "settings", "learning rate **0.1**\n\nbatch 64"));
    cadre_tensor_release(weights);
    cadre_strategy_release(strategy);
    assert_int_equal(event_files(), 1);
}

static void what_cannot_be_shown_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_tensor *words = strings("a", "b");
    cadre_tensor *numbers = integers(1, 2);
    REFUSED(cadre_summary_histogram(strategy, "w", words, 0), CADRE_INVALID_ARGUMENT, "strings");
    REFUSED(cadre_summary_histogram(strategy, "w", NULL, 0), CADRE_INVALID_ARGUMENT, "'values'");
    REFUSED(cadre_summary_histogram(strategy, "", numbers, 0), CADRE_INVALID_ARGUMENT, "empty");
    REFUSED(cadre_summary_histogram(strategy, "w", numbers, 1001), CADRE_INVALID_ARGUMENT,
        "1001 buckets; give 1 to 1000");
    REFUSED(cadre_summary_text(strategy, "note", NULL), CADRE_INVALID_ARGUMENT, "'text'");
    REFUSED(cadre_summary_text(strategy, "a\nb", "c"), CADRE_INVALID_ARGUMENT, "0x0a");
    REFUSED(cadre_summary_text(strategy, "note", "a\x1b[2J"), CADRE_INVALID_ARGUMENT, "0x1b at 1");
    REFUSED(cadre_summary_text(strategy, "note", "\xff"), CADRE_INVALID_ARGUMENT, "0xff at 0");
    char *long_text = calloc(1, CADRE_SUMMARY_TEXT_BYTES + 2);
    assert_non_null(long_text);
    memset(long_text, 'x', CADRE_SUMMARY_TEXT_BYTES + 1);
    REFUSED(cadre_summary_text(strategy, "note", long_text), CADRE_INVALID_ARGUMENT, "65536 bytes");
    long_text[CADRE_SUMMARY_TEXT_BYTES] = '\0';
    OK(cadre_summary_text(strategy, "note", long_text));
    free(long_text);
    cadre_tensor_release(numbers);
    cadre_tensor_release(words);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_left_for_tensorboard),
        cmocka_unit_test(what_cannot_be_shown_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
