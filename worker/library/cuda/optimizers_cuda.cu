/* SPDX-License-Identifier: Apache-2.0
 * Updates by optimizers, launched by work_cuda.c: the operations of
 * worker/library/optimizer/update_loops.h on an element, in the same order. This file is compiled
 * without fused products and sums, and division and square roots are rounded by IEEE 754: the bits
 * are the host's.
 *
 * A thread takes 16 bytes of each operand at a time where all addresses are aligned to that, as
 * those of whole variables are, and else element by element. */
#include "worker/library/cuda/kernels.h"

#include <cuda_runtime.h>

#include "worker/library/optimizer/terms.h"

namespace
{

constexpr unsigned threads = 256;
constexpr unsigned blocks_max = 2048;
constexpr unsigned vector_bytes = 16;

template <typename Number> struct alignas(vector_bytes) Vector {
    static constexpr unsigned size = vector_bytes / sizeof(Number);
    Number at[size];
};

/* The terms as numbers of the type, as the host's loops round them. */
template <typename Number> struct Terms {
    Number rate, decay, momentum, rho, rest_rho, rest1, rest2, correct1, correct2, epsilon;
    explicit Terms(const update_terms &terms)
        : rate(static_cast<Number>(terms.rate)), decay(static_cast<Number>(terms.decay)),
          momentum(static_cast<Number>(terms.momentum)), rho(static_cast<Number>(terms.rho)),
          rest_rho(static_cast<Number>(terms.rest_rho)), rest1(static_cast<Number>(terms.rest1)),
          rest2(static_cast<Number>(terms.rest2)), correct1(static_cast<Number>(terms.correct1)),
          correct2(static_cast<Number>(terms.correct2)), epsilon(static_cast<Number>(terms.epsilon))
    {
    }
};

__device__ float root(float value)
{
    return sqrtf(value);
}
__device__ double root(double value)
{
    return sqrt(value);
}

/* How many slots a kind has; the others are not touched. */
template <update_kind kind> struct Slots {
    static constexpr int count = kind == UPDATE_SGD ? 0
                                 : kind == UPDATE_ADAM || kind == UPDATE_LAMB ||
                                         kind == UPDATE_RMSPROP_MOMENTUM ||
                                         kind == UPDATE_RMSPROP_CENTERED
                                     ? 2
                                 : kind == UPDATE_RMSPROP_CENTERED_MOMENTUM ? 3
                                                                            : 1;
};

/* One element, as in update_loops.h. */
template <update_kind kind, typename Number>
__device__ void rmsprop(
    const Terms<Number> &terms, Number &value, Number &a, Number &b, Number &c, Number by)
{
    constexpr bool moves =
        kind == UPDATE_RMSPROP_MOMENTUM || kind == UPDATE_RMSPROP_CENTERED_MOMENTUM;
    constexpr bool centered =
        kind == UPDATE_RMSPROP_CENTERED || kind == UPDATE_RMSPROP_CENTERED_MOMENTUM;
    const Number kept = value - value * terms.decay;
    const Number mean = terms.rho * a + terms.rest_rho * (by * by);
    Number spread = mean;
    a = mean;
    if (centered) {
        Number &average = moves ? c : b;
        const Number middle = terms.rho * average + terms.rest_rho * by;
        average = middle;
        spread = mean - middle * middle;
        spread = spread < 0 ? 0 : spread;
    }
    Number step = terms.rate * by / root(spread + terms.epsilon);
    if (moves) {
        step = terms.momentum * b + step;
        b = step;
    }
    value = kept - step;
}

template <update_kind kind, typename Number>
__device__ void adam(const Terms<Number> &terms, Number &value, Number &a, Number &b, Number by)
{
    const Number m = a + (by - a) * terms.rest1;
    const Number w = b + (by * by - b) * terms.rest2;
    a = m;
    b = w;
    if (kind == UPDATE_LAMB) {
        value -= terms.rate * (m * terms.correct1 / (root(w * terms.correct2) + terms.epsilon) +
                                  value * terms.decay);
    } else {
        const Number kept = value - value * terms.decay;
        value = kept - m * terms.rate / (root(w) + terms.epsilon);
    }
}

template <update_kind kind, typename Number>
__device__ void update(
    const Terms<Number> &terms, Number &value, Number &a, Number &b, Number &c, Number by)
{
    if (kind == UPDATE_ADAM || kind == UPDATE_LAMB) {
        adam<kind>(terms, value, a, b, by);
        return;
    }
    if (kind == UPDATE_RMSPROP || kind == UPDATE_RMSPROP_MOMENTUM ||
        kind == UPDATE_RMSPROP_CENTERED || kind == UPDATE_RMSPROP_CENTERED_MOMENTUM) {
        rmsprop<kind>(terms, value, a, b, c, by);
        return;
    }
    const Number kept = value - value * terms.decay;
    if (kind == UPDATE_SGD) {
        value = kept - terms.rate * by;
    } else if (kind == UPDATE_MOMENTUM) {
        const Number moved = terms.momentum * a - terms.rate * by;
        a = moved;
        value = kept + moved;
    } else if (kind == UPDATE_NESTEROV) {
        const Number step = terms.rate * by;
        const Number moved = terms.momentum * a - step;
        a = moved;
        value = kept + (terms.momentum * moved - step);
    } else {
        const Number sum = a + by * by;
        a = sum;
        value = kept - terms.rate * by / root(sum + terms.epsilon);
    }
}

template <typename Number> struct Operands {
    Number *value, *a, *b, *c;
    const Number *gradient;
};

/* Element i. */
template <update_kind kind, typename Number>
__device__ void update_at(const Terms<Number> &terms, const Operands<Number> &operands, size_t i)
{
    constexpr int slots = Slots<kind>::count;
    Number none = 0;
    Number &a = slots > 0 ? operands.a[i] : none;
    Number &b = slots > 1 ? operands.b[i] : none;
    Number &c = slots > 2 ? operands.c[i] : none;
    update<kind>(terms, operands.value[i], a, b, c, operands.gradient[i]);
}

template <typename Number> __device__ Vector<Number> load(const Number *from, size_t vector)
{
    return reinterpret_cast<const Vector<Number> *>(from)[vector];
}
template <typename Number>
__device__ void store(Number *to, size_t vector, const Vector<Number> &values)
{
    reinterpret_cast<Vector<Number> *>(to)[vector] = values;
}

/* `vectors` of 16 bytes, and the elements behind them. */
template <update_kind kind, typename Number>
__global__ void __launch_bounds__(threads)
    update_kernel(Terms<Number> terms, Operands<Number> operands, size_t vectors, size_t count)
{
    constexpr int slots = Slots<kind>::count;
    const size_t first = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x;
    const size_t stride = static_cast<size_t>(gridDim.x) * threads;
    for (size_t at = first; at < vectors; at += stride) {
        Vector<Number> value = load(operands.value, at);
        const Vector<Number> by = load(operands.gradient, at);
        Vector<Number> a = slots > 0 ? load(operands.a, at) : value;
        Vector<Number> b = slots > 1 ? load(operands.b, at) : value;
        Vector<Number> c = slots > 2 ? load(operands.c, at) : value;
        for (unsigned i = 0; i < Vector<Number>::size; i++) {
            update<kind>(terms, value.at[i], a.at[i], b.at[i], c.at[i], by.at[i]);
        }
        store(operands.value, at, value);
        if (slots > 0) {
            store(operands.a, at, a);
        }
        if (slots > 1) {
            store(operands.b, at, b);
        }
        if (slots > 2) {
            store(operands.c, at, c);
        }
    }
    for (size_t i = vectors * Vector<Number>::size + first; i < count; i += stride) {
        update_at<kind>(terms, operands, i);
    }
}

bool is_aligned(const void *address)
{
    return reinterpret_cast<uintptr_t>(address) % vector_bytes == 0;
}

unsigned blocks_for(size_t items)
{
    size_t blocks = (items + threads - 1) / threads;
    return static_cast<unsigned>(blocks < 1 ? 1 : (blocks < blocks_max ? blocks : blocks_max));
}

template <update_kind kind, typename Number>
cudaError_t launch(const kernel_update &update, cudaStream_t stream)
{
    const Operands<Number> operands = {static_cast<Number *>(update.values),
        static_cast<Number *>(update.slots[0]), static_cast<Number *>(update.slots[1]),
        static_cast<Number *>(update.slots[2]), static_cast<const Number *>(update.gradient)};
    bool aligned = is_aligned(update.values) && is_aligned(update.gradient);
    for (int i = 0; i < Slots<kind>::count; i++) {
        aligned = aligned && is_aligned(update.slots[i]);
    }
    const size_t vectors = aligned ? update.count / Vector<Number>::size : 0;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks_for(vectors > 0 ? vectors : update.count));
    config.blockDim = dim3(threads);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, update_kernel<kind, Number>, Terms<Number>(*update.terms),
        operands, vectors, update.count);
}

