/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cadre_status machine_create(struct machine *machine, int64_t batch)
{
    size_t all = (size_t)batch * FIELDS;
    *machine = (struct machine){.batch = batch};
    machine->rows = malloc(all * WIDTH * sizeof *machine->rows);
    machine->slopes = malloc(all * WIDTH * sizeof *machine->slopes);
    machine->logits = malloc((size_t)batch * sizeof *machine->logits);
    if (ids_create(&machine->ids, all) != 0 || machine->rows == NULL || machine->slopes == NULL ||
        machine->logits == NULL) {
        machine_free(machine);
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED,
            "there is no memory for a batch of %lld; use a smaller --batch", (long long)batch);
    }
    cadre_status status = cadre_variable_find(NULL, "table", &machine->table);
    if (status == CADRE_OK) {
        status = cadre_variable_find(NULL, "bias", &machine->bias);
    }
    if (status != CADRE_OK) {
        machine_free(machine);
    }
    return status;
}

void machine_free(struct machine *machine)
{
    ids_free(&machine->ids);
    free(machine->rows);
    free(machine->slopes);
    free(machine->logits);
}

static const float *row_of(const struct machine *machine, int64_t sample, int field)
{
    return machine->rows + (size_t)machine->ids.indices[sample * FIELDS + field] * WIDTH;
}

/* Of a sample: what its rows come to in each column. */
static void sum_of(const struct machine *machine, int64_t sample, float ret_sum[WIDTH])
{
    memset(ret_sum, 0, WIDTH * sizeof *ret_sum);
    for (int f = 0; f < FIELDS; f++) {
        const float *row = row_of(machine, sample, f);
        for (int k = 0; k < WIDTH; k++) {
            ret_sum[k] += row[k];
        }
    }
}

static float logit_of(const struct machine *machine, int64_t sample, float bias)
{
    float sum[WIDTH];
    float pairs = 0;
    sum_of(machine, sample, sum);
    for (int f = 0; f < FIELDS; f++) {
        const float *row = row_of(machine, sample, f);
        for (int k = 1; k < WIDTH; k++) {
            pairs -= row[k] * row[k];
        }
    }
    for (int k = 1; k < WIDTH; k++) {
        pairs += sum[k] * sum[k];
    }
    return bias + sum[0] + pairs / 2;
}

/* Tensors over the machine's own memory: a batch has its own number of ids. */
static cadre_status over_rows(
    const struct machine *machine, float *rows, cadre_tensor **ret_ids, cadre_tensor **ret_rows)
{
    const int64_t dims[2] = {(int64_t)machine->ids.count, WIDTH};
    CADRE_TRY(cadre_tensor_over(CADRE_I64, 1, dims, machine->ids.different, NULL, NULL, ret_ids));
    cadre_status status = cadre_tensor_over(CADRE_F32, 2, dims, rows, NULL, NULL, ret_rows);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_ids);
    }
    return status;
}

static cadre_status pull(const struct machine *machine, float *ret_bias)
{
    cadre_tensor *bias;
    cadre_tensor *ids;
    cadre_read_options options = {0};
    CADRE_TRY(cadre_variable_value(NULL, machine->bias, NULL, &bias));
    *ret_bias = *(const float *)cadre_tensor_const_data(bias);
    cadre_tensor_release(bias);
    CADRE_TRY(over_rows(machine, machine->rows, &ids, &options.into));
    cadre_status status = cadre_variable_gather(NULL, machine->table, ids, &options, NULL);
    cadre_tensor_release(options.into);
    cadre_tensor_release(ids);
    return status;
}

static cadre_status push(const struct machine *machine, const float *bias_slope)
{
    const int64_t one = 1;
    cadre_tensor *bias;
    cadre_tensor *ids;
    cadre_tensor *slopes;
    CADRE_TRY(over_rows(machine, machine->slopes, &ids, &slopes));
    cadre_status status =
        cadre_variable_push(NULL, machine->table, CADRE_ASSIGN_UPDATE, slopes, ids, NULL);
    cadre_tensor_release(slopes);
    cadre_tensor_release(ids);
    CADRE_TRY(status);
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, &one, bias_slope, &bias));
    status = cadre_variable_push(NULL, machine->bias, CADRE_ASSIGN_UPDATE, bias, NULL, NULL);
    cadre_tensor_release(bias);
    return status;
}

cadre_status machine_forward(
    struct machine *machine, const cadre_tensor *ids, const cadre_tensor *clicked, double *ret_loss)
{
    int64_t count = cadre_tensor_rows(clicked);
    const float *truth = cadre_tensor_const_data(clicked);
    float bias;
    ids_sort(&machine->ids, cadre_tensor_const_data(ids), (size_t)count * FIELDS);
    CADRE_TRY(pull(machine, &bias));
    *ret_loss = 0;
    for (int64_t i = 0; i < count; i++) {
        float logit = logit_of(machine, i, bias);
        machine->logits[i] = logit;
        *ret_loss += log1p(exp(-fabs((double)logit))) + (logit > 0 ? logit : 0) -
                     (double)logit * (double)truth[i];
    }
    return CADRE_OK;
}

cadre_status machine_backward(struct machine *machine, const cadre_tensor *clicked)
{
    int64_t count = cadre_tensor_rows(clicked);
    const float *truth = cadre_tensor_const_data(clicked);
    float bias_slope = 0;
    memset(machine->slopes, 0, machine->ids.count * WIDTH * sizeof *machine->slopes);
    for (int64_t i = 0; i < count; i++) {
        float slope = (1 / (1 + expf(-machine->logits[i])) - truth[i]) / (float)count;
        float sum[WIDTH];
        bias_slope += slope;
        sum_of(machine, i, sum);
        for (int f = 0; f < FIELDS; f++) {
            const float *row = row_of(machine, i, f);
            float *into = machine->slopes + (row - machine->rows);
            into[0] += slope;
            for (int k = 1; k < WIDTH; k++) {
                into[k] += slope * (sum[k] - row[k]);
            }
        }
    }
    return push(machine, &bias_slope);
}
