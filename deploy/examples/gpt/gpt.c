/* SPDX-License-Identifier: Apache-2.0
 * Trains a small GPT over the bytes of a text, on as many replicas as it is given:
 *
 *     ./gpt --sample 300                             by hand
 *     cadre run -n 2 ./gpt -- --text FOLDER          two tasks on this machine
 *     cadre submit --workers 2 --file ... ./gpt      on a cluster
 *
 * The same program runs on GPUs where it was built with CUDA and finds any; the loop below does not
 * know. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "settings.h"
#include "space.h"
#include "step.h"
#include "text.h"

/* The rate rises by a line, then falls by half a cosine to a tenth. `step` counts from 0. */
static struct adamw plan(const struct settings *settings, uint64_t step)
{
    const double beta1 = 0.9;
    const double beta2 = 0.99;
    const double done = (double)step + 1;
    const double warm = (double)settings->warm_up;
    const double all = (double)settings->steps;
    const double way = all > warm ? (done - warm) / (all - warm) : 1;
    const double part = done < warm ? done / warm : 0.55 + 0.45 * cos(acos(-1.0) * way);
    return (struct adamw){.rate = (float)(part * (double)settings->rate),
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .epsilon = 1e-8f,
        .decay = settings->decay,
        .correction1 = (float)(1 - pow(beta1, done)),
        .correction2 = (float)(1 - pow(beta2, done))};
}

/* The number that all replicas returned; waits for the copy, where it is on a GPU. */
static double number_of(const cadre_per_replica *value)
{
    cadre_tensor *host;
    CADRE_CHECK(cadre_tensor_copy_to_host(cadre_local_results(value, 0)[0], &host));
    const double number = (double)*(const float *)cadre_tensor_const_data(host);
    cadre_tensor_release(host);
    return number;
}

/* Bytes that were learnt from, and how fast. The first steps make memory and load code: they do not
 * count. */
struct pace {
    uint64_t steps;
    double began_s;
    double bytes;
};

static void pace_step(struct pace *pace, double bytes)
{
    enum { FIRST = 3 };
    if (++pace->steps == FIRST) {
        pace->began_s = now_s();
    }
    pace->bytes += pace->steps > FIRST ? bytes : 0;
}

static double pace_rate(const struct pace *pace)
{
    return pace->bytes > 0 ? pace->bytes / (now_s() - pace->began_s) : 0;
}

static void report(cadre_strategy *strategy, uint64_t step, double loss, double rate)
{
    CADRE_CHECK(cadre_report(strategy, "loss", loss));
    CADRE_CHECK(cadre_report(strategy, "bytes/s", rate));
    if (cadre_strategy_is_chief(strategy)) {
        printf("step %llu loss %.6f bytes/s %.0f\n", (unsigned long long)step, loss, rate);
        fflush(stdout); /* also into a pipe, as it happens */
    }
}

/* Trains so many steps, in as many epochs as it takes. A job that is resumed, and a task that
 * joins, find themselves in the middle of it. Returns bytes per second. */
static double train(
    cadre_strategy *strategy, cadre_distributed_dataset *data, struct training *training)
{
    const struct settings *settings = training->settings;
    struct pace pace = {0};
    uint64_t epoch;
    uint64_t step = 0;
    cadre_per_replica *batch;
    cadre_per_replica *loss;
    while (step < settings->steps && cadre_next_epoch(data, UINT64_MAX, &epoch)) {
        const uint64_t before = epoch * (uint64_t)cadre_distributed_steps(data);
        while ((step = before + cadre_step(data)) < settings->steps &&
               cadre_next(data, &batch) == CADRE_OK) {
            training->model.step = plan(settings, step);
            CADRE_CHECK(cadre_run(strategy, train_step, training, batch, 1, &loss));
            pace_step(&pace, (double)(settings->batch * settings->shape.length));
            if ((step + 1) % settings->report == 0 || step + 1 == settings->steps) {
                report(strategy, step + 1, number_of(loss), pace_rate(&pace));
            }
        }
        CADRE_CHECK(cadre_distributed_status(data));
    }
    return pace_rate(&pace);
}

