/* A linear model of 64 numbers, trained with a kernel of its own on each GPU; on the CPU where
 * there is none. Nothing waits for a kernel: a step is a list of work on its replica's stream.
 *
 *     data ── batch ─┬─ rows of GPU 0 ─▶ kernel: gradient ─┐                ┌─▶ the same weights
 *                    └─ rows of GPU 1 ─▶ kernel: gradient ─┴─ all-reduce ───┴─▶ the same weights */
#include <cadre/cadre.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 64, SAMPLES = 4096, BATCH = 256, EPOCHS = 20, SAVE_EVERY = 5 };

struct model {
    cadre_variable *weights; /* [WIDTH] */
    cadre_optimizer *optimizer;
};

/* What one replica computes with; on a GPU the pointers are into its memory. */
struct work {
    const float *x; /* [rows, WIDTH] */
    const float *y; /* [rows] */
    const float *weights;
    float *slopes; /* [WIDTH] */
    float *loss;
    int64_t rows;
    float scale; /* 1 / rows of all replicas */
};

/* ---- the gradient: the same function in the kernel and on the CPU ---- */

static __host__ __device__ float error_of(const struct work *work, int64_t row)
{
    float sum = -work->y[row];
    for (int i = 0; i < WIDTH; i++) {
        sum += work->weights[i] * work->x[row * WIDTH + i];
    }
    return sum;
}

/* The slope of weight `i`; of `i` == WIDTH the loss. */
static __host__ __device__ void compute(const struct work *work, int i)
{
    float sum = 0;
    for (int64_t row = 0; row < work->rows; row++) {
        const float error = error_of(work, row);
        sum += error * (i < WIDTH ? work->x[row * WIDTH + i] : error);
    }
    *(i < WIDTH ? work->slopes + i : work->loss) = work->scale * sum;
}

/* A thread for each weight, and one for the loss. */
static __global__ void compute_kernel(struct work work)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i <= WIDTH) {
        compute(&work, i);
    }
}

static cadre_status launch(const cadre_replica *replica, const struct work *work)
{
    cudaStream_t stream = static_cast<cudaStream_t>(cadre_replica_stream(replica));
    if (stream == NULL) { /* this replica is on the CPU */
        for (int i = 0; i <= WIDTH; i++) {
            compute(work, i);
        }
        return CADRE_OK;
    }
    compute_kernel<<<1, 2 * WIDTH, 0, stream>>>(*work);
    const cudaError_t status = cudaGetLastError();
    return status == cudaSuccess ? CADRE_OK
                                 : cadre_fail(CADRE_INTERNAL, "a kernel cannot be launched: %s",
                                       cudaGetErrorString(status));
}

/* One step on one replica. in: its rows of the batch. out: the loss of these rows. */
static cadre_status step(
    cadre_replica *replica, cadre_tensor *const in[], cadre_tensor *out[], void *user)
{
    struct model *model = static_cast<struct model *>(user);
    const int64_t dims[1] = {WIDTH};
    CADRE_RELEASE_AT_EXIT(tensor) slopes = NULL;
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &slopes));
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 0, NULL, &out[0]));
    struct work work;
    work.x = static_cast<const float *>(cadre_tensor_const_data(in[0]));
    work.y = static_cast<const float *>(cadre_tensor_const_data(in[1]));
    work.weights = static_cast<const float *>(cadre_variable_read(replica, model->weights));
    work.slopes = static_cast<float *>(cadre_tensor_data(slopes));
    work.loss = static_cast<float *>(cadre_tensor_data(out[0]));
    work.rows = cadre_tensor_rows(in[0]);
    work.scale = 1 / static_cast<float>(cadre_replica_global_rows(replica));
    CADRE_TRY(launch(replica, &work));
    /* Sums the gradients over all replicas, by NCCL on GPUs. */
    return cadre_optimizer_apply(replica, model->optimizer, &slopes, &model->weights, 1, NULL);
}

/* ---- the data: y = the sum of i x_i / WIDTH ---- */

static cadre_dataset *make_data(void)
{
    const int64_t dims[2] = {SAMPLES, WIDTH};
    cadre_tensor *tensors[2];
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 2, dims, &tensors[0]));
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 1, dims, &tensors[1]));
    float *x = static_cast<float *>(cadre_tensor_data(tensors[0]));
    float *y = static_cast<float *>(cadre_tensor_data(tensors[1]));
    for (int row = 0; row < SAMPLES; row++) {
        cadre_random random; /* the same numbers on every machine */
        CADRE_CHECK(cadre_random_for_sample(1, "x", 0, static_cast<uint64_t>(row), &random));
        for (int i = 0; i < WIDTH; i++, x++) {
            *x = static_cast<float>(2 * cadre_random_f64(&random) - 1);
            y[row] += *x * static_cast<float>(i) / WIDTH;
        }
    }
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 1, NULL); /* another order each epoch */
    return cadre_dataset_batch(data, BATCH, false);                 /* of all replicas together */
}

int main(int argc, char **argv)
{
    struct model model;
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch, *losses = NULL;
    uint64_t epoch;
    const int64_t dims[1] = {WIDTH};
    cadre_optimizer_options sgd = {};
    sgd.kind = CADRE_OPTIMIZER_SGD;
    sgd.rate = 0.5;
    CADRE_CHECK(cadre_init(&argc, &argv));
    uint64_t epochs = EPOCHS;
    if (argc > 1) {
        epochs = strtoull(argv[1], NULL, 10);
    }
    CADRE_CHECK(cadre_enable_gpus()); /* its steps can run on them */
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &model.weights));
    CADRE_CHECK(cadre_optimizer_create(strategy, &sgd, &model.optimizer));
    CADRE_CHECK(cadre_distribute_dataset(strategy, make_data(), NULL, &data));
    while (cadre_next_epoch(data, epochs, &epoch)) {
        CADRE_RELEASE_AT_EXIT(tensor) loss = NULL;
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, step, &model, batch, 1, &losses));
        }
        CADRE_CHECK(cadre_distributed_status(data));
        /* Of the epoch's last batch, over all replicas, in the memory of the host. */
        CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, losses, CADRE_AXIS_NONE, &loss));
        const double value =
            static_cast<double>(*static_cast<const float *>(cadre_tensor_const_data(loss)));
        CADRE_CHECK(cadre_report(strategy, "loss", value));
        if (epoch % SAVE_EVERY == SAVE_EVERY - 1) {
            CADRE_CHECK(cadre_save(strategy, false)); /* a checkpoint, written meanwhile */
        }
        if (epoch + 1 == epochs && cadre_strategy_is_chief(strategy)) {
            printf("loss of the last batch: %.6f\n", value);
        }
    }
    return cadre_finish(strategy); /* what main returns; writes the last checkpoint */
}
