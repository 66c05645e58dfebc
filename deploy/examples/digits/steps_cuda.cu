/* SPDX-License-Identifier: Apache-2.0
 * The model of model.c as kernels. A step is a list of launches on the replica's stream, and
 * nothing waits for them: the all-reduce is one more on that list. */
#include <cuda_runtime.h>

#include "gpu.h"

extern "C" {
#include "data.h"
#include "model.h"
}

/* What one step needs beside the weights: numbers of each row. */
struct rows {
    int64_t count;
    const float *images; /* [count, PIXELS] */
    const int32_t *labels;
    float *moved;         /* [count, PIXELS] */
    float *hidden;        /* [count, HIDDEN], after the rectifier */
    float *hidden_errors; /* [count, HIDDEN] */
    float *errors;        /* [count, CLASSES]: odds minus the right answer */
    float *losses;        /* [count] */
    float *right;         /* [count]: 1 where the likeliest class is the label */
};

struct numbers {
    float *of[PARAMETERS];
};

enum { ROW_FLOATS = PIXELS + 2 * HIDDEN + CLASSES + 2, THREADS = 128 };
enum { WEIGHTS = PIXELS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES };

/* --- kernels --- */

static __device__ int64_t number_here()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/* digits_move for each image: a thread has one. */
static __global__ void move_images(struct rows rows, uint64_t epoch)
{
    enum { SIDE = 8 };
    const int64_t row = number_here();
    if (row >= rows.count) {
        return;
    }
    const float *image = rows.images + row * PIXELS;
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(image);
    uint64_t hash = UINT64_C(14695981039346656037) ^ epoch;
    for (int i = 0; i < PIXELS * static_cast<int>(sizeof *image); i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    const uint64_t drawn = hash >> 32;
    const bool stays = drawn % 2 == 0;
    const int right = stays ? 0 : static_cast<int>(drawn / 2 % 3) - 1;
    const int down = stays ? 0 : static_cast<int>(drawn / 6 % 3) - 1;
    for (int p = 0; p < PIXELS; p++) {
        const int x = p % SIDE - right;
        const int y = p / SIDE - down;
        const bool inside = x >= 0 && x < SIDE && y >= 0 && y < SIDE;
        rows.moved[row * PIXELS + p] = inside ? image[y * SIDE + x] : BACKGROUND;
    }
}

/* Turns scores into errors; by one thread, for there are ten of them. */
static __device__ void judge(struct rows rows, int64_t row, float *scores)
{
    const int label = rows.labels[row];
    int best = 0;
    float sum = 0;
    for (int c = 1; c < CLASSES; c++) {
        best = scores[c] > scores[best] ? c : best;
    }
    const float top = scores[best];
    for (int c = 0; c < CLASSES; c++) {
        scores[c] = expf(scores[c] - top);
        sum += scores[c];
    }
    const float odds = scores[label] / sum;
    rows.losses[row] = -logf(odds > 1e-30f ? odds : 1e-30f);
    rows.right[row] = best == label ? 1.0f : 0.0f;
    for (int c = 0; c < CLASSES; c++) {
        scores[c] = scores[c] / sum - (c == label ? 1.0f : 0.0f);
        rows.errors[row * CLASSES + c] = scores[c];
    }
}

/* Forward, and back to the hidden layer: a block has a row, a thread one of the hidden numbers. */
static __global__ void run_rows(struct rows rows, struct numbers weights, const float *images)
{
    __shared__ float hidden[HIDDEN];
    __shared__ float scores[CLASSES];
    const int64_t row = blockIdx.x;
    const int h = static_cast<int>(threadIdx.x);
    const float *image = images + row * PIXELS;
    float sum = weights.of[1][h];
    for (int p = 0; p < PIXELS; p++) {
        sum += image[p] * weights.of[0][p * HIDDEN + h];
    }
    hidden[h] = sum > 0 ? sum : 0;
    __syncthreads();
    if (h < CLASSES) {
        float score = weights.of[3][h];
        for (int i = 0; i < HIDDEN; i++) {
            score += hidden[i] * weights.of[2][i * CLASSES + h];
        }
        scores[h] = score;
    }
    __syncthreads();
    if (h == 0) {
        judge(rows, row, scores);
    }
    __syncthreads();
    float error = 0;
    for (int c = 0; c < CLASSES; c++) {
        error += weights.of[2][h * CLASSES + c] * scores[c];
    }
    rows.hidden[row * HIDDEN + h] = hidden[h];
    rows.hidden_errors[row * HIDDEN + h] = hidden[h] > 0 ? error : 0;
}

/* A thread has one weight of the four arrays, and adds up its slope over all rows, times `scale`.
 */
static __global__ void add_slopes(struct rows rows, float scale, struct numbers slopes)
{
    const int counts[PARAMETERS] = {PIXELS * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES};
    const int widths[PARAMETERS] = {HIDDEN, HIDDEN, CLASSES, CLASSES};
    const float *const sides[PARAMETERS] = {rows.moved, NULL, rows.hidden, NULL};
    const int heights[PARAMETERS] = {PIXELS, 0, HIDDEN, 0};
    int64_t i = number_here();
    if (i >= WEIGHTS) {
        return;
    }
    int which = 0;
    while (i >= counts[which]) {
        i -= counts[which++];
    }
    const float *errors = which < 2 ? rows.hidden_errors : rows.errors;
    const float *side = sides[which];
    float sum = 0;
    for (int64_t row = 0; row < rows.count; row++) {
        const float error = errors[row * widths[which] + i % widths[which]];
        sum += error * (side == NULL ? 1 : side[row * heights[which] + i / widths[which]]);
    }
    slopes.of[which][i] = scale * sum;
}

/* By one thread: *loss = scale x the sum of losses, *right = the hits. Either may be NULL. */
static __global__ void add_rows(struct rows rows, float scale, float *loss, int64_t *right)
{
    float sum = 0;
    float hits = 0;
    for (int64_t row = 0; row < rows.count; row++) {
        sum += rows.losses[row];
        hits += rows.right[row];
    }
    if (loss != NULL) {
        *loss = scale * sum;
    }
    if (right != NULL) {
        *right = static_cast<int64_t>(hits);
    }
}

/* --- launching them --- */

template <typename... Parameters, typename... Arguments>
static cadre_status launch(const cadre_replica *replica, int64_t count, int threads,
    void (*kernel)(Parameters...), Arguments... arguments)
{
    if (count == 0) {
        return CADRE_OK;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((count + threads - 1) / threads));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.stream = static_cast<cudaStream_t>(cadre_replica_stream(replica));
    const cudaError_t status =
        cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
    return status == cudaSuccess ? CADRE_OK
                                 : cadre_fail(CADRE_INTERNAL, "a kernel cannot be launched: %s",
                                       cudaGetErrorString(status));
}

/* Room for the rows' numbers. It may be released as soon as all that uses it is launched. */
static cadre_status rows_create(cadre_replica *replica, cadre_tensor *const inputs[],
    struct rows *ret_rows, cadre_tensor **ret_room)
{
    const int64_t count = cadre_tensor_rows(inputs[0]);
    const int64_t dims[1] = {count * ROW_FLOATS};
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, ret_room));
    float *room = static_cast<float *>(cadre_tensor_data(*ret_room));
    ret_rows->count = count;
    ret_rows->images = static_cast<const float *>(cadre_tensor_const_data(inputs[0]));
    ret_rows->labels = static_cast<const int32_t *>(cadre_tensor_const_data(inputs[1]));
    ret_rows->moved = room;
    ret_rows->hidden = ret_rows->moved + count * PIXELS;
    ret_rows->hidden_errors = ret_rows->hidden + count * HIDDEN;
    ret_rows->errors = ret_rows->hidden_errors + count * HIDDEN;
    ret_rows->losses = ret_rows->errors + count * CLASSES;
    ret_rows->right = ret_rows->losses + count;
    return CADRE_OK;
}

