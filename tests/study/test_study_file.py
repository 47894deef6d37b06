"""The study file: designs of it, its schema, and mistakes told with file, line and key."""

import re
from pathlib import Path

import pytest

from paceline.errors import PacelineError
from paceline.study import Study, StudySettings
from paceline.study.study_factors import FACTORS
from paceline.study.study_file import KEYS, study_schema

HEAD = 'model = "resnet20"\nbatch = 4\nlaunches = 2\n'


def settings(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return StudySettings.read(path)


def test_factors_become_jobs_that_know_their_levels(tmp_path, quick_framework):
    read = settings(
        tmp_path,
        'model = "resnet20"\nframeworks = ["quick"]\nlaunches = 2\n'
        '[factors]\nbatch = [4, 8]\nprocesses = ["1x1", 2]\nbucket = ["1MiB", "2MiB"]\n'
        "learning_rate = [0.1]\n",
    )
    jobs = list(read.jobs())
    assert len(jobs) == 8
    assert {(job.batch_per_rank, job.world_size, job.bucket_bytes) for job in jobs} == {
        (batch, world, bucket) for batch in (4, 8) for world in (1, 2) for bucket in (2**20, 2**21)
    }
    assert jobs[0].optimiser.learning_rate == 0.1
    assert jobs[0].factors == {
        "batch": 4,
        "processes": "1x1",
        "bucket": "1MiB",
        "learning_rate": 0.1,
    }
    assert sorted(read.design().order) == sorted(list(range(8)) * 2)


def test_a_list_of_runs_is_run_as_written(tmp_path, quick_framework):
    read = settings(
        tmp_path,
        HEAD.replace("batch = 4\n", "") + 'frameworks = "quick"\norder = "given"\n'
        "[[design.run]]\nbatch = 4\nthreads = 1\n[[design.run]]\nbatch = 8\nthreads = 2\n",
    )
    assert [(job.batch_per_rank, job.threads) for job in read.jobs()] == [(4, 1), (8, 2)]
    assert read.design().order == (0, 1, 0, 1)


def test_levels_of_the_block_follow_each_other(tmp_path, quick_framework):
    read = settings(
        tmp_path,
        'model = "resnet20"\nlaunches = 3\nframeworks = "quick"\norder = "blocked"\n'
        'block_by = "threads"\n[factors]\nthreads = [1, 2]\nbatch = [2, 4, 8]\n',
    )
    design = read.design()
    threads = [design.jobs[index].threads for index in design.order]
    for block in (threads[0:6], threads[6:12], threads[12:18]):
        assert block in ([1] * 3 + [2] * 3, [2] * 3 + [1] * 3)


def test_a_stopping_rule_limits_and_warm_up_reach_the_design(tmp_path, quick_framework):
    design = settings(
        tmp_path,
        HEAD + 'frameworks = "quick"\nwarmup = "detect"\n[stopping]\nhalf_width = "3 %"\n'
        'launches = 20\ntime = "2h"\n[limits]\ntime = "90s"\nmemory = "8GB"\n',
    ).design()
    assert design.stopping.relative_half_width == pytest.approx(0.03)
    assert design.stopping.most == 20
    assert (design.most_seconds, design.launch_seconds) == (7200.0, 90.0)
    assert design.detect_warmup
    assert len(design.order) == 8, "the first look"


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        ("batch = 4\nbatches = 5\n", 2, "unknown key 'batches'", "did you mean 'batch'?"),
        ("[factors]\n\nbatsh = [1, 2]\n", 3, "unknown key 'batsh'", "did you mean 'batch'?"),
        ('[factors]\nbatch = [1, "two"]\n', 2, "batch must be an integer from 1 to", "integer"),
        ("[factors]\nbatch = 4\n", 2, "batch must be a list of levels (got 4)", "batch = [1, 2]"),
        ("[factors]\nbatch = [4, 4]\n", 2, "batch has a duplicate level", "once"),
        ('\n[factors]\nframework = ["torch-dpp"]\n', 3, "no framework named 'torch-dpp'", ""),
        ('[factors]\nmodel = ["resnet21"]\n', 2, "no model named 'resnet21'", ""),
        ("batch = 4\n[factors]\nbatch = [4, 8]\n", 3, "both a factor and a setting", "remove one"),
        ('[design]\nkind = "half"\n', 2, "kind must be one of full,", "one of full"),
        (
            '[factors]\nbatch = [1, 2, 3]\n[design]\nkind = "two-level"\n',
            4,
            "batch has 3 levels",
            "two",
        ),
        ('order = "blocked"\n', 1, "no factor named ''", "block_by"),
        (
            'order = "sorted"\n',
            1,
            "order must be one of random, blocked, given (got 'sorted')",
            "random",
        ),
        ('warmup = "auto"\n', 1, "warmup must be one of fixed, detect (got 'auto')", "detect"),
        ('[stopping]\nhalf_width = "2 bananas"\n', 2, "is not a percentage", "90%"),
        ("[stopping]\nhalf_width = 3\n", 2, "percentage out of range: '3'", "100%"),
        (
            '[stopping]\nhalf_width = "2 %"\nlaunches = 3\n',
            3,
            "too few launches for a stopping rule: 3",
            "8 launches or more",
        ),
        ("[stopping]\nlaunches = 9\n", 1, "[stopping] has no half_width", "half_width"),
        ('[limits]\ntime = "soon"\n', 2, "is not a duration", ""),
        ("[[design.run]]\nbatch = 4\n[[design.run]]\nbatc = 4\n", 4, "unknown key 'batc'", ""),
        ('batch = "4"\n', 1, "batch must be an integer from 1 to", ""),
        ('[design]\nkind = "list"\n', 2, "a list design needs runs", "run"),
    ],
)
def test_mistakes_are_told_with_file_line_and_key(tmp_path, text, line, words, hint):
    with pytest.raises(PacelineError) as caught:
        settings(tmp_path, text)
    assert f"mine.toml, line {line}:" in caught.value.message
    assert words in caught.value.message
    assert hint in caught.value.hint