/* The mean loss of the part that was held out, in bits per byte. *losses is registered: a task that
 * joins in the middle is given it. */
static double test(cadre_strategy *strategy, cadre_distributed_dataset *data,
    struct training *training, const struct part *part, double *losses)
{
    cadre_per_replica *batch;
    cadre_per_replica *loss;
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, test_step, training, batch, 1, &loss));
            *losses += number_of(loss);
        }
    }
    CADRE_CHECK(cadre_distributed_status(data));
    return *losses / (double)(text_windows_count(part) * part->length) / log(2);
}

static void write_sample(cadre_strategy *strategy, struct training *training)
{
    cadre_per_replica *text;
    CADRE_CHECK(cadre_run(strategy, sample_step, training, NULL, 1, &text));
    if (cadre_strategy_is_chief(strategy)) {
        const cadre_tensor *bytes = cadre_local_results(text, 0)[0];
        printf("\n");
        fwrite(cadre_tensor_const_data(bytes), 1, (size_t)cadre_tensor_count(bytes), stdout);
        printf("\n");
    }
}

/* How near the training came to what matrix products alone reach on the same devices. */
static void show_pace(cadre_strategy *strategy, const struct training *training, double rate)
{
    const double ceiling =
        training->spaces[0].ceiling * cadre_strategy_num_replicas_in_sync(strategy);
    const double work = rate * shape_work(&training->model.shape);
    printf("bytes per second: %.0f, %.2f GFLOP/s\n", rate, work / 1e9);
    if (ceiling > 0) {
        printf("ceiling: %.2f GFLOP/s, of which the training reached %.1f%%\n", ceiling / 1e9,
            100 * work / ceiling);
    }
}

static cadre_distributed_dataset *distribute(
    cadre_strategy *strategy, const char *name, cadre_dataset *data)
{
    cadre_distributed_dataset *distributed;
    CADRE_CHECK(cadre_distribute_dataset(strategy, data,
        &(cadre_input_options){.name = name, .auto_shard = CADRE_SHARD_DATA}, &distributed));
    return distributed;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    struct settings settings;
    if (!settings_read(argc, argv, &settings)) {
        return 2;
    }
#ifdef GPT_CUDA
    CADRE_CHECK(cadre_enable_gpus());
#endif
    struct text text;
    CADRE_CHECK(text_read(settings.text, settings.shape.length, &text));
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_show_progress(strategy, false);
    const uint32_t replicas = cadre_strategy_local_replicas(strategy);
    struct training training = {
        .settings = &settings, .spaces = calloc(replicas, sizeof *training.spaces)};
    if (training.spaces == NULL) {
        fprintf(stderr, "gpt: no memory\n");
        return 1;
    }
    CADRE_CHECK(model_create(strategy, &settings.shape, settings.seed, &training.model));
    double losses = 0;
    CADRE_CHECK(cadre_state_register(strategy, "losses", &losses, sizeof losses));

    cadre_dataset *windows = text_windows(&text.training);
    windows = cadre_dataset_shuffle(windows, CADRE_SHUFFLE_ALL, settings.seed, NULL);
    windows = cadre_dataset_batch(windows, settings.batch, false);
    cadre_dataset *unseen =
        cadre_dataset_batch(text_windows(&text.held_out), settings.batch, false);
    cadre_distributed_dataset *training_data = distribute(strategy, "train", windows);
    cadre_distributed_dataset *test_data = distribute(strategy, "held out", unseen);

    if (cadre_strategy_is_chief(strategy)) {
        printf("text: %lld bytes; weights: %lld\n", (long long)text.size,
            (long long)model_weights(&settings.shape));
    }
    const double rate = train(strategy, training_data, &training);
    const double bits = test(strategy, test_data, &training, &text.held_out, &losses);
    if (cadre_strategy_is_chief(strategy)) {
        printf("held out: %.4f bits per byte\n", bits);
        show_pace(strategy, &training, rate);
    }
    if (settings.sample > 0) {
        write_sample(strategy, &training);
    }
    for (uint32_t i = 0; i < replicas; i++) {
        space_free(&training.spaces[i]);
    }
    free(training.spaces);
    const int status = cadre_finish(strategy);
    text_free(&text);
    return status;
}