static struct numbers weights_of(const cadre_replica *replica, const struct model *model)
{
    struct numbers weights;
    for (int i = 0; i < PARAMETERS; i++) {
        /* Kernels only read them. */
        weights.of[i] = static_cast<float *>(
            const_cast<void *>(cadre_variable_read(replica, model->weights[i])));
    }
    return weights;
}

/* The gradients of the rows, for the optimizer to sum over all replicas. */
static cadre_status learn(cadre_replica *replica, const struct model *model,
    const struct rows *rows, float scale, struct gradients *gradients)
{
    struct numbers slopes;
    for (int i = 0; i < PARAMETERS; i++) {
        const cadre_variable *weight = model->weights[i];
        CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, cadre_variable_rank(weight),
            cadre_variable_dims(weight), &gradients->tensors[i]));
        slopes.of[i] = static_cast<float *>(cadre_tensor_data(gradients->tensors[i]));
    }
    CADRE_TRY(launch(replica, rows->count, THREADS, move_images, *rows, model->epoch));
    CADRE_TRY(launch(replica, rows->count * HIDDEN, HIDDEN, run_rows, *rows,
        weights_of(replica, model), rows->moved));
    CADRE_TRY(launch(replica, WEIGHTS, THREADS, add_slopes, *rows, scale, slopes));
    return cadre_optimizer_apply(
        replica, model->optimizer, gradients->tensors, model->weights, PARAMETERS, NULL);
}

cadre_status gpu_train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct model *model = static_cast<const struct model *>(user);
    const float scale = 1.0f / static_cast<float>(cadre_replica_global_rows(replica));
    struct rows rows;
    struct gradients gradients = {};
    cadre_tensor *room;
    CADRE_TRY(rows_create(replica, inputs, &rows, &room));
    cadre_status status = learn(replica, model, &rows, scale, &gradients);
    if (status == CADRE_OK) {
        status = cadre_tensor_create_on(replica, CADRE_F32, 0, NULL, &outputs[0]);
    }
    if (status == CADRE_OK) {
        status = launch(replica, 1, 1, add_rows, rows, scale,
            static_cast<float *>(cadre_tensor_data(outputs[0])), nullptr);
    }
    gradients_release(&gradients);
    cadre_tensor_release(room);
    return status;
}

cadre_status gpu_test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct model *model = static_cast<const struct model *>(user);
    struct rows rows;
    cadre_tensor *room;
    CADRE_TRY(rows_create(replica, inputs, &rows, &room));
    cadre_status status = launch(replica, rows.count * HIDDEN, HIDDEN, run_rows, rows,
        weights_of(replica, model), rows.images);
    if (status == CADRE_OK) {
        status = cadre_tensor_create_on(replica, CADRE_I64, 0, NULL, &outputs[0]);
    }
    if (status == CADRE_OK) {
        status = launch(replica, 1, 1, add_rows, rows, 0.0f, nullptr,
            static_cast<int64_t *>(cadre_tensor_data(outputs[0])));
    }
    cadre_tensor_release(room);
    CADRE_TRY(status);
    return cadre_tensor_from_i64(rows.count, &outputs[1]);
}
