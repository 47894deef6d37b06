"""Selection of the progress bars that show training."""

import pytest

from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts, launch_of_log
from paceline.importers.logs import read_log

TOLD = UserFacts(batch_per_rank=8)


def tqdm(name, done=400, total=400, clock="01:40", rate="4.00it/s"):
    return f"{name}{100 * done // total}%|████| {done}/{total} [{clock}<00:00, {rate}]"


def rich(name, done=400, total=400, clock="0:01:40", rate="4.00it/s"):
    return f"{name} ━━━━━━━━━━━━━━━━ {done}/{total} {clock} • 0:00:00 {rate} v_num: 0.000"


def read(folder, lines, program=None):
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_log(path, program)


OTHERS = {
    "unnamed": tqdm("", 100, 100, "00:00", "555.55it/s"),
    "sanity": rich("Sanity Checking DataLoader 0"),
    "validation": rich("Validation"),
    "validation_of_an_epoch": tqdm("Epoch 3 [val]: "),
    "validation_with_a_loss": tqdm("val: ", rate="4.00it/s, loss=1.25"),
    "testing": rich("Testing"),
    "testing_tqdm": tqdm("Testing DataLoader 0: "),
    "prediction": tqdm("Predicting: "),
    "loading": tqdm("Loading checkpoint shards: "),
    "loading_training_data": tqdm("Loading train split: "),
    "reading": tqdm("Reading camera 400/400: "),
    "downloading": tqdm("Downloading data files: "),
    "something_else": tqdm("frames: "),
    "epochs": tqdm("Epoch: ", 4, 4, "10:00", "150.00s/it"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_bar_of_something_else_is_not_training(tmp_path, name):
    log = read(tmp_path, [OTHERS[name]])
    assert not log.steps
    with pytest.raises(InputError, match="neither step times nor a throughput"):
        launch_of_log(log, tmp_path / "job.log", "study", TOLD)


@pytest.mark.parametrize("name", OTHERS)
def test_training_bar_is_found_among_others(tmp_path, name):
    training = [tqdm("Epoch 0: ", n, 40, f"00:{n:02d}", "1.00it/s") for n in (10, 40)]
    log = read(tmp_path, [OTHERS[name], *training, OTHERS[name]])
    assert log.step_seconds == pytest.approx(1.0)


def test_bar_of_unknown_kind_gives_a_question(tmp_path):
    lines = [tqdm("frames: ")]
    (question,) = read(tmp_path, lines).warnings
    assert "no progress bar could be identified as training" in question
    assert "'frames' (400 steps)" in question
    answered = read(tmp_path, lines, "training-bar")
    assert answered.step_seconds == pytest.approx(0.25)


@pytest.mark.parametrize(
    "other", [OTHERS["testing"], tqdm("files: "), tqdm("", 30, 30, "01:00", "2.00s/it")]
)
def test_the_answer_holds_for_one_bar_only(tmp_path, other):
    lines = [tqdm("frames: "), other]
    log = read(tmp_path, lines, "training-bar")
    is_other = "Testing" in other or "files" in other
    assert bool(log.steps) == is_other, "an unnamed bar may be the one that is meant"


YOLO = "      {epoch}/100      2.71G      1.183      1.456      1.207        106        640: "
EVALUATED = (
    "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): "
)


def ultralytics(name, done=400, total=400, clock="1:40", rate="4.0it/s"):
    return f"{name}{100 * done // total}% ━━━━━━━━━━━━ {done}/{total} {rate} {clock}"


@pytest.mark.parametrize("bar", [tqdm, ultralytics])
def test_bars_with_columns_of_losses_are_training(tmp_path, bar):
    evaluated = (
        bar(EVALUATED, 20, 20, "0:40", "0.5it/s")
        if bar is ultralytics
        else (tqdm(EVALUATED, 20, 20, "00:40", "2.00s/it"))
    )
    lines = []
    for epoch in (1, 2):
        lines += [bar(YOLO.format(epoch=epoch)), evaluated]
        lines.append(
            "                   all        128        929      0.657      0.555      0.613"
        )
    log = read(tmp_path, lines)
    assert log.step_seconds == pytest.approx(0.25)
    assert sum(record.count for record in log.steps) == 800


def mxnet(step):
    return f"Epoch[0] Batch [{step}]\tSpeed: 100.00 samples/sec\taccuracy=0.5"


class TestTasksOfSrun:
    """`srun -l` numbers tasks: with one task per node, two of them are sixteen ranks."""

    LINES = [
        f"{task}: iter {n}: loss 3.2, time {400 + 100 * task}.00ms, mfu 30.00%"
        for n in range(4)
        for task in (0, 1)
    ]

    def test_they_are_no_ranks(self, tmp_path):
        log = read(tmp_path, self.LINES)
        assert log.ranks is None
        assert log.step_seconds == pytest.approx(0.5), "the slower task of each step"
        assert {one.rank for one in log.steps} == {None}
        assert len(log.steps) == 4

    def test_number_of_ranks_is_requested(self, tmp_path):
        log = read(tmp_path, self.LINES)
        with pytest.raises(InputError, match="output of 2 srun tasks") as refusal:
            launch_of_log(log, tmp_path / "job.log", "study", TOLD)
        assert "-j NODESxPROCESSES" in refusal.value.hint
        given = UserFacts(batch_per_rank=8, ranks=16, nodes=2)
        launch = launch_of_log(log, tmp_path / "job.log", "study", given)
        assert (launch.world_size, len(launch.outcome.ranks)) == (16, 1)

    def test_rates_of_workers_add_up(self, tmp_path):
        lines = [f"{task}: {mxnet(step)}" for step in (20, 40, 60) for task in (0, 1)]
        log = read(tmp_path, lines)
        assert log.throughput.per_second == pytest.approx(200.0)


class TestPrintedRounding:
    """Hugging Face's Trainer rounds rates to three decimals: 0.004588 steps/s are 0.005."""

    BANNER = (
        "***** Running training *****",
        "  Total train batch size (w. parallel, distributed & accumulation) = 64",
        "  Total optimization steps = 33",
    )
    END = (
        "{'train_runtime': 7192.6, 'train_samples_per_second': 0.294, "
        "'train_steps_per_second': 0.005, 'train_loss': 1.2, 'epoch': 3.0}"
    )

    def test_it_is_no_contradiction(self, tmp_path):
        log = read(tmp_path, [*self.BANNER, self.END])
        assert not log.contradictions
        assert log.step_seconds == pytest.approx(7192.6 / 33)

    def test_more_than_rounding_is_one(self, tmp_path):
        log = read(tmp_path, [*self.BANNER, self.END.replace("0.005", "0.006")])
        assert log.contradictions

    def test_a_rate_of_one_digit_is_no_measurement(self, tmp_path):
        log = read(tmp_path, [self.END])
        assert not log.steps
        assert log.global_batch is None

    def test_seconds_of_one_digit_agree_with_the_printed_rate(self, tmp_path):
        lines = [
            f"step {n:4d}/19560 | loss 9.5 (+nanz)| norm 3.2 (+nanz)| lr 8.57e-07 | 3 ms | "
            "54.2% bf16 MFU | 302000 tok/s"
            for n in (1, 2, 3)
        ]
        head = ["| sequence length T     | 64 |", "| total batch size      | 1024 |"]
        assert not read(tmp_path, [*head, *lines]).contradictions


def test_a_bar_that_is_drawn_again_after_validation_ends_with_its_last_step(tmp_path):
    lines = [
        tqdm("Epoch 0: ", 32, 32, "00:04", "8.00it/s, v_num=0"),
        tqdm("Validation: ", 9, 9, "00:08", "1.1it/s"),
        tqdm("Epoch 0: ", 32, 32, "00:12", "2.67it/s, v_num=0"),
    ]
    assert read(tmp_path, lines).step_seconds == pytest.approx(1 / 8)


def test_the_first_bar_of_many_may_include_compilation(tmp_path):
    lines = [tqdm("Epoch 0 loss: 1.9: ", 1, 1, "00:36", "36.1s/it")]
    lines += [tqdm(f"Epoch {n} loss: 1.9: ", 1, 1, "00:00", "80.00it/s") for n in range(1, 30)]
    assert read(tmp_path, lines).step_seconds == pytest.approx(1 / 80)


def test_coarse_steps_of_keras_are_used_with_a_warning(tmp_path):
    epochs = [(7, 3), *[(2, 0)] * 6]
    lines = [
        line
        for n, (ms, s) in enumerate(epochs, 1)
        for line in (f"Epoch {n}/7", f"80/80 ━━━━━━━━━━━━━━━━━━━━ {s}s {ms}ms/step - loss: 0.4772")
    ]
    log = read(tmp_path, lines)
    assert log.step_seconds == pytest.approx(2e-3)
    assert any("errors up to 25 %" in text for text in log.warnings)
