# ruff: noqa: E501
"""Further programs, in the form of `programs`."""

from tests.importers.logs.programs import Program, bar, clock

MORE_PROGRAMS = {
    "marian": Program(
        lambda s: (
            f"[{s.at()}] Ep. {s.e + 1} : Up. {s.n} : Sen. {s.n * 127:,} : Cost {s.loss:.8f} * 1,857,078 @ 4,132 after {s.n * 3700:,} : Time {s.dt * s.stride:.2f}s : {3700 / s.dt:.2f} words/s : L.r. 3.0000e-04"
        ),
        0.47,
        500,
        24,
        10**9,
    ),
    "joeynmt": Program(
        lambda s: (
            f"{s.at3} - INFO - joeynmt.training - Epoch {s.e + 1:3d}, Step: {s.n:8d}, Batch Loss: {s.loss:12.6f}, Tokens per Sec: {3117 / s.dt * 0.2:8.0f}, Lr: 0.001000"
        ),
        0.2,
        100,
        head=(
            "        cfg.training.batch_size : 80",
            "        cfg.training.batch_type : token",
            "\ttotal batch size (w. parallel & accumulation): 80",
        ),
    ),
    "sockeye": Program(
        lambda s: (
            f"[{s.at()}:INFO:sockeye.training:log] Epoch[0] Batch [{s.n}] Speed: {64 / s.dt:.2f} samples/sec {1900 / s.dt:.2f} tokens/sec {1 / s.dt:.2f} updates/sec perplexity={s.loss * 9:.6f}"
        ),
        0.3,
        50,
    ),
    "mindspore": Program(
        lambda s: [
            f"epoch: {s.n} step: 625, loss is {s.loss:.7f}",
            f"epoch time: {625e3 * s.dt:.3f} ms, per step time: {1e3 * s.dt:.3f} ms",
        ],
        0.125,
        1,
        size=10**6,
    ),
    "mindspore_unitless": Program(
        lambda s: (
            f"epoch: [{s.n:3d}/350], epoch time: {625e3 * s.dt:.3f}, steps: 625, per step time: {1e3 * s.dt:.3f}, avg loss: {s.loss:.3f}, lr:[0.050]"
        ),
        0.379,
        1,
        size=10**6,
        unclear=True,
    ),
    "mindformers": Program(
        lambda s: (
            f"{s.at3} - mindformers[mindformers/core/callback/callback.py:529] - INFO - {{ Epoch:[  1/  1], step:[{s.n:5d}/ 4000], loss: {s.loss:.3f}, per_step_time: {1e3 * s.dt:.0f}ms, lr: 1.0e-05, overflow cond: False, loss_scale: 1.0, global_norm: [1.2], train_throughput_per_npu: 152.3T"
        ),
        2.3,
        2,
        size=10**6,
    ),
    "espnet2": Program(
        lambda s: (
            f"[gpu01:0/4] {s.at3} (trainer:732) INFO: {s.e + 1}epoch:train:{s.k - s.stride + 1}-{s.k}batch: iter_time=1.2e-04, forward_time=0.145, loss_ctc=80.1, loss={s.loss:.3f}, acc=0.5, backward_time=0.25, optim_step_time=0.03, optim0_lr0=1.0e-04, train_time={s.dt:.3f}"
        ),
        0.52,
        50,
        size=10**6,
    ),
    "icefall": Program(
        lambda s: (
            f"{s.at3} INFO [train.py:895] (0/4) Epoch {s.e + 1}, batch {s.k}, loss[loss={s.loss:.4f}, simple_loss=0.41, pruned_loss=0.2, over 14999.00 frames. ], tot_loss[loss=0.28, over 2.8e6 frames. ], batch size: {50 + s.k % 7}, lr: 4.2e-03, grad_scale: 16.0"
        ),
        0.31,
        50,
        size=10**6,
    ),
    "wenet": Program(
        lambda s: (
            f"{s.at3} DEBUG TRAIN Batch {s.e}/{s.n} loss {s.loss:.6f} loss_att 60.1 loss_ctc 70.2 lr 0.00000200 rank 0"
        ),
        0.6,
        100,
        size=10**6,
    ),
    "paddlenlp_gpt": Program(
        lambda s: (
            f"[{s.at3}] [    INFO] - global step {s.n}, epoch: 0, batch: {s.n - 1}, loss: {s.loss:.9f}, avg_reader_cost: 0.00045 sec, avg_batch_cost: {s.dt:.5f} sec, speed: {1 / s.dt:.2f} step/s, ips_total: {8192 / s.dt:.0f} tokens/s, ips: {1024 / s.dt:.0f} tokens/s, learning rate: 1.2e-05"
        ),
        0.42,
        10,
        size=10**6,
    ),
    "sb3": Program(
        lambda s: [
            "-----------------",
            "| time/              |          |",
            f"|    fps             | {int(2048 / s.dt)}      |",
            f"|    iterations      | {s.n}        |",
            f"|    time_elapsed    | {s.now:.0f}       |",
            f"|    total_timesteps | {2048 * s.n}     |",
            "| train/ | |",
            f"|    loss            | {s.loss:.4f} |",
            f"|    n_updates       | {10 * s.n} |",
        ],
        12.1,
        1,
        unclear=True,
    ),
    "rsl_rl": Program(
        lambda s: [
            "#" * 40,
            f"                      Learning iteration {s.n}/1500",
            "",
            f"                       Computation: {98304 / s.dt:.0f} steps/s (collection: {0.8 * s.dt:.3f}s, learning {0.2 * s.dt:.3f}s)",
            f"               Value function loss: {s.loss:.4f}",
            f"                   Total timesteps: {98304 * s.n}",
            f"                    Iteration time: {s.dt:.2f}s",
            f"                        Total time: {s.now:.2f}s",
            "                               ETA: 1500.3s",
        ],
        1.21,
        1,
        size=10**6,
    ),
    "dgl_fullgraph": Program(
        lambda s: (
            f"Epoch {s.n:05d} | Time(s) {s.dt:.4f} | Loss {s.loss:.4f} | Accuracy 0.{s.n % 90 + 10}"
        ),
        0.012,
        1,
        unclear=True,
    ),
    "t5x": Program(
        lambda s: (
            f"I{s.at('%m%d %H:%M:%S.%3')}000 139872 logging_writer.py:48] [{s.n}] accuracy=0.53, loss={s.loss:.6f}, timing/seconds={s.dt * s.stride:.6f}, timing/seqs_per_second={128 / s.dt:.6f}, timing/seqs_per_second_per_core={16 / s.dt:.6f}, timing/steps_per_second={1 / s.dt:.6f}"
        ),
        0.77,
        100,
        size=10**6,
    ),
    "clu": Program(
        lambda s: (
            f"I{s.at('%m%d %H:%M:%S.%3')}000 139872 logging_writer.py:48] [{s.n}] steps_per_sec={1 / s.dt:.4f}"
        ),
        0.27,
        100,
        size=10**6,
    ),
    "tf_official": Program(
        lambda s: (
            f"I{s.at('%m%d %H:%M:%S.%3')}000 139872 keras_utils.py:145] TimeHistory: {s.dt * s.stride:.2f} seconds, {256 / s.dt:.2f} examples/second between steps {s.n - s.stride} and {s.n}"
        ),
        0.41,
        100,
        size=10**6,
    ),
    "tf_official2": Program(
        lambda s: (
            f"I{s.at('%m%d %H:%M:%S.%3')}000 139872 controller.py:470] train | step: {s.n:6d} | steps/sec: {1 / s.dt:6.1f} | output: {{'learning_rate': 0.1, 'training_loss': {s.loss:.4f}}}"
        ),
        0.0231,
        100,
        size=10**6,
    ),
    "kohya": Program(
        lambda s: bar("steps", s.n, 2000, s.now, f", avr_loss={s.loss:.4f}"), 1.31, 10, 30, 10**6
    ),
    "diffusers": Program(
        lambda s: bar("Steps", s.n, 15000, s.now, f", lr=1e-05, step_loss={s.loss:.4f}"),
        0.63,
        20,
        40,
        10**6,
    ),
    "audiocraft": Program(
        lambda s: (
            f"[{s.at('%m-%d %H:%M:%S')}][flashy.solver][INFO] - Train | Epoch {s.e + 1} | {s.k}/{s.size} | {1 / s.dt:.2f} it/sec | lr 1.00E-04 | ce {s.loss:.3f} | ppl 1.2E+02"
        ),
        0.61,
        100,
        size=2000,
    ),
    "ijepa": Program(
        lambda s: (
            f"INFO:root:[{s.e + 1}, {s.k:5d}] loss: {s.loss:.3f} masks: 115.9 58.2 [wd: 4.00e-02] [lr: 2.00e-04] [mem: 4.18e+04] ({1e3 * s.mean:.1f} ms)"
        ),
        0.82,
        10,
        size=10**6,
        unclear=True,
    ),
    "nnunet": Program(
        lambda s: [
            f"{s.at()}.123456: Epoch {s.n}",
            f"{s.at()}.2: train_loss {-s.loss:.4f}",
            f"{s.at()}.3: Epoch time: {s.dt:.2f} s",
        ],
        45.0,
        1,
        unclear=True,
    ),
    "unet_epochbar": Program(
        lambda s: (
            bar(
                f"Epoch {s.e + 1}/5",
                s.k * 4,
                s.size * 4,
                s.epoch_busy,
                f", loss (batch)={s.loss:.4f}",
            )
            .replace("it/s", "img/s")
            .replace("s/it", "s/img")
        ),
        0.25,
        10,
        40,
        10**5,
        unclear=True,
    ),
    "vits": Program(
        lambda s: f"{s.at3}\tljs\tINFO\t[{s.n}, 0.0002]", 1.1, 200, 20, 10**6, unclear=True
    ),
    "gluonnlp": Program(
        lambda s: (
            f"{s.at3} - root - INFO - [Epoch {s.e} Batch {s.k}/{s.size}] loss={s.loss:.4f}, ppl=12.1, gnorm=0.3, throughput={3.2 / s.dt:.2f}K wps, wc=3.2K"
        ),
        0.31,
        20,
        size=10**5,
    ),
    "libai": Program(
        lambda s: (
            f"[{s.at('%m/%d %H:%M:%S')} lb.utils.events]:  eta: 1:02:03  iteration: {s.n}/10000  consumed_samples: {s.n * 128}  total_loss: {s.loss:.3f}  time: {s.dt:.4f} s/iter  data_time: 0.0012 s/iter total_throughput: {128 / s.dt:.2f} samples/s lr: 1.2e-04"
        ),
        0.43,
        20,
        size=10**6,
    ),
    "xtuner": Program(
        lambda s: (
            f"{s.at()} - mmengine - INFO - Iter(train) [{s.n:5d}/10000]  lr: 2.0e-05  eta: 3:12:11  time: {s.dt:.4f}  data_time: 0.0123  memory: 12345  loss: {s.loss:.4f}"
        ),
        1.21,
        10,
        size=10**6,
    ),
    "xtuner_v1": Program(
        lambda s: (
            f"[XTuner][RANK 0][{s.at()}][INFO] [Train] (Epoch 1) Step {s.n}/3000  lr: 0.000020  loss: {s.loss:.3f}  max_memory: 40.1GB  text_tokens: 32768  tgs: {32768 / s.dt:.0f}  data_time: 0.12s  time: {s.dt:.2f}s  eta: 2:12:01"
        ),
        4.1,
        1,
        size=10**6,
    ),
    "vissl": Program(
        lambda s: (
            f"INFO {s.at()},123 log_hooks.py: 277: Rank: 0; [ep: {s.e}] iter: {s.n}; lr: 0.1; loss: {s.loss:.5f}; btime(ms): {1e3 * s.mean:.0f}; eta: 5:12:10; peak_mem(M): 5120;"
        ),
        0.41,
        50,
        size=10**6,
    ),
    "slowfast": Program(
        lambda s: (
            f'[{s.at("%m/%d %H:%M:%S")}][INFO] logging.py: 99: json_stats: {{"_type": "train_iter_ema", "dt": {s.last:.5f}, "dt_data": 0.00112, "dt_net": {s.last - 0.002:.5f}, "epoch": "{s.e + 1}/196", "eta": "1 day, 3:01:02", "gpu_mem": "9.32G", "iter": "{s.k}/{s.size}", "loss": {s.loss:.5f}, "lr": 0.01}}'
        ),
        0.72,
        10,
        size=940,
    ),
    "custom_hms": Program(
        lambda s: (
            f"iter {s.n}/90000 | loss {s.loss:.3f} | elapsed {clock(s.now, True)} | eta 12:01:10"
        ),
        0.91,
        100,
        30,
        10**6,
    ),
    "custom_rate_gpu": Program(
        lambda s: (
            f"step {s.n} loss {s.loss:.3f} | {2048 / s.dt:.0f} tokens/s/gpu | {1e3 * s.dt:.0f} ms/step"
        ),
        0.91,
        1,
        30,
        10**6,
    ),
    "kuangliu": Program(
        lambda s: (
            f" [{'=' * (s.k * 60 // s.size)}>{'.' * 10}]  Step: {1e3 * s.last:.0f}ms | Tot: {s.epoch_busy:.0f}s{int(s.epoch_busy * 1e3) % 1000}ms | Loss: {s.loss:.3f} | Acc: 51.2% (256/500) {s.k}/{s.size} "
        ),
        0.053,
        1,
        60,
        391,
        unclear=True,
    ),
    "tensorpack2": Program(
        lambda s: (
            f"[{s.at('%m%d %H:%M:%S')} @base.py:275] Epoch {s.n} (global_step {s.n * 390}) finished, time:{390 * s.dt:.1f} seconds."
        ),
        0.31,
        1,
        unclear=True,
    ),
    "allennlp": Program(
        lambda s: bar(f"accuracy: 0.5123, loss: {s.loss:.4f} ||", s.k, s.size, s.epoch_busy),
        0.21,
        20,
        40,
        10**5,
    ),
    "mmf": Program(
        lambda s: (
            f"{s.at('%Y-%m-%dT%H:%M:%S')} | INFO | mmf.trainers.callbacks.logistics : progress: {s.n}/88000, train/total_loss: {s.loss:.4f}, experiment: x, epoch: 1, num_updates: {s.n}, iterations: {s.n}, max_updates: 88000, lr: 0.00001, ups: {1 / s.dt:.2f}, time: {int(s.dt * s.stride // 60):02d}m {int(s.dt * s.stride % 60):02d}s 345ms, time_since_start: 03m 11s 123ms, eta: 10h 12m"
        ),
        0.81,
        100,
        size=10**6,
    ),
    "cyclegan": Program(
        lambda s: (
            f"(epoch: {s.e + 1}, iters: {s.k * 4}, time: {s.last / 4:.3f}, data: 0.002) G_GAN: {s.loss:.3f} D_real: 0.5"
        ),
        0.81,
        25,
        size=10**5,
        unclear=True,
    ),
    "ppdet": Program(
        lambda s: (
            f"[{s.at('%m/%d %H:%M:%S')}] ppdet.engine INFO: Epoch: [{s.e}] [{s.k:4d}/{s.size}] learning_rate: 0.001 loss: {s.loss:.6f} eta: 1:10:12 batch_cost: {s.dt:.4f} data_cost: 0.0021 ips: {8 / s.dt:.4f} images/s"
        ),
        0.51,
        20,
        size=1000,
    ),
    "nanot5": Program(
        lambda s: (
            f"[{s.at3}][Main][INFO] - [train] Step {s.n} out of 65536 | Loss --> {s.loss:.3f} | Grad_l2 --> 1.231 | Weights_l2 --> 7113.121 | Lr --> 0.010 | Seconds_per_step --> {s.dt:.3f} | "
        ),
        1.23,
        100,
        size=10**6,
    ),
    "char_rnn": Program(
        lambda s: (
            f"{s.n}/21150 (epoch {s.n / 423:.3f}), train_loss = {s.loss:.8f}, grad/param norm = 5.1e-01, time/batch = {s.last:.4f}s"
        ),
        0.431,
        1,
        size=10**6,
    ),
    "word_lm": Program(
        lambda s: (
            f"| epoch {s.e + 1:3d} | {s.k:5d}/{s.size:5d} batches | lr 20.00 | ms/batch {1e3 * s.dt:5.2f} | loss {s.loss:5.2f} | ppl {s.loss * 99:8.2f}"
        ),
        0.0123,
        200,
        size=2983,
    ),
    "txl": Program(
        lambda s: (
            f"| epoch {s.e + 1:3d} step {s.n:8d} | {s.k:6d} batches | lr 0.00025 | ms/batch {1e3 * s.dt:5.2f} | loss {s.loss:5.2f} | ppl {s.loss * 99:9.3f}"
        ),
        0.512,
        200,
        size=10**6,
    ),
    "tf_cifar": Program(
        lambda s: (
            f"{s.at()}.123456: step {s.n}, loss = {s.loss:.2f} ({128 / s.dt:.1f} examples/sec; {s.dt:.3f} sec/batch)"
        ),
        0.104,
        10,
        size=10**6,
    ),
    "hand_tokens": Program(
        lambda s: (
            f"{s.at()} step {s.n} | loss {s.loss:.3f} | {65536 / s.dt:.0f} tok/s | {65536 * s.n / 1e6:.2f}M tokens seen"
        ),
        0.83,
        10,
        24,
        size=10**6,
    ),
    "hand_accum": Program(
        lambda s: (
            f"micro step {s.n * 4} | opt step {s.n} | loss {s.loss:.3f} | {1e3 * s.dt / 4:.1f} ms per micro step"
        ),
        0.83,
        1,
        24,
        size=10**6,
        unclear=True,
    ),
    "hand_eta_only": Program(
        lambda s: f"[{s.n:5d}/10000] loss {s.loss:.3f} ETA {clock(s.dt * (10000 - s.n), True)}",
        0.83,
        10,
        24,
        size=10**6,
        unclear=True,
    ),
    "hand_hours": Program(
        lambda s: f"step {s.n} loss {s.loss:.3f} elapsed {s.now / 3600:.4f} h",
        12.3,
        10,
        24,
        size=10**6,
    ),
    "slurm_ranks": Program(
        lambda s: [f"{r}: step {s.n} loss {s.loss:.3f} step_time {s.dt:.3f}s" for r in range(4)],
        1.2,
        1,
        24,
        size=10**6,
    ),
    "tmux": Program(
        lambda s: [f"\x1b[2K\rstep {s.n}/900 loss {s.loss:.3f} {s.dt:.3f}s/step", "\x1b[1A"],
        1.2,
        1,
        24,
        size=10**6,
    ),
    "gpu_util_noise": Program(
        lambda s: [
            f"{s.at()} step {s.n} loss {s.loss:.3f}",
            f"{s.at()} GPU 0: util 98% mem 31.2GB power 287.3W temp 61C clock 1410 MHz",
        ],
        1.9,
        5,
        30,
        size=10**6,
    ),
    "eval_heavy": Program(
        lambda s: [
            f"step {s.n} loss {s.loss:.3f} time {1e3 * s.dt:.1f}ms",
            *([f"step {s.n} eval loss 2.1 time 9123.4ms"] if s.n % 8 == 0 else []),
        ],
        0.3,
        1,
        42,
        size=10**6,
    ),
    "ckpt_in_time": Program(
        lambda s: (
            f"iter {s.n} loss {s.loss:.3f} iter_time {s.dt + (4 if s.n % 20 == 0 else 0):.3f}s"
        ),
        0.3,
        1,
        60,
        size=10**6,
    ),
    "resumed_total": Program(
        lambda s: f"step {s.n + 50000} | loss {s.loss:.3f} | total time {36000 + s.now:.1f}s",
        0.71,
        10,
        30,
        size=10**6,
    ),
    "eta_decides_stride": Program(
        lambda s: (
            f"INFO run.py(40): it: {s.n}/90000, rate: 0.01, eta: {clock(s.dt * (90000 - s.n), True)}, "
            f"time: {s.dt * 20:.2f}, loss: {s.loss:.4f}"
        ),
        0.71,
        20,
        24,
        size=10**6,
    ),
    "eta_of_epochs": Program(
        lambda s: (
            f"epoch {s.e + 1}/20 iter {s.k}/{s.size} eta: {clock(s.dt * (20 * s.size - s.n), True)} "
            f"time: {s.dt * 20:.2f} loss: {s.loss:.4f}"
        ),
        0.71,
        20,
        24,
        unclear=True,
    ),
    "table_of_iterations": Program(
        lambda s: f"| {s.n:<10} | {s.loss:.5f} | {s.busy:.2f}s |",
        0.91,
        5,
        24,
        head=(
            "+------------+---------+--------------+",
            "| Iteration  | Loss    | Elapsed Time |",
            "+------------+---------+--------------+",
        ),
        size=10**6,
    ),
    "unnamed_counter": Program(
        lambda s: (
            f"0 {s.n} {s.at()} {{'loss': '{s.loss:.4f}', 'tok/stp': '524,288.0', "
            f"'s/stp': '{s.dt:.3f}', 'gpu_mem_use': '46%'}}"
        ),
        2.2,
        9,
        24,
        size=10**6,
    ),
    "rounds_of_games": Program(
        lambda s: f"{s.n} loss {s.loss:.4f} took {s.dt * 37:.2f}s",
        0.4,
        1,
        24,
        size=10**6,
        unclear=True,
    ),
    "mean_that_falls": Program(
        lambda s: f"Step {s.n} [{s.dt + 80 * s.dt / s.busy:.3f} sec/step, loss={s.loss:.5f}]",
        1.7,
        1,
        24,
        size=10**6,
        unclear=True,
    ),
    "training_time_of_validation": Program(
        lambda s: (
            f"step:{s.n}/6000 val_loss:{s.loss:.4f} train_time:{1e3 * s.busy:.0f}ms "
            f"step_avg:{1e3 * s.busy / s.n:.2f}ms"
        ),
        0.26,
        125,
        24,
        size=10**6,
    ),
    "tokens_of_a_step_in_the_head": Program(
        lambda s: f"step {s.n:6d} | loss {s.loss:.4f} | lr 1.7e-04 | {32.768 / s.dt:.1f}k tok/s",
        0.87,
        10,
        24,
        head=("Params : 299,392,704", "Tokens / optimizer step : 32,768", "Max steps : 100,000"),
        size=10**6,
    ),
    "losses_in_the_name_of_a_bar": Program(
        lambda s: bar(f"d: {0.3 - s.loss / 9:.3f};gen: {s.loss / 9:.3f}", s.n, 20000, s.busy),
        2.1,
        10,
        24,
        size=10**6,
    ),
    "asynchronous_start": Program(
        lambda s: (
            f"finished step: {s.n}, seconds: {s.dt * {1: 9, 2: 0.05}.get(s.n, 1):.3f}, loss: {s.loss:.3f}"
        ),
        0.96,
        1,
        9,
        size=10**6,
    ),
    "source_in_front": Program(
        lambda s: f"step:{s.n}/9000 train_loss:{s.loss:.4f} train_time:{1e3 * s.busy:.0f}ms",
        0.23,
        10,
        24,
        head=(
            "class Sharded(Optimizer):",
            "    def __init__(self, params, rank=0, world_size=1):",
            "        self.world_size = world_size",
        ),
        size=10**6,
    ),
}
