"""Framework profiles: complete, found by the names people use, and honest about guesses."""

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.hardware.catalogue import cluster, device
from paceline.predictor.framework_profiles import framework, framework_names
from paceline.predictor.kernels.roofline import CONVOLUTIONS
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import Exchange, Policy
from paceline.predictor.predict import predict
from paceline.workload import Workload, zoo

MIB = 2.0**20
FIELDS = {
    *("synchronisation", "library", "input_overlapped", "dispatch", "step_overhead"),
    *("message_overhead", "message_latency", "tensor_overhead", "pointwise_traffic"),
    "convolution",
}
every_framework = pytest.mark.parametrize("name", framework_names())


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("pytorch_ddp", "torch-ddp"),
        ("pytorch", "torch-ddp"),
        ("pytorch_apex_ddp", "torch-apex-ddp"),
        ("pytorch_fsdp", "torch-fsdp"),
        ("pytorch_horovod", "horovod-torch"),
        ("pytorch_byteps", "byteps"),
        ("tensorflow1_horovod", "horovod-tensorflow"),
        ("tensorflow2_horovod", "horovod-tensorflow"),
        ("tensorflow2_multiworker", "tensorflow"),
        ("tf_cnn_benchmarks", "tf-cnn-benchmarks"),
        ("mxnet", "mxnet"),
        ("mxnet_horovod", "horovod-mxnet"),
        ("mxnet_kvstore", "mxnet-ps"),
        ("oneflow", "oneflow"),
        ("oneflow_megatron", "oneflow-megatron"),
        ("megatron_lm", "megatron-lm"),
        ("megatron_deepspeed", "megatron-deepspeed"),
        ("deepspeed", "deepspeed"),
        ("paddle", "paddle"),
        ("Horovod", "horovod-torch"),
        ("WFBP-A2A", "wfbp"),
    ],
)
def test_names_of_published_tables_are_known(alias, name):
    assert framework(alias).name == name


def test_the_frameworks_of_the_five_studies_are_there():
    studies = "caffe caffe-mpi cntk mxnet tensorflow keras horovod-torch singa lbann tarantella"
    for name in [*studies.split(), "pydtnn", "torch-ddp", "torch-fsdp", "jax", "mxnet-ps"]:
        assert framework(name).policy


@every_framework
def test_every_profile_says_what_it_does_and_from_where(name):
    profile = framework(name)
    assert profile.policy.endswith(".")
    assert profile.source
    assert set(profile.priors) <= FIELDS
    assert profile.convolution in CONVOLUTIONS
    assert 0 < profile.pointwise_traffic <= 1
    assert profile.dispatch_seconds > 0
    assert profile.library(device("v100")).name
    assert profile.library(device("xeon_gold_6132")).name != "nccl"


def test_ddp_fills_buckets_of_25_mebibytes_after_a_first_of_one():
    synchronisation = framework("torch-ddp").synchronisation
    assert synchronisation.policy is Policy.BUCKETED
    assert (synchronisation.first_bytes, synchronisation.bucket_bytes) == (MIB, 25 * MIB)


def test_policies_differ_as_the_studies_say():
    assert framework("cntk").synchronisation.policy is Policy.ONE_MESSAGE
    assert framework("caffe-mpi").synchronisation.policy is Policy.PER_TENSOR
    assert framework("mxnet-ps").synchronisation.exchange is Exchange.PARAMETER_SERVER
    assert framework("pydtnn").convolution == "im2col"
    assert framework("pydtnn-nonblocking").synchronisation.policy is Policy.PER_TENSOR
    assert framework("torch-fsdp").shard_stage == 3


def test_a_profile_takes_what_it_does_not_say_from_the_one_it_inherits_from():
    keras, tensorflow = framework("keras"), framework("tensorflow")
    assert keras.step_overhead_seconds > tensorflow.step_overhead_seconds
    assert keras.synchronisation == tensorflow.synchronisation
    assert not set(keras.aliases) & set(tensorflow.aliases)


def test_tensors_cost_something_once_there_are_replicas():
    ddp = framework("torch-ddp")
    assert ddp.overhead_seconds(tensors=133, replicas=1) == ddp.step_overhead_seconds
    more = ddp.overhead_seconds(tensors=133, replicas=2) - ddp.step_overhead_seconds
    assert more == pytest.approx(133 * ddp.tensor_overhead_seconds)


