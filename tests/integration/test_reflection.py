# SPDX-License-Identifier: Apache-2.0
"""A tool that knows no .proto file but that of reflection finds out what the coordinator serves, and calls it."""
import client as generated
from client import CALL_S, refusal
from cluster import Cluster, script
from testing import Failure, check, check_equal, check_in, run

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from reflection.v1 import reflection_pb2, reflection_pb2_grpc
from reflection.v1alpha import reflection_pb2 as alpha_pb2, reflection_pb2_grpc as alpha_pb2_grpc

VERSIONS = ((reflection_pb2, reflection_pb2_grpc), (alpha_pb2, alpha_pb2_grpc))
SERVICES = ["cadre.v1.Agents", "cadre.v1.Coordinators", "cadre.v1.Jobs", "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]


class Generic:
    """What grpcurl does."""

    def __init__(self, channel, pb2=reflection_pb2, stubs=reflection_pb2_grpc):
        self.channel = channel
        self.pb2 = pb2
        self.stub = stubs.ServerReflectionStub(channel)
        self.pool = descriptor_pool.DescriptorPool()

    def ask_all(self, *requests):
        requests = [self.pb2.ServerReflectionRequest(**request) for request in requests]
        answers = list(self.stub.ServerReflectionInfo(iter(requests), timeout=CALL_S))
        check_equal([answer.original_request for answer in answers], requests, "the requests that were answered")
        return answers

    def ask(self, **request):
        return self.ask_all(request)[0]

    def learn(self, **request):
        """Adds the files of the answer to the pool, imports first."""
        files = [descriptor_pb2.FileDescriptorProto.FromString(content)
                 for content in self.ask(**request).file_descriptor_response.file_descriptor_proto]
        added = set()
        while len(added) < len(files):
            ready = [file for file in files if file.name not in added and set(file.dependency) <= added]
            if not ready:
                raise Failure(f"imports are missing among {[file.name for file in files]}")
            for file in ready:
                self.pool.Add(file)
                added.add(file.name)
        return [file.name for file in files]

    def message(self, name):
        return message_factory.MessageFactory(self.pool).GetPrototype(self.pool.FindMessageTypeByName(name))

    def call(self, service, method, **fields):
        described = self.pool.FindServiceByName(service).FindMethodByName(method)
        request = self.message(described.input_type.full_name)
        response = self.message(described.output_type.full_name)
        return self.channel.unary_unary(f"/{service}/{method}", request_serializer=request.SerializeToString,
                                        response_deserializer=response.FromString)(request(**fields), timeout=CALL_S)


def test_a_tool_without_protos_calls_the_coordinator():
    with Cluster() as cluster:
        job = cluster.client.submit(script("echo out"), name="seen by a stranger")
        cluster.client.wait(job)
        for pb2, stubs in VERSIONS:
            tool = Generic(cluster.client.channel, pb2, stubs)
            services = tool.ask(list_services="").list_services_response.service
            check_equal(sorted(service.name for service in services), SERVICES, "services")
            files = tool.learn(file_containing_symbol="cadre.v1.Jobs")
            check_equal(files[0], "cadre/v1/jobs.proto", "the file that was asked for comes first")
            version = tool.call("cadre.v1.Jobs", "Version")
            check_equal((version.workers, version.jobs_live), (1, 0), "Version")
            jobs = tool.call("cadre.v1.Jobs", "List").jobs
            check_equal([(item.id, item.name) for item in jobs], [(job, "seen by a stranger")], "List")
            check_equal(tool.call("cadre.v1.Jobs", "Get", id=job).exit_code, 0, "Get")


def test_every_name_is_found():
    """All that the files define, as protoc generated it for us, is found in the file that defines it."""
    with Cluster(workers=0) as cluster:
        tool = Generic(cluster.client.channel)
        names = {}
        for module in (generated.jobs_pb2, generated.agent_pb2, generated.common_pb2):
            file = module.DESCRIPTOR
            for message in file.message_types_by_name.values():
                names[message.full_name] = file.name
                names.update({field.full_name: file.name for field in message.fields})
                names.update({part.full_name: file.name for part in message.oneofs})
            for enum in file.enum_types_by_name.values():
                names[enum.full_name] = file.name
                names.update({f"{file.package}.{value.name}": file.name for value in enum.values})
            for service in file.services_by_name.values():
                names[service.full_name] = file.name
                names.update({method.full_name: file.name for method in service.methods})
        check(len(names) > 300, f"{len(names)} names")
        answers = tool.ask_all(*({"file_containing_symbol": name} for name in names))
        for name, answer in zip(names, answers):
            first = descriptor_pb2.FileDescriptorProto.FromString(
                answer.file_descriptor_response.file_descriptor_proto[0])
            check_equal(first.name, names[name], f"the file of {name}")
        described = Generic(cluster.client.channel)
        described.learn(file_by_filename="cadre/v1/jobs.proto")
        method = described.pool.FindMethodByName("cadre.v1.Jobs.Watch")
        check_equal(method.output_type.full_name, "cadre.v1.JobInfo", "what Watch answers with")


def test_what_is_not_there():
    """Absence is reported in the stream, which goes on; what is no request ends it."""
    with Cluster(workers=0) as cluster:
        tool = Generic(cluster.client.channel)
        extension = reflection_pb2.ExtensionRequest(containing_type="cadre.v1.JobSpec", extension_number=3)
        answers = tool.ask_all(
            {"file_by_filename": "no/such.proto", "host": "here"}, {"file_containing_symbol": "cadre.v1.Nothing"},
            {"file_containing_symbol": "cadre.v1"}, {"file_containing_symbol": ""},
            {"file_containing_symbol": "x" * 4000},
            {"file_containing_extension": extension}, {"all_extension_numbers_of_type": "cadre.v1.Jobs"}, {},
            {"all_extension_numbers_of_type": "cadre.v1.JobSpec"}, {"file_containing_symbol": ".cadre.v1.JobSpec"})
        codes = [answer.error_response.error_code for answer in answers]
        check_equal(codes, [5, 5, 5, 5, 5, 5, 5, 3, 0, 0], "codes in the stream")
        check_in("no/such.proto", answers[0].error_response.error_message, "the sentence")
        check_equal(answers[0].valid_host, "here", "host")
        check_equal(answers[8].all_extension_numbers_response,
                    reflection_pb2.ExtensionNumberResponse(base_type_name="cadre.v1.JobSpec"), "no extensions")
        raw = cluster.client.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        check_equal(refusal(raw, iter([b"\xff\xff"]))[0], "INVALID_ARGUMENT", "what is no message")
        check_equal(refusal(raw, iter([b"\x0a" + b"\xff\x7f" + b"x" * 5000]))[0], "RESOURCE_EXHAUSTED", "too long")
        check_equal(list(raw(iter([]), timeout=CALL_S)), [], "no question, no answer")


def test_a_reader_that_does_not_read_is_waited_for():
    """A thousand requests, 60 MB of answers: all of them come, none is queued without end."""
    with Cluster(workers=0) as cluster:
        tool = Generic(cluster.client.channel)
        request = reflection_pb2.ServerReflectionRequest(file_containing_symbol="cadre.v1.Jobs")
        stream = tool.stub.ServerReflectionInfo(iter([request] * 1000), timeout=CALL_S)
        check_equal(sum(len(answer.file_descriptor_response.file_descriptor_proto) for answer in stream), 2000, "files")
        check(cluster.client.is_alive(), "the coordinator")


if __name__ == "__main__":
    run(globals())
