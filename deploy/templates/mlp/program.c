/* Learns which points of a square are inside a circle: a small network, trained on all replicas of
 * a job at once. By hand there is one replica, under `cadre run -n 2` there are two:
 *
 *     data ── batch ─┬─ rows of replica 0 ─▶ gradient ─┐                ┌─▶ the same new weights
 *                    └─ rows of replica 1 ─▶ gradient ─┴─ all-reduce ───┴─▶ the same new weights */
#include <cadre/cadre.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 1024, TEST_POINTS = 1024, BATCH = 64, EPOCHS = 60, SAVE_EVERY = 20, HIDDEN = 16 };

struct model {
    cadre_variable *variables[2]; /* hidden [HIDDEN, 3]: two weights and a bias; output [HIDDEN] */
    cadre_optimizer *optimizer;
};

/* ---- the data: your own may come from files, see cadre/sources.h ---- */

/* Point `i`, the same on every machine; returns 1 inside the circle, 0 outside. */
static float draw_point(uint64_t i, float x[2])
{
    cadre_random random;
    CADRE_CHECK(cadre_random_for_sample(1, "points", 0, i, &random));
    x[0] = 2 * (float)cadre_random_f64(&random) - 1;
    x[1] = 2 * (float)cadre_random_f64(&random) - 1;
    return x[0] * x[0] + x[1] * x[1] < 0.5f ? 1 : 0;
}

/* Batches of points [BATCH, 2] and labels [BATCH]: of all replicas together. */
static cadre_dataset *make_data(void)
{
    cadre_tensor *tensors[2];
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 2, (int64_t[]){POINTS, 2}, &tensors[0]));
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 1, (int64_t[]){POINTS}, &tensors[1]));
    float *points = cadre_tensor_data(tensors[0]);
    float *labels = cadre_tensor_data(tensors[1]);
    for (uint64_t i = 0; i < POINTS; i++) {
        labels[i] = draw_point(i, points + 2 * i);
    }
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 1, NULL); /* another order each epoch */
    return cadre_dataset_batch(data, BATCH, false);
}

/* ---- the model ---- */

/* How probable it is that `x` is inside; `hidden` is what the hidden layer makes of it. */
static float forward(const float *w, const float *output, const float x[2], float hidden[HIDDEN])
{
    float score = 0;
    for (int h = 0; h < HIDDEN; h++, w += 3) {
        hidden[h] = tanhf(w[0] * x[0] + w[1] * x[1] + w[2]);
        score += output[h] * hidden[h];
    }
    return 1 / (1 + expf(-score));
}

/* One step on one replica. in: its rows of the batch. out: the loss of the whole batch. */
static cadre_status step(
    cadre_replica *replica, cadre_tensor *const in[], cadre_tensor *out[], void *user)
{
    struct model *model = user;
    CADRE_RELEASE_AT_EXIT(tensor) slopes = NULL; /* tensors of zeros, for the gradients */
    CADRE_RELEASE_AT_EXIT(tensor) output_slopes = NULL;
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, (int64_t[]){HIDDEN, 3}, &slopes));
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 1, (int64_t[]){HIDDEN}, &output_slopes));
    const float *w = cadre_variable_read(replica, model->variables[0]);
    const float *output = cadre_variable_read(replica, model->variables[1]);
    const float *x = cadre_tensor_const_data(in[0]);
    const float *labels = cadre_tensor_const_data(in[1]);
    const float scale = 1 / (float)cadre_replica_global_rows(replica); /* rows of all replicas */
    float loss = 0;
    for (int64_t row = 0; row < cadre_tensor_rows(in[0]); row++, x += 2) {
        float hidden[HIDDEN];
        float p = forward(w, output, x, hidden);
        float error = scale * (p - labels[row]);
        float *slope = cadre_tensor_data(slopes);
        float *output_slope = cadre_tensor_data(output_slopes);
        loss -= scale * logf(fmaxf(labels[row] > 0 ? p : 1 - p, 1e-12f));
        for (int h = 0; h < HIDDEN; h++, slope += 3) { /* backward */
            float hidden_error = error * output[h] * (1 - hidden[h] * hidden[h]);
            slope[0] += hidden_error * x[0];
            slope[1] += hidden_error * x[1];
            slope[2] += hidden_error;
            output_slope[h] += error * hidden[h];
        }
    }
    CADRE_TRY(cadre_tensor_from_f32(loss, &out[0]));
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, out, 1, NULL)); /* over all replicas, on each */
    return cadre_optimizer_apply(replica, model->optimizer, /* it sums the gradients likewise */
        (cadre_tensor *[]){slopes, output_slopes}, model->variables, 2, NULL);
}

/* In percent, on points that it was not trained with. */
static double accuracy(const struct model *model)
{
    const float *w = cadre_variable_read(NULL, model->variables[0]);
    const float *output = cadre_variable_read(NULL, model->variables[1]);
    int right = 0;
    for (uint64_t i = 0; i < TEST_POINTS; i++) {
        float x[2], hidden[HIDDEN];
        float label = draw_point(POINTS + i, x);
        right += (forward(w, output, x, hidden) > 0.5f) == (label > 0);
    }
    return 100.0 * right / TEST_POINTS;
}

int main(int argc, char **argv)
{
    struct model model;
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch, *loss;
    uint64_t epoch;
    const cadre_optimizer_options adam = {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.02};
    const cadre_variable_options normal = {
        .initializer = {.kind = CADRE_INITIALIZER_NORMAL, .stddev = 1, .seed = 1}};
    CADRE_CHECK(cadre_init(&argc, &argv));
    uint64_t epochs = argc > 1 ? strtoull(argv[1], NULL, 10) : EPOCHS;
    CADRE_CHECK(cadre_strategy_default(&strategy)); /* one process, or a task of a job */
    CADRE_CHECK(cadre_variable_create(
        strategy, "hidden", CADRE_F32, 2, (int64_t[]){HIDDEN, 3}, &normal, &model.variables[0]));
    CADRE_CHECK(cadre_variable_create(
        strategy, "output", CADRE_F32, 1, (int64_t[]){HIDDEN}, &normal, &model.variables[1]));
    CADRE_CHECK(cadre_optimizer_create(strategy, &adam, &model.optimizer));
    CADRE_CHECK(cadre_distribute_dataset(strategy, make_data(), NULL, &data));
    while (cadre_next_epoch(data, epochs, &epoch)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, step, &model, batch, 1, &loss));
            const float *value = cadre_tensor_const_data(cadre_local_results(loss, 0)[0]);
            CADRE_CHECK(cadre_report(strategy, "loss", (double)*value));
        }
        if (epoch % SAVE_EVERY == SAVE_EVERY - 1) {
            CADRE_CHECK(cadre_save(strategy, false)); /* a checkpoint, written meanwhile */
        }
    }
    if (cadre_strategy_is_chief(strategy)) {
        printf("right: %.1f%% of %d new points\n", accuracy(&model), TEST_POINTS);
    }
    return cadre_finish(strategy); /* what main returns; writes the last checkpoint */
}
