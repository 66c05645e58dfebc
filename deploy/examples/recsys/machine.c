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
    cadre_status status = cadre_parameter_find("table", &machine->table);
    if (status == CADRE_OK) {
        status = cadre_parameter_find("bias", &machine->bias);
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
    return machine->rows + (size_t)machine->ids.place[sample * FIELDS + field] * WIDTH;
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

cadre_status machine_forward(
    struct machine *machine, const cadre_tensor *ids, const cadre_tensor *clicked, double *ret_loss)
{
    int64_t count = cadre_tensor_rows(clicked);
    const float *truth = cadre_tensor_const_data(clicked);
    float bias;
    ids_sort(&machine->ids, cadre_tensor_const_data(ids), (size_t)count * FIELDS);
    CADRE_TRY(cadre_parameter_pull(machine->bias, &bias, NULL));
    CADRE_TRY(cadre_parameter_gather_rows(
        machine->table, machine->ids.different, machine->ids.count, machine->rows, NULL));
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
    CADRE_TRY(cadre_parameter_push_rows(
        machine->table, machine->ids.different, machine->ids.count, machine->slopes, NULL));
    return cadre_parameter_push(machine->bias, &bias_slope, NULL);
}
