"""The cluster of options: links, NICs, topology and scaled rates."""

import re
from dataclasses import replace
from pathlib import Path

from paceline.errors import InputError
from paceline.hardware import Cluster, Link, catalogue
from paceline.spec.job_options import JobOptions
from paceline.units import parse_bandwidth, parse_scale, plural


def cluster_of(cluster: str | Path | Cluster | None, options: JobOptions) -> Cluster:
    """The requested part of a cluster, with overridden links."""
    nodes, processes = options.get("nodes"), options.get("processes")
    base = _scaled(_whole_cluster(cluster, processes, options), options)
    if nodes is None and processes is None:
        return base
    return base.shaped(
        nodes if nodes is not None else (1 if cluster is None else base.nodes),
        processes if processes is not None else base.devices_per_node,
    )


def _whole_cluster(
    cluster: str | Path | Cluster | None, processes: int | None, options: JobOptions
) -> Cluster:
    link, intra_link, device = options.get("link"), options.get("intra_link"), options.get("device")
    inter = catalogue.link(link) if link and not _is_rate(link) else None
    intra = catalogue.link(intra_link) if intra_link else None
    for named, option, scope in ((inter, "--link", "inter"), (intra, "--intra-link", "intra")):
        spans_machines = option == "--link" and device and named == _fabric_of(device)
        if named is not None and named.scope != scope and not spans_machines:
            where = {"inter": "between nodes", "intra": "inside a node"}
            is_for = where.get(named.scope, "between host and device")
            raise InputError(
                f"{option} {named.name} is a link {is_for}, not {where[scope]}",
                "list links and their scope with 'paceline catalog links'",
            )
    if cluster is not None:
        if device:
            raise InputError("--cluster and --device are mutually exclusive", "give only one")
        base = cluster if isinstance(cluster, Cluster) else catalogue.cluster(str(cluster))
        base = replace(base, inter=inter or base.inter, intra=intra or base.intra)
        kept = link is not None and options.get("nics") is None and base.nics_per_node > 1
        nics = plural(base.nics_per_node, "NIC")
        text = f"assumes {nics} of {link} per node, as {base.name} has (--nics)"
        return replace(base, assumed=text) if kept else base
    if not device and options.get("trace") is not None:
        from paceline.predictor.kernels.layer_traces import TRACED_DEVICE

        return Cluster("traced nodes", TRACED_DEVICE, 1, 1, intra, inter)
    if not device:
        raise InputError(
            "no cluster or device given",
            "give one: --cluster dgx-a100 -j 4x8 ('paceline catalog clusters' lists all), "
            "or --device a100_sxm_80gb",
        )
    from paceline.hardware.usual_links import default_outer_link, with_default_links

    found, nodes = catalogue.device(device), options.get("nodes") or 1
    usual = default_outer_link(found, processes or 1)
    if inter is None and link:
        inter = usual.link  # `_scaled` sets the stated rate
    if inter is None or inter.transport != "rdma" or options.get("nics") is not None:
        return with_default_links(found, nodes, processes or 1, intra, inter)
    # Nodes of a generation have the same number of RDMA NICs, whatever their rate.
    cluster = with_default_links(found, nodes, processes or 1, intra, inter, usual.nics)
    assumed = (
        f"assumes {plural(usual.nics, 'NIC')} of {link} per node (--nics)" if nodes > 1 else ""
    )
    return replace(cluster, assumed="; ".join(filter(None, (cluster.assumed, assumed))))


def _fabric_of(device: str) -> Link | None:
    """The link inside a node, if it spans machines of the device (GB200 NVL72)."""
    from paceline.hardware.usual_links import default_inner_link, nvlink_domain

    found = catalogue.device(device)
    return default_inner_link(found).link if nvlink_domain(found) else None


def _is_rate(link: str) -> bool:
    """Whether a link is given by its rate, as in ``400gbit`` or ``12.5GB/s``."""
    is_name = link.lower().endswith("gbe")  # 10GbE is a link, with all that is known of it
    return not is_name and re.match(r"[\d.]+\s*[a-zA-Z]*(/s)?$", link) is not None


def _scaled(cluster: Cluster, options: JobOptions) -> Cluster:
    """The cluster with other NICs, another network rate, and scaled rates."""
    link, nics = options.get("link"), options.get("nics")
    if link and _is_rate(link):
        from paceline.hardware.usual_links import default_outer_link

        own = cluster.inter or default_outer_link(cluster.device, cluster.devices_per_node).link
        cluster = replace(
            cluster,
            inter=replace(
                own, name=link, bandwidth=parse_bandwidth(link), collective_bandwidth=None
            ),
        )
    if nics is not None:
        cluster = replace(cluster, nics_per_node=nics)
    scale = options.get("scale")
    factors = parse_scale(scale) if isinstance(scale, str) else scale
    if not factors:
        return cluster
    from paceline.hardware.scaled import scaled_cluster

    return scaled_cluster(cluster, factors)
