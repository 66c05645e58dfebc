/* SPDX-License-Identifier: Apache-2.0
 * Gloo as a subject: its TCP transport on loopback, met through files.
 * `gloo_collectives ALGORITHM FOLDER RANKS ...`; ring and bcube are what gloo::allreduce() has; the
 * others are the classes that make an all-reduce for a fixed buffer. */
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"

namespace
{

struct Member {
    std::shared_ptr<gloo::rendezvous::Context> context;
    std::unique_ptr<gloo::Algorithm> fixed; /* made for one buffer */
    uint32_t tag = 0;
};

std::string algorithm;
std::string folder;

void *join(int rank, int ranks)
{
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(folder);
    auto member = std::make_unique<Member>();
    member->context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    member->context->setTimeout(std::chrono::seconds(20));
    auto device = gloo::transport::tcp::CreateDevice(address);
    member->context->connectFullMesh(store, device);
    return member.release();
}

bool prepare(void *self, const struct bench_call *call)
{
    auto member = static_cast<Member *>(self);
    std::vector<float *> buffers{call->in};
    int count = static_cast<int>(call->count);
    member->fixed.reset();
    if (call->operation == BENCH_REDUCE_SCATTER) {
        std::vector<int> parts(member->context->size, count / member->context->size);
        member->fixed = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
            member->context, buffers, count, parts);
    } else if (call->operation != BENCH_ALL_REDUCE && call->operation != BENCH_FRESH) {
        return true;
    } else if (algorithm == "chunked") {
        member->fixed =
            std::make_unique<gloo::AllreduceRingChunked<float>>(member->context, buffers, count);
    } else if (algorithm == "halving") {
        member->fixed = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(
            member->context, buffers, count);
    } else if (algorithm == "fixed_bcube") {
        member->fixed =
            std::make_unique<gloo::AllreduceBcube<float>>(member->context, buffers, count);
    }
    return true;
}

void all_reduce(Member *member, const struct bench_call *call)
{
    gloo::AllreduceOptions options(member->context);
    options.setOutput(call->in, call->count);
    options.setAlgorithm(algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                              : gloo::AllreduceOptions::Algorithm::RING);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    options.setTag(member->tag++);
    gloo::allreduce(options);
}

/* In place in Gloo: its part is then copied to where it is wanted. */
void reduce_scatter(Member *member, const struct bench_call *call)
{
    member->fixed->run();
    size_t part = call->count / static_cast<size_t>(member->context->size);
    std::memcpy(call->out, call->in, part * sizeof(float));
}

void broadcast(Member *member, const struct bench_call *call)
{
    gloo::BroadcastOptions options(member->context);
    options.setOutput(call->in, call->count);
    options.setRoot(call->root);
    options.setTag(member->tag++);
    gloo::broadcast(options);
}

void all_gather(Member *member, const struct bench_call *call)
{
    gloo::AllgatherOptions options(member->context);
    options.setInput(call->in, call->count / static_cast<size_t>(member->context->size));
    options.setOutput(call->out, call->count);
    options.setTag(member->tag++);
    gloo::allgather(options);
}

bool run(void *self, const struct bench_call *call)
{
    auto member = static_cast<Member *>(self);
    gloo::BarrierOptions options(member->context);
    try {
        switch (call->operation) {
        case BENCH_ALL_REDUCE:
        case BENCH_FRESH:
            member->fixed ? member->fixed->run() : all_reduce(member, call);
            break;
        case BENCH_REDUCE_SCATTER:
            reduce_scatter(member, call);
            break;
        case BENCH_BROADCAST:
            broadcast(member, call);
            break;
        case BENCH_ALL_GATHER:
            all_gather(member, call);
            break;
        case BENCH_BARRIER:
            options.setTag(member->tag++);
            gloo::barrier(options);
            break;
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "bench_gloo_collectives: %s\n", error.what());
        return false;
    }
    return true;
}

/* Closing the context while others still read would look like a death: the processes end instead.
 */
void leave(void *)
{
}

} // namespace

int main(int argc, char **argv)
{
    struct bench_subject subject = {};
    struct bench_plan plan;
    if (argc < 3 || !bench_parse(argv + 3, &plan)) {
        return 2;
    }
    algorithm = argv[1];
    folder = argv[2];
    plan.pinned = false; /* pinned, its event loop and its callers fall into steps of 4 ms */
    subject.join = join;
    subject.prepare = prepare;
    subject.run = run;
    subject.leave = leave;
    return bench_run(&plan, &subject);
}
