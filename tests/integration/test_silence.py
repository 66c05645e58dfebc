# SPDX-License-Identifier: Apache-2.0
"""A worker whose coordinator sends nothing: it asks all of them which one leads, goes there with its tasks, and stays
where it is as long as none does. Two proxies of one coordinator stand for two."""
import threading
from concurrent import futures

from client import SUCCEEDED, agent_pb2, coordinators_pb2, grpc
from cluster import Cluster, script
from test_addresses import set_coordinator
from testing import check_equal, check_in, run, wait_for

JOIN, LEADER = "/cadre.v1.Agents/Join", "/cadre.v1.Coordinators/Leader"
SILENCE_US = 1500000


class Through(grpc.GenericRpcHandler):
    """Passes calls on to the coordinator, promises something in each third of SILENCE_US, which is not kept, and says
    whether it leads as the test has it."""

    def __init__(self, coordinator, listen):
        self.leads = False
        self.mute = threading.Event()  # from then on nothing of a stream is passed down
        self.asked = self.joins = 0
        self.channel = grpc.insecure_channel(coordinator, options=[("grpc.use_local_subchannel_pool", 1)])
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        self.server.add_generic_rpc_handlers([self])
        self.server.add_insecure_port(listen)
        self.server.start()

    def service(self, details):
        return grpc.stream_stream_rpc_method_handler(lambda messages, context: self.call(details.method, messages,
                                                                                         context))

    def call(self, method, messages, context):
        self.joins += method == JOIN
        self.asked += method == LEADER
        down = self.channel.stream_stream(method)(messages)
        context.add_callback(down.cancel)
        try:
            for message in down:
                if method == JOIN:
                    message = self.promise(message)
                elif method == LEADER:
                    message = self.answer(message)
                if method == LEADER or not self.mute.is_set():
                    yield message
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def promise(self, message):
        down = agent_pb2.AgentDown.FromString(message)
        if down.WhichOneof("message") == "welcome":
            down.welcome.silence_us = SILENCE_US
        return down.SerializeToString()

    def answer(self, message):
        response = coordinators_pb2.LeaderResponse.FromString(message)
        response.self.leads = self.leads
        return response.SerializeToString()

    def close(self):
        self.server.stop(0).wait()
        self.channel.close()


def test_it_goes_to_the_one_that_leads():
    with Cluster(workers=1, start=False) as cluster:
        cluster.coordinator.start()
        first, second = (Through(cluster.address, f"unix:{cluster.folder}/{name}") for name in ("first", "second"))
        worker, gate = cluster.workers[0], f"{cluster.folder}/gate"
        try:
            set_coordinator(worker, f"unix:{cluster.folder}/first,unix:{cluster.folder}/second")
            worker.start()
            job = cluster.client.submit(script(f"echo up; while [ ! -e {gate} ]; do sleep 0.05; done; echo end"))
            pid = cluster.client.wait_running(job).tasks[0].pid
            wait_for("both are asked, and again", lambda: min(first.asked, second.asked) > 1)
            check_equal((first.joins, second.joins), (1, 0), "streams, while none of them leads")
            first.mute.set()
            second.leads = True
            wait_for("it joins the other one", lambda: second.joins == 1)
            check_in("the coordinator sends nothing, and another one leads", worker.log(), "the worker's log")
            with open(gate, "wb"):
                pass
            info = cluster.client.wait(job)
            check_equal((info.state, info.tasks[0].pid), (SUCCEEDED, pid), "the job, and the process of its task")
            check_equal(cluster.client.log(job), b"up\nend\n", "what it printed")
            check_equal(first.joins, 1, "streams to the silent one")
            worker.stop()
        finally:
            first.close()
            second.close()


if __name__ == "__main__":
    run(globals())