def test_what_cannot_fit_is_refused(tmp_path, quick_framework):
    text = 'frameworks = "quick"\n[factors]\nmodel = ["resnet20", "gpt3_175b"]\n'
    with pytest.raises(PacelineError, match="gpt3_175b on 1 process needs at least"):
        settings(tmp_path, text).design()
    limited = HEAD + 'frameworks = "quick"\n[limits]\nmemory = "50MB"\n'
    with pytest.raises(PacelineError, match="of memory, but 50"):
        settings(tmp_path, limited).design()


def test_the_schema_has_every_key():
    properties = study_schema()["properties"]
    for parts in KEYS:
        table = properties
        for part in parts[:-1]:
            table = table[part]["properties"]
        assert parts[-1] in table
    assert set(properties["factors"]["properties"]) == set(FACTORS)
    assert properties["batch"]["type"] == "integer"
    assert properties["limits"]["properties"]["time"]["type"] == ["number", "string"]


def test_all_errors_of_a_file_are_reported_at_once(tmp_path):
    with pytest.raises(PacelineError) as caught:
        settings(
            tmp_path,
            'batch = "4"\nprice = 3\norder = "sorted"\n[clusters.x]\n[factors]\nbatsh = [1]\n'
            'threads = [1, 1]\n[limits]\ntime = "soon"\n',
        )
    found = [(message.partition("mine.toml, ")[2], hint) for message, hint in caught.value.problems]
    assert [message for message, _ in found] == [
        "line 1: batch must be an integer from 1 to 1,000,000,000 (got '4')",
        "line 2: unknown key 'price'",
        "line 3: order must be one of random, blocked, given (got 'sorted')",
        "line 4: unknown key 'clusters'",
        "line 6: unknown key 'batsh' in [factors]",
        "line 7: threads has a duplicate level",
        "line 9: time: 'soon' is not a duration",
    ]
    assert found[1][1] == "did you mean 'node_price'?"
    assert found[3][1] == "a study runs on this machine, or with launcher and hosts"


def test_a_file_can_name_its_study(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "scaling"\nbatch = 4\n')
    assert Study.read(path).name == "scaling"
    assert Study.read(path, name="other").name == "other"


def test_the_file_of_the_documentation_is_one(tmp_path):
    page = (Path(__file__).parents[2] / "docs/reference/studies.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    assert len(settings(tmp_path, text).points) == 8


@pytest.mark.parametrize("name", ["resnet20", "digits"])
def test_studies_of_the_manual_are_sound(name):
    path = Path(__file__).parents[2] / "docs" / "studies" / f"{name}.toml"
    settings = StudySettings.read(path)
    assert len(settings.points) * settings.launches == {"resnet20": 48, "digits": 20}[name]


def test_the_rate_follows_the_global_batch_by_the_rule(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(
        'model = "digits_cnn"\ndata = "digits"\nepochs = 1\n'
        "learning_rate = 0.1\noversubscribe = true\n"
        '[factors]\nprocesses = [1, 4]\nlearning_rate_rule = ["constant", "linear", "root"]\n'
    )
    rates = [job.optimiser.learning_rate for job in StudySettings.read(file).jobs()]
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.4, 0.2])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("epochs = 2", "training by epochs needs real data"),
        ('data = "digitz"', "no kind of data named 'digitz'"),
        ('data = "cifar10"', "needs a path"),
        (
            'data = "digits"\nepochs = 1\nmodel = "resnet20"',
            "resnet20 does not accept the samples of digits (1x8x8)",
        ),
        (
            'data = "cifar10:nowhere"\nepochs = 1\nmodel = "resnet20"',
            "No such file or directory",
        ),
        (
            'data = "digits"\nepochs = 1\nmodel = "digits_cnn"\nframeworks = "torch-pp"',
            "does not support training by epochs",
        ),
        ('[accuracy]\ntarget = "110 %"', "percentage out of range: '110 %'"),
        (
            '[factors]\nlink = ["1gbit"]\nlab = ["link=1gbit"]',
            "link and lab change the same setting",
        ),
    ],
)
def test_data_and_aims_that_cannot_be_are_refused_before_anything_starts(tmp_path, lines, message):
    file = tmp_path / "s.toml"
    file.write_text(lines)
    with pytest.raises(PacelineError, match=re.escape(message)):
        list(StudySettings.read(file).jobs())
