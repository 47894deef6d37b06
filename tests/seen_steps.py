"""Steps and launches as an instrument would see them, from what each rank computes."""

from builders import timed_launch

from paceline.step import Origin, Phase, Step, Task


def seen_step(*ranks, messages=(), start=0.0, per_byte=0.0, after_backward=False, handling=0.0):
    """A data-parallel step: each rank's seconds by phase; messages as (share of backward, bytes).

    A message is under way once every rank has handed it over and the one before has ended; it
    takes ``start`` seconds and ``per_byte`` for each byte. Ranks update when all have ended.
    ``handling`` seconds of backward go to each message.
    """
    ranks = [{"input": 0.0, "forward": 0.03, "backward": 0.06, "update": 0.001, **r} for r in ranks]
    computed = [r["input"] + r["forward"] + r["backward"] + handling * len(messages) for r in ranks]
    handed = [
        [
            (
                end
                if after_backward
                else end - (1 - share) * (r["backward"] + handling * len(messages))
            )
            for share, _ in messages
        ]
        for r, end in zip(ranks, computed, strict=True)
    ]
    ended, last = [], 0.0
    for number, (_, size) in enumerate(messages):
        begin = max(last, max(own[number] for own in handed))
        last = begin + start + per_byte * size
        ended.append(last)
    tasks, starts = [], []

    def add(begin, *fields, **named):
        tasks.append(Task(*fields, **named))
        starts.append(begin)

    for rank, (own, end) in enumerate(zip(ranks, computed, strict=True)):
        begin = own["input"]
        add(0.0, "input", Phase.INPUT, "compute", begin, rank=rank)
        add(begin, "forward", Phase.FORWARD, "compute", own["forward"], rank=rank)
        begin += own["forward"]
        add(begin, "backward", Phase.BACKWARD, "compute", end - begin, rank=rank)
        for number, (_, size) in enumerate(messages):
            leaves = handed[rank][number]
            add(
                leaves,
                f"all-reduce {number}",
                Phase.COMMUNICATE,
                "network",
                ended[number] - leaves,
                rank=rank,
                size_bytes=size,
            )
        add(max(end, last), "update", Phase.UPDATE, "compute", own["update"], rank=rank)
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED)


def seen_launch(number, step, cpu=None, cores=None, delays=None, facts=None, **changes):
    """A launch all of whose steps are ``step``; ``cpu`` seconds of a rank, cores it may use.

    ``delays`` are the seconds that each rank had no core, ``facts`` what else is known.
    """
    from dataclasses import replace

    ranks = step.ranks
    launch = timed_launch(number, *[[step.seconds] * 6 for _ in ranks], timeline=step, **changes)
    records = launch.outcome.ranks
    if cpu is not None:
        records = tuple(replace(r, cpu_seconds=(9.0, *[cpu] * 6)) for r in records)
    if delays is not None:
        records = tuple(
            replace(r, delay_seconds=(9.0, *[delay] * 6))
            for r, delay in zip(records, delays, strict=True)
        )
    facts = dict(facts or {})
    if cores is not None:
        facts["cores"] = [list(cores) for _ in ranks]
    outcome = replace(launch.outcome, ranks=records, facts=facts)
    return replace(launch, outcome=outcome)