template <typename Number> cudaError_t launch_kind(const kernel_update &update, cudaStream_t stream)
{
    switch (update.kind) {
    case UPDATE_SGD:
        return launch<UPDATE_SGD, Number>(update, stream);
    case UPDATE_MOMENTUM:
        return launch<UPDATE_MOMENTUM, Number>(update, stream);
    case UPDATE_NESTEROV:
        return launch<UPDATE_NESTEROV, Number>(update, stream);
    case UPDATE_ADAGRAD:
        return launch<UPDATE_ADAGRAD, Number>(update, stream);
    case UPDATE_RMSPROP:
        return launch<UPDATE_RMSPROP, Number>(update, stream);
    case UPDATE_RMSPROP_MOMENTUM:
        return launch<UPDATE_RMSPROP_MOMENTUM, Number>(update, stream);
    case UPDATE_RMSPROP_CENTERED:
        return launch<UPDATE_RMSPROP_CENTERED, Number>(update, stream);
    case UPDATE_RMSPROP_CENTERED_MOMENTUM:
        return launch<UPDATE_RMSPROP_CENTERED_MOMENTUM, Number>(update, stream);
    case UPDATE_ADAM:
        return launch<UPDATE_ADAM, Number>(update, stream);
    case UPDATE_LAMB:
        return launch<UPDATE_LAMB, Number>(update, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

} /* namespace */

cudaError_t kernel_update_elements(
    kernel_number number, const struct kernel_update *update, cudaStream_t stream)
{
    return number == KERNEL_F64   ? launch_kind<double>(*update, stream)
           : number == KERNEL_F32 ? launch_kind<float>(*update, stream)
                                  : cudaErrorInvalidValue;
}
