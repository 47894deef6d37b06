from builders import a_launch, an_outcome

from paceline.analysis.configurations import grouped, warning_lines


def test_a_warning_about_many_groups_names_a_few():
    launches = [a_launch(f"l{n}", world_size=n, outcome=an_outcome()) for n in range(1, 6)]
    (line,) = [line for line in warning_lines(grouped(launches)) if "too few launches" in line]
    assert "1 process" in line
    assert "and 2 more" in line
    assert "5 processes" not in line
