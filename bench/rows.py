"""The bars: what each measure is to be."""

from collections.abc import Iterator

from phases import Found
from report import Row

# Bars that hold for a number of releases only.
CPU_SECONDS = {100: 4.0, 1000: 30.0}
PEAK_MEGABYTES = {100: 220.0, 1000: 300.0}
TIMES_THE_FLOOR = 1.8
REQUESTS_OVER_FLOOR = 10
EDIT_MS = 150.0
HOP_MS = 0.4
# What the floor took where the bars were set, as it was said with them. A CPU-second of a busy machine is less work.
FLOOR_CPU_SECONDS = {100: 0.86}
# None, but the cluster's own polls do not keep to the window: this is two or three of them among 100.
IDLE_PER_RELEASE = 0.03
RESTART_SECONDS, RESTART_MEGABYTES = 15.0, 450.0


def rows_of(found: Found) -> list[Row]:
    """Judge what was found; what was not measured has no row."""
    rows: list[Row] = []
    if "install" in found:
        rows += _install(found["install"], found.get("floor"), found["n"], len(found["rounds"]))
        rows += _later(found, found["n"])
    elif "floor" in found:
        rows += _floor_alone(found["floor"])
    if "sources" in found:
        rows += _sources(found["sources"])
    if "restart" in found:
        rows += _restart(found["populate"], found["restart"])
    if "hop" in found:
        rows += _hop(found["hop"], found.get("floor"), FLOOR_CPU_SECONDS.get(found["n"]))
    return rows


def _install(install: Found, floor: Found | None, count: int, rounds: int) -> Iterator[Row]:
    base = floor or {}
    ready, asked = base.get("ready_s"), base.get("requests_per_release")
    yield Row(
        f"all {count} ready, mean of {rounds}",
        install["ready_s"],
        "s",
        ready,
        ready and ready * TIMES_THE_FLOOR,
        digits=2,
    )
    yield Row(
        "CPU, brain + engine",
        install["cpu_s"],
        "s",
        base.get("cpu_s"),
        CPU_SECONDS.get(count),
        digits=2,
    )
    yield Row("CPU, brain", install["brain_cpu_s"], "s", digits=2)
    yield Row("CPU, engine", install["engine_cpu_s"], "s", digits=2)
    yield Row(
        "peak memory, brain + engine",
        install["peak_mb"],
        "MB",
        base.get("peak_rss_mb"),
        PEAK_MEGABYTES.get(count),
        digits=0,
    )
    yield Row("peak memory, brain", install["brain_peak_mb"], "MB", digits=0)
    yield Row("peak memory, engine", install["engine_peak_mb"], "MB", digits=0)
    yield Row(
        "API requests per release, all causes",
        install["requests_per_release"],
        "requests",
        asked,
        asked and asked + REQUESTS_OVER_FLOOR,
    )


def _later(found: Found, count: int) -> Iterator[Row]:
    idle, edit, gone, hooked = (found[key] for key in ("idle", "edit", "delete", "hooked"))
    window = f"idle for {idle['seconds']:.0f} s"
    yield Row(
        f"{window}, API requests per release",
        idle["extra_requests"] / (count * len(found["rounds"])),
        "requests",
        limit=IDLE_PER_RELEASE,
        digits=2,
    )
    yield Row(f"{window}, CPU", idle["cpu_s"], "s", digits=2)
    yield Row("an edit reaches the cluster, p50", edit["p50_ms"], "ms", limit=EDIT_MS, digits=0)
    yield Row("an edit reaches the cluster, max", edit["max_ms"], "ms", digits=0)
    yield Row("all deleted", gone["gone_s"], "s", digits=2)
    yield Row("CPU of deleting", gone["cpu_s"], "s", digits=2)
    yield Row(f"{hooked['releases']} with hooks ready", hooked["ready_s"], "s", digits=2)
    yield Row(f"CPU of {hooked['releases']} with hooks", hooked["cpu_s"], "s", digits=2)


def _sources(sources: Found) -> Iterator[Row]:
    what = f"{sources['releases']} releases of {sources['charts']} charts"
    yield Row(f"{what}, all ready", sources["ready_s"], "s", digits=2)
    asked = sources["index_fetches"]
    yield Row(f"{what}, index fetches", asked, "requests", limit=1, digits=0)
    limit = sources["charts"]
    yield Row(f"{what}, downloads", sources["downloads"], "requests", limit=limit, digits=0)


def _floor_alone(floor: Found) -> Iterator[Row]:
    yield Row("all ready", None, "s", floor["ready_s"], digits=2)
    yield Row("CPU", None, "s", floor["cpu_s"], digits=2)
    yield Row("peak memory", None, "MB", floor["peak_rss_mb"], digits=0)
    yield Row(
        "API requests per release, all causes", None, "requests", floor["requests_per_release"]
    )


def _restart(populate: Found, restart: Found) -> Iterator[Row]:
    count = populate["releases"]
    yield Row(f"{count} more ready", populate["ready_s"], "s", digits=2)
    yield Row(f"CPU of {count} more", populate["cpu_s"], "s", limit=CPU_SECONDS.get(count))
    yield Row(f"restart over {count}, settled", restart["settled_s"], "s", limit=RESTART_SECONDS)
    yield Row(f"restart over {count}, CPU", restart["cpu_s"], "s", digits=2)
    yield Row(
        f"restart over {count}, peak memory",
        restart["peak_mb"],
        "MB",
        limit=RESTART_MEGABYTES,
        digits=0,
    )
    yield Row(f"restart over {count}, writes", restart["writes"], "requests", limit=0, digits=0)
    yield Row(
        f"restart over {count}, objects changed",
        restart["objects_changed"],
        "objects",
        limit=0,
        digits=0,
    )


def _hop(hop: Found, floor: Found | None, reference: float | None) -> Iterator[Row]:
    for what, key in (("a watch event", "event"), ("a status patch", "patch")):
        yield Row(
            f"{what}, brain + engine",
            hop[f"{key}_ms"],
            "ms CPU",
            limit=HOP_MS,
            floor=hop.get(f"{key}_floor_ms"),
            digits=3,
        )
        for part in ("brain", "engine"):
            yield Row(f"{what}, {part}", hop[f"{key}_{part}_ms"], "ms CPU", digits=3)
        for which in ("least", "most"):
            yield Row(f"{what}, {which}", hop[f"{key}_{which}_ms"], "ms CPU", digits=3)
        if floor and reference:
            scaled = hop[f"{key}_ms"] * reference / floor["cpu_s"]
            where = f"{what}, at the speed at which the floor takes {reference} s"
            yield Row(where, scaled, "ms CPU", digits=3)
