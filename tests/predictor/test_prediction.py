from dataclasses import replace

import pytest

import paceline
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.comm.compression import Compression, CompressionKind
from paceline.predictor.evidence import Evidence
from paceline.predictor.kernels.layer_traces import example_trace, layer_times, traced_graph
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.plan.sync_policy import Exchange, Policy, Synchronisation, synchronisation
from paceline.predictor.predict import predict, prepare
from paceline.predictor.prediction_json import prediction_json
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.predictor.whatif import what_if
from paceline.step.serialise import chrome_trace
from paceline.workload.workload import Workload

HKBU = catalogue.cluster("hkbu-v100-pcie")
RESNET = Workload.of("resnet50", 64)


def on_hkbu(nodes, **fields):
    return predict(RESNET, HKBU.shaped(nodes, 4), Plan(dp=4 * nodes, **fields))


def test_the_package_is_called_like_its_function():
    found = paceline.predict(RESNET, HKBU.shaped(1, 1), Plan())
    assert found.step_seconds > 0


def test_a_prediction_says_what_it_is_and_what_bounds_it():
    text = str(on_hkbu(8, framework="torch-single"))
    assert text.startswith("resnet50, batch 64, fp32 on hkbu-v100-pcie 8x4, dp 32, torch-single")
    assert "bound by    network: 102 MB over eth_10g takes" in text
    assert "90 %" in text
    assert "fits" in text


def test_a_notebook_shows_a_table_with_names_escaped():
    workload = Workload(replace(RESNET.graph, name="<b>net</b>"), 8)
    html = predict(workload, HKBU.shaped(1, 1), Plan())._repr_html_()
    assert html.startswith("<table>")
    assert "&lt;b&gt;net&lt;/b&gt;" in html


def test_json_has_units_in_its_names_and_sums_that_agree():
    document = prediction_json(on_hkbu(2))
    assert document["step_seconds"] == pytest.approx(sum(document["phase_seconds"].values()))
    assert document["memory_total_bytes"] == pytest.approx(sum(document["memory_bytes"].values()))
    assert document["global_batch"] == 512


def test_a_measured_step_is_reproduced_alone_and_carried_to_many():
    alone = predict(RESNET, HKBU.shaped(1, 1), Plan(), evidence=Evidence(alone_seconds=0.253))
    assert alone.step_seconds == pytest.approx(0.253)
    many = predict(RESNET, HKBU.shaped(8, 4), Plan(dp=32), evidence=Evidence(alone_seconds=0.253))
    assert many.step_seconds > 0.253
    assert many.relative_error < on_hkbu(8).relative_error


def test_an_impossible_measured_step_is_refused():
    with pytest.raises(InputError, match="shorter than the framework overhead"):
        predict(RESNET, HKBU.shaped(1, 1), Plan(), evidence=Evidence(alone_seconds=1e-6))


def test_measured_layers_replace_modelled_ones():
    modelled = predict(RESNET, HKBU.shaped(1, 1), Plan())
    layers = Evidence(layers=(LayerTime("fc", 0.5, 0.5),))
    slow = predict(RESNET, HKBU.shaped(1, 1), Plan(), evidence=layers)
    assert slow.step_seconds == pytest.approx(modelled.step_seconds + 1.0, rel=0.01)


def test_input_that_does_not_keep_up_bounds_the_step():
    found = predict(RESNET, HKBU.shaped(1, 4), Plan(dp=4), input_seconds=2.0)
    assert found.step_seconds == pytest.approx(2.0, rel=0.01)
    assert found.bound_by == "input"


def test_a_plan_that_does_not_fit_says_so():
    workload = Workload.of("gpt3_13b", 1, 2048, "fp16", "adam")
    found = predict(workload, HKBU.shaped(1, 4), Plan(dp=4))
    assert found.fits is False
    assert "does NOT fit" in str(found)
    sharded = predict(workload, HKBU.shaped(8, 4), Plan(dp=32, zero=3, recompute=Recompute.FULL))
    assert sharded.fits is True


def test_compression_and_rare_synchronisation_shrink_what_travels():
    full = on_hkbu(8, framework="torch-single").exposed_communication_seconds
    half = on_hkbu(
        8, framework="torch-single", compression=Compression(CompressionKind.FP16)
    ).exposed_communication_seconds
    rare = on_hkbu(
        8,
        framework="torch-single",
        synchronisation=Synchronisation(Policy.ONE_MESSAGE, every_steps=10),
    ).exposed_communication_seconds
    assert half == pytest.approx(full / 2, rel=0.05)
    assert rare == pytest.approx(full / 10, rel=0.1)


