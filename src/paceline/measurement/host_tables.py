"""Links between hosts as a table."""

from collections.abc import Sequence

from paceline.measurement.preflight import HostLink
from paceline.render.table import Column, Table


def link_table(links: Sequence[HostLink]) -> Table:
    return Table.of(
        links,
        (Column("host"), lambda link: link.low),
        (Column("peer"), lambda link: link.high),
        (Column("round trip", "us", scale=1e6), lambda link: link.round_trip_seconds),
        (Column("host sends", "MB/s", scale=1e-6), lambda link: link.low_sends),
        (Column("peer sends", "MB/s", scale=1e-6), lambda link: link.bytes_per_second),
        (
            Column("clock offset", "ms", scale=1e3, signed=True, decimals=3),
            lambda link: link.clock_offset_seconds,
        ),
        (Column("error"), lambda link: link.error),
    )
