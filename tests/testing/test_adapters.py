"""Every framework against its contract, in the environment that Paceline installs for it.

With ``--frameworks`` each environment that needs no compiler is installed and its first framework
tested; other frameworks of the same environment are slow tests, as are those that are compiled.
"""

import os
import subprocess
import warnings

import pytest
from installation import builds

from paceline.frameworks.command import interpreter, worker_variables
from paceline.frameworks.framework_registry import framework, frameworks
from paceline.store import Store
from paceline.testing.adapter_suite import CHECKS, QUICK, check_network, is_small_enough
from paceline.testing.bench import Bench
from paceline.testing.contract import run_check
from paceline.workload import zoo

ORDINARY = ("losses", "synchronisation", "crash", "out of memory")
HERE = "torch"
"""The environment that Paceline's own has all of."""

ENVIRONMENTS = {name: one.environment for name, one in frameworks().items() if one.environment}
OF_PYTORCH = [name for name, place in ENVIRONMENTS.items() if place == HERE and name != "torch-ddp"]
INSTALLED = {name: place for name, place in ENVIRONMENTS.items() if place != HERE}
BUILDS = builds()


@pytest.fixture
def exact(name, monkeypatch):
    """MXNet's oneDNN is 3e-4 off after five steps of ResNet-20 where it uses AVX-512 (limit 2e-4).

    With AVX2 it is 5e-6 off; what is tested is our worker.
    """
    if "mxnet" in name:
        monkeypatch.setenv("DNNL_MAX_CPU_ISA", "AVX2")


def marks_of(name, always=False):
    """When a framework is tested: in each run, or with ``--all`` only."""
    if name in BUILDS:
        return [pytest.mark.framework(name, builds=BUILDS)]
    first = next(one for one, place in INSTALLED.items() if place == INSTALLED[name])
    mark = pytest.mark.framework(first)
    return [mark] if always and name == first else [mark, pytest.mark.slow]


def assert_check(name, check, tmp_path):
    with Store(tmp_path / "store.db") as store:
        result = run_check(check, CHECKS[check], Bench(framework(name), store))
    assert result.passed, result.message


@pytest.mark.parametrize("check", ORDINARY)
def test_pytorch_keeps_its_contract(check, tmp_path):
    assert_check("torch-ddp", check, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("check", [name for name in QUICK if name not in ORDINARY])
def test_pytorch_keeps_the_rest_of_its_contract(check, tmp_path):
    assert_check("torch-ddp", check, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("network", [name for name in zoo.names() if is_small_enough(name)])
def test_pytorch_builds_every_network(network, tmp_path):
    """A step of the largest is some teraFLOP: a minute on a quiet core, many on a busy one."""
    with Store(tmp_path / "store.db") as store:
        bench = Bench(framework("torch-ddp"), store, launch_seconds=1200.0)
        assert network in check_network(bench, network)


def assert_contract(name, tmp_path):
    """Every check passes; on a busy machine, at the second or third try, with a warning."""
    with Store(tmp_path / "store.db") as store:
        bench = Bench(framework(name), store)
        first = failed = failures(bench, QUICK)
        for _ in range(2):
            failed = failures(bench, failed)
    assert not failed
    if first:
        warnings.warn(f"{name} passed only at a further try: {first}", stacklevel=2)


def failures(bench, labels):
    """What went wrong, by check."""
    results = [run_check(label, QUICK[label], bench) for label in labels]
    return {one.check: one.message for one in results if one.passed is False}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PYTORCH)
def test_other_pytorch_adapters_keep_their_contract(name, tmp_path):
    assert_contract(name, tmp_path)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks_of(name, always=True)) for name in INSTALLED]
)
@pytest.mark.usefixtures("installed", "exact")
def test_a_framework_keeps_its_contract(name, tmp_path):
    assert_contract(name, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=marks_of(name))
        for name in INSTALLED
        if frameworks()[name].operations is not None
    ],
)
@pytest.mark.usefixtures("installed")
def test_a_framework_builds_images_and_sequences(name, tmp_path):
    """PyTorch's workers build the whole zoo; of the others, two networks that are unlike."""
    with Store(tmp_path / "store.db") as store:
        for network in ("mobilenet_v2", "lstm_ptb"):
            assert network in check_network(Bench(framework(name), store), network)


EXCHANGE = """
import jax, numpy
from jax.sharding import Mesh, PartitionSpec
from jax_sharded import RANKS, mean_over_ranks

mean = jax.shard_map(
    mean_over_ranks, mesh=Mesh(numpy.array(jax.devices()), (RANKS,)),
    in_specs=PartitionSpec(RANKS), out_specs=PartitionSpec(), check_vma=False,
)
gradients = {"weight": jax.numpy.ones((4, 3)), "bias": jax.numpy.arange(2.0)}
assert mean(gradients)["weight"].shape == (2, 3)
assert mean(gradients)["bias"].tolist() == [0.5]
print(str(jax.make_jaxpr(mean)(gradients)).count("psum"))
"""


@pytest.mark.framework("jax")
@pytest.mark.usefixtures("installed")
def test_jax_exchanges_all_gradients_in_one_message():
    """Gloo sends array by array, which took most of the CPU time of a ResNet-20 step."""
    jax = framework("jax")
    variables = {**worker_variables(jax), "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    answer = subprocess.run(
        [interpreter(jax), "-c", EXCHANGE],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "1\n"