def test_no_two_profiles_share_a_name():
    names = [name for one in map(framework, framework_names()) for name in one.aliases]
    assert len(names) == len(set(names))


def test_an_unknown_framework_names_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"no framework named 'horovd'. Did you mean horovod"
    ):
        framework("horovd")


MINE = """\
[mine]
inherits = "torch-ddp"
title = "Ours"
synchronisation = { policy = "bucketed", bucket_bytes = "50MiB" }
step_overhead = "2ms"
policy = "Larger buckets."
source = "our measurements"
"""


def test_a_profile_of_ones_own_may_inherit_from_one_of_ours(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    mine = framework(f"{file}:mine")
    assert mine.synchronisation.bucket_bytes == 50 * MIB
    assert mine.step_overhead_seconds == pytest.approx(2e-3)
    assert mine.accelerator_library == "nccl"
    assert mine.aliases == ()


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (("step_overhead", "step_overhed"), 5, "unknown key 'step_overhed'", "'step_overhead'"),
        (('"bucketed"', '"bucketd"'), 4, "invalid policy 'bucketd'", "bucketed"),
        (('"torch-ddp"', '"torch-dpp"'), 2, "unknown parent profile 'torch-dpp'", "torch-ddp"),
        (('"2ms"', '"soon"'), 5, "'soon' is not a duration", "200us"),
        (("bucket_bytes", "bucket_size"), 4, "unknown key 'bucket_size'", "'bucket_bytes'"),
        (('inherits = "torch-ddp"\n', ""), 1, "missing key 'library.accelerator' in [mine]", "add"),
        (('"torch-ddp"', '"mine"'), 2, "'mine' inherits from itself", "remove one"),
        (
            ("[mine]\ninherits", "inherits"),
            1,
            "inherits must be a table, not 'torch-ddp'",
            "[inherits]",
        ),
        (('title = "Ours"', "shard_stage = 4"), 3, "shard_stage must be", "between 0 and 3"),
    ],
)
def test_a_mistake_in_a_profile_is_named_with_its_line(tmp_path, change, line, message, hint):
    file = tmp_path / "mine.toml"
    assert change[0] in MINE
    file.write_text(MINE.replace(*change, 1))
    with pytest.raises(InputError) as caught:
        framework(f"{file}:mine")
    assert message in caught.value.message
    assert f"line {line}" in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "precision", "sent", "kept"),
    [
        ("nanotron", "bf16", 4, 6),
        ("nanotron", "fp32", 4, 4),
        ("megatron-lm", "bf16", 4, 4),
        ("megatron-lm", "fp16", 2, 2),
        ("torch-ddp", "bf16", 2, 2),
    ],
)
def test_some_frameworks_keep_and_send_wide_gradients(name, precision, sent, kept):
    assert framework(name).precision(precision).gradient_bytes == sent
    assert framework(name).gradient_bytes_kept(precision) == kept


def test_stages_are_cut_as_the_framework_cuts_them():
    def stages(name):
        prediction = predict(
            Workload(zoo.build("llama3_8b"), 8, 4096, "bf16"),
            cluster("dgx-h100").shaped(1, 4),
            Plan(pp=4, micro_batches=8, framework=name),
        )
        return prediction.step_seconds

    assert stages("nanotron") < stages("torch-ddp"), "the head is a block of its own"


def test_an_answer_does_not_depend_on_what_was_asked_before():
    place = cluster("dgx-a100").with_nodes(1)

    def gradients(names):
        graph = zoo.build("gpt_h512_l2_a8", 128)
        fresh = Workload(type(graph).from_json(graph.to_json()), 8, 128, "bf16", "adam")
        return {
            name: predict(fresh, place, Plan(dp=8, framework=name)).memory.gradients_bytes
            for name in names
        }

    wide_first = gradients(["megatron-lm", "torch-ddp"])
    assert wide_first == gradients(["torch-ddp", "megatron-lm"])
    assert wide_first["megatron-lm"] == 2 * wide_first["torch-ddp"]
