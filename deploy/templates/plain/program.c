/* A plain program: its own loop and memory, with the calls that MPI has. It fits the line
 * y = 3 x + 1, each task to its own share of the samples.
 *
 *     task 0: samples 0, 2, 4 ... ─▶ slopes ─┐                ┌─▶ the same new line
 *     task 1: samples 1, 3, 5 ... ─▶ slopes ─┴─ all-reduce ───┴─▶ the same new line */
#include <cadre/cadre.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 1000, STEPS = 400, SAVE_EVERY = 100, REPORT_EVERY = 20 };

/* All that the program has to keep to go on from where it was. */
struct state {
    uint64_t step;
    float w[2];
};

/* What each step sums over all tasks. */
struct sums {
    float slope[2]; /* of the loss, by the two numbers of w */
    float loss;
};

static float x_of(int i)
{
    return 2.0f * (float)i / SAMPLES - 1; /* from -1 to 1 */
}

static void add_sample(const float w[2], int i, struct sums *sums)
{
    float x = x_of(i);
    float error = w[0] * x + w[1] - (3 * x + 1);
    sums->slope[0] += error * x / SAMPLES;
    sums->slope[1] += error / SAMPLES;
    sums->loss += error * error / SAMPLES;
}

/* The newest state that the job saved; left as it is when there is none. */
static void load(struct state *state)
{
    void *saved;
    size_t size;
    cadre_status status = cadre_plain_load("state", 0, &saved, &size);
    if (status == CADRE_NOT_FOUND) {
        return;
    }
    CADRE_CHECK(status);
    if (size != sizeof *state) {
        fprintf(stderr, "the saved state is of another program\n");
        exit(1);
    }
    memcpy(state, saved, size);
    free(saved);
}

int main(int argc, char **argv)
{
    struct state state = {0, {0, 0}};
    struct sums sums = {{0, 0}, 0};
    CADRE_CHECK(cadre_plain_init(&argc, &argv)); /* waits until all tasks are there */
    const int rank = (int)cadre_rank();
    const int size = (int)cadre_world_size();
    const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : STEPS;
    load(&state);
    while (state.step < steps) {
        sums = (struct sums){{0, 0}, 0};
        for (int i = rank; i < SAMPLES; i += size) {
            add_sample(state.w, i, &sums);
        }
        /* In place: the sums of all tasks, the same bits on each. */
        CADRE_CHECK(
            cadre_plain_all_reduce(NULL, &sums, sizeof sums / sizeof(float), CADRE_F32, CADRE_SUM));
        state.w[0] -= 0.5f * sums.slope[0];
        state.w[1] -= 0.5f * sums.slope[1];
        state.step++;
        if (state.step % REPORT_EVERY == 0) {
            CADRE_CHECK(cadre_plain_report("loss", (double)sums.loss));
            CADRE_CHECK(cadre_plain_progress(state.step, steps));
        }
        if (state.step % SAVE_EVERY == 0) { /* of all tasks together: task 0 has it all */
            CADRE_CHECK(
                cadre_plain_save("state", rank == 0 ? &state : NULL, rank == 0 ? sizeof state : 0));
        }
    }
    if (rank == 0) {
        printf("y = %.3f x + %.3f, after %llu steps\n", (double)state.w[0], (double)state.w[1],
            (unsigned long long)state.step);
    }
    return cadre_plain_finish();
}
