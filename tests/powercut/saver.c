/* SPDX-License-Identifier: Apache-2.0
 * A program under test: takes STEPS steps, prints for each checkpoint that it waited for that it
 * is on the disk, and prints from where it went on.
 *     saver STEPS */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cadre/cadre.h"

#define NUMBERS 3000 /* the file is many blocks of a disk */

/* By a call that can be recorded, which those of printf are not. */
static void say(const char *what, uint64_t position)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%s %" PRIu64 "\n", what, position);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) {
        exit(1);
    }
}

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    float *numbers = cadre_variable_write(replica, user);
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] += 1;
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_variable *numbers;
    CADRE_CHECK(cadre_init(&argc, &argv));
    uint64_t steps = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(
        strategy, "numbers", CADRE_F32, 1, (const int64_t[]){NUMBERS}, NULL, &numbers));
    bool begun = false;
    do {
        CADRE_CHECK(cadre_run(strategy, add_one, numbers, NULL, 0, NULL));
        const float *now = cadre_variable_read(NULL, numbers);
        uint64_t position = cadre_strategy_position(strategy);
        for (int i = 0; i < NUMBERS; i++) {
            if (now[i] != (float)position) {
                fprintf(stderr, "number %d is %g at step %" PRIu64 "\n", i, now[i], position);
                return 9;
            }
        }
        if (!begun && cadre_strategy_is_chief(strategy)) {
            say("went on from", position - 1);
        }
        begun = true;
        CADRE_CHECK(cadre_save(strategy, true));
        if (cadre_strategy_is_chief(strategy)) {
            say("saved", position);
        }
    } while (cadre_strategy_position(strategy) < steps);
    return cadre_finish(strategy);
}
