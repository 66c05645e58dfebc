/* A plain program: its own loop and memory, with the calls that MPI has. It fits the line
 * y = 3 x + 1, each task to its own share of the samples.
 *
 *     task 0: samples 0, 2, 4 ... ─▶ slopes ─┐                ┌─▶ the same new line
 *     task 1: samples 1, 3, 5 ... ─▶ slopes ─┴─ all-reduce ───┴─▶ the same new line */
#include <cadre/cadre.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1000, STEPS = 400, REPORT_EVERY = 20 };

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

int main(int argc, char **argv)
{
    float w[2] = {0, 0};
    struct sums sums = {{0, 0}, 0};
    CADRE_CHECK(cadre_plain_init(&argc, &argv)); /* waits until all tasks are there */
    const int rank = (int)cadre_rank();
    const int size = (int)cadre_world_size();
    for (uint64_t step = 1; step <= STEPS; step++) {
        sums = (struct sums){{0, 0}, 0};
        for (int i = rank; i < SAMPLES; i += size) {
            add_sample(w, i, &sums);
        }
        /* In place: the sums of all tasks, the same bits on each. */
        CADRE_CHECK(
            cadre_plain_all_reduce(NULL, &sums, sizeof sums / sizeof(float), CADRE_F32, CADRE_SUM));
        w[0] -= 0.5f * sums.slope[0];
        w[1] -= 0.5f * sums.slope[1];
        if (step % REPORT_EVERY == 0) {
            CADRE_CHECK(cadre_plain_report("loss", (double)sums.loss));
            CADRE_CHECK(cadre_plain_progress(step, STEPS));
        }
    }
    if (rank == 0) {
        printf(
            "y = %.3f x + %.3f, loss %.6f\n", (double)w[0], (double)w[1], (double)sums.loss);
    }
    return cadre_plain_finish();
}
