"""From the JSON of `twiddle time`, `twiddle tune` and `twiddle-bench` to the rows of a run file (docs/formats.md), for scripts/results."""
import re

VENDORS = ["cudnn", "onednn"]  # engines that call a vendor's convolutions


def rows_of_time(found):
    def row(timing, **more):
        times = {key: timing[key] for key in ["median_ms", "p10_ms", "p90_ms", "samples"]}
        return {"program": "twiddle", "network": found["model"], "batch": found["batch_size"], "precision": found["precision"],
                **more, **times}

    gpu = found["device"].startswith("cuda")
    if "alone" in found:  # several ranks, and one with its shard of the batch
        ranks, graph = "gpus" if gpu else "ranks", {True: "graph", False: "eager"}
        return [row(found["alone"], **{ranks: 1}, batch=found["batch_size"] // found["ranks"], variant=graph[found["alone_captured"]]),
                row(found["together"], **{ranks: found["ranks"]}, variant=graph[found["captured"]], peak_bytes=found["peak_pool_bytes"],
                    exposed_ms=found["exposed_communication_ms"])]
    setting = {"engine": found["engine"]}
    if not gpu:
        setting["threads"] = int(re.search(r"(\d+) thread", found["device"])[1])
    rows = [row(found["iteration"], **setting, variant="eager", peak_bytes=found["peak_pool_bytes"])]
    return rows + [row(found[key], **setting, variant="graph") for key in ["recorded_iteration"] if key in found]


# What tune and bench call a value, and what a run file calls it. Their `ms` is the best of a few runs, not a median.
VALUES_OF_BENCH = {"ms": ("best_ms", 1), "in_step_ms": ("in_step_ms", 1), "error": ("error", 1), "worst_row": ("worst_row_error", 1),
                   "largest_error": ("largest_error", 1), "workspace_bytes": ("workspace_bytes", 1), "bytes_per_second": ("gb_per_s", 1e-9),
                   "operations_per_second": ("tflops", 1e-12), "multiply_adds_per_second": ("tflops", 2e-12)}


def values_of(each):
    if "failure" in each:
        return {"best_ms": None, "reason": each["failure"].split("\n")[0]}
    return {ours: factor * each[theirs] for theirs, (ours, factor) in VALUES_OF_BENCH.items() if each.get(theirs) is not None}


def rows_of_layer(found, each):
    vendor = (each.get("engine") or each.get("plan") or "").split(":")[0]
    plan = f"{each['grid']}, {each['product']}" if "grid" in each else each.get("plan")
    more = {"network": found.get("model"), "engine": each.get("engine"), "plan": plan, "range": each.get("range")}
    row = {"program": vendor if vendor in VENDORS else "twiddle", "layer": each["layer"], "problem": each["problem"],
           "pass": each.get("pass", "forward"), "precision": found["precision"]}
    return [{**row, **{key: value for key, value in more.items() if value}, **values_of(each)}]


def rows_of_transform(each):
    row = {"transform": f"{each['direction']} {each['dimensions']}-D", "size": each["points"], "count": each["batch"],
           "layout": each["layout"]}
    rows = [{"program": "twiddle", **row, **values_of(each)}]
    if "vendor_ms" in each:
        vendor = {"ms": each["vendor_ms"], "bytes_per_second": each["vendor_bytes_per_second"]}
        rows.append({"program": "cufft" if each["vendor"] == "cuFFT" else "fftw", **row, **values_of(vendor)})
    return rows


def rows_of_bench(found, each):
    if "layer" in each and ("failure" in each or values_of(each)):
        return rows_of_layer(found, each) if "problem" in each else []  # sums over layers follow from the others
    if "points" in each:
        return rows_of_transform(each)
    if found["bench"] == "allreduce":
        ranks = "gpus" if found["device"].startswith("cuda") else "ranks"
        return [{"program": "twiddle", "collective": name, "bytes": 1000000 * each["mb"], ranks: each["ranks"],
                 "median_ms": each[f"{name}_ms"], "gb_per_s": each[f"{name}_gb_per_s"]} for name in ["sum", "scatter", "gather"]]
    raise ValueError(f"bench {found['bench']} has no rows for a run file; their fields are {', '.join(each)}")


def rows_of(found):
    """From the JSON of a program to rows; our scripts print them as they are."""
    if "iteration" in found or "alone" in found:
        return rows_of_time(found)
    if "layers" in found:  # of tune
        return [row for each in found["layers"] for row in rows_of_layer(found, each)]
    return [row for each in found["rows"] for row in rows_of_bench(found, each)] if "bench" in found else found["rows"]
