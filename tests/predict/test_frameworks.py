"""Framework profiles: complete, found by the names people use, and honest about guesses."""

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.hardware.catalogue import device
from paceline.plan.synchronisation import Exchange, Policy
from paceline.predict.compute import CONVOLUTIONS
from paceline.predict.frameworks import framework, framework_names, frameworks_from_toml

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


def test_a_profile_takes_what_it_does_not_say_from_the_one_it_is_like():
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
    with pytest.raises(UnknownNameError, match=r"no framework named 'horovd'. Near: horovod"):
        framework("horovd")


def test_an_incomplete_profile_is_refused_with_its_line():
    with pytest.raises(InputError, match=r"mine.toml, line 2: \[mine\] has no synchronisation"):
        frameworks_from_toml('# mine\n[mine]\ntitle = "Mine"\n', "mine.toml")
    with pytest.raises(InputError, match=r"line 2: no profile 'theirs'"):
        frameworks_from_toml('[mine]\nlike = "theirs"\n', "mine.toml")