def test_asynchronous_replicas_do_not_wait_for_the_slowest():
    servers = Synchronisation(Policy.PER_TENSOR, exchange=Exchange.PARAMETER_SERVER)
    apart = replace(servers, asynchronous=True)
    spread = Evidence(spread=0.1)
    waiting = predict(
        RESNET, HKBU.shaped(8, 4), Plan(dp=32, synchronisation=servers), evidence=spread
    )
    running = predict(
        RESNET, HKBU.shaped(8, 4), Plan(dp=32, synchronisation=apart), evidence=spread
    )
    assert running.step_seconds < waiting.step_seconds
    assert running.waiting_seconds == 0


def test_fewer_parameter_servers_are_a_bottleneck():
    def seconds(servers):
        chosen = Synchronisation(
            Policy.ONE_MESSAGE, exchange=Exchange.PARAMETER_SERVER, servers=servers
        )
        return on_hkbu(8, synchronisation=chosen).step_seconds

    assert seconds(1) > seconds(4) > seconds(8) - 1e-9


def test_every_step_becomes_a_trace():
    pipeline = predict(
        Workload.of("gpt_h512_l8", 8, 128), HKBU.shaped(1, 4), Plan(pp=4, micro_batch=1)
    )
    assert chrome_trace(pipeline.step).count('"ph": "X"') == len(pipeline.step.tasks)
    assert pipeline.step.ranks == [0, 1, 2, 3]


def test_uneven_stages_can_be_given():
    """The last stage of so small a model computes its vocabulary, which outweighs its blocks."""
    workload = Workload.of("gpt_h512_l8", 8, 128)

    def seconds(*blocks):
        plan = Plan(pp=4, micro_batch=1, stage_layers=blocks)
        return predict(workload, HKBU.shaped(1, 4), plan).step_seconds

    even = predict(workload, HKBU.shaped(1, 4), Plan(pp=4, micro_batch=1)).step_seconds
    assert seconds(2, 2, 2, 2) == pytest.approx(even)
    assert seconds(3, 2, 2, 1) < even < seconds(1, 1, 1, 5)


def test_what_if_bounds_every_improvement():
    case = prepare(RESNET, HKBU.shaped(8, 4), Plan(dp=32, framework="torch-single"))
    found = {item.change: item for item in what_if(case)}
    free, faster = found["network (eth_10g) free"], found["network (eth_10g) twice as fast"]
    assert free.step_seconds < faster.step_seconds < free.base_seconds
    assert free.speed_up > faster.speed_up > 1
    assert found["synchronise: merged"].speed_up > 1.3
    assert found["recompute full"].speed_up < 1


def test_a_trace_is_replayed_on_another_network():
    trace = example_trace("googlenet_k80")
    traced = Evidence(layers=tuple(layer_times(trace)))
    workload = Workload(traced_graph(trace), 64)
    plan = Plan(dp=8, synchronisation=synchronisation("one_message"))

    def seconds(link):
        cluster = replace(HKBU.shaped(8, 1), inter=catalogue.link(link))
        return predict(workload, cluster, plan, evidence=traced).step_seconds

    alone = predict(workload, HKBU.shaped(1, 1), Plan(), evidence=traced)
    assert alone.step_seconds == pytest.approx(64 / 163.36, rel=0.01)
    assert any("lower bound" in note for note in alone.notes)
    assert seconds("eth_1g") > seconds("eth_10g") > seconds("ib_edr_100g") > alone.step_seconds


@pytest.mark.parametrize("name", ["p100", "v100_sxm2_16gb", "a100_sxm_40gb"])
def test_utilisation_counts_multiplications_as_the_device_executes_them(name):
    one = replace(HKBU.shaped(1, 1), device=catalogue.device(name))
    spared = predict(Workload.of("vgg16", 64), one, Plan())
    assert spared.utilisation < 1
    # Windows of 3 x 3 hold nearly all FLOPs of VGG-16; Winograd executes a quarter of them.
    assert spared.executed_share == pytest.approx(0.25, abs=0.03)
    assert "26% of the FLOPs are executed" in str(spared)
    matrix = predict(Workload.of("vgg16", 64, None, "amp_fp16"), HKBU.shaped(1, 1), Plan())
    assert matrix.executed_share == 1
    assert "Winograd" not in str(matrix)
