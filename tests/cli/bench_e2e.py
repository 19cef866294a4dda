#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve bench`: its tables word for word, without what is measured (golden/transcript/bench.txt); what is measured fits together;
each line is there to read when it is known."""
import json
import math
import os
import re
import shutil
import socket
import subprocess

from sieve import Project, main
from transcript import SOURCE, Transcript

MODEL = os.path.join(SOURCE, "workflows/models/esol.safetensors")
QUICK = ["bench", "--batch", "2", "--seconds", "0", "--threads", "1", "--graphs", "bonds", "--model", "esol.safetensors"]
EXACT = ["--variants", "portable exact fp32"]
NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")
MISTAKES = """--seconds -1|--seconds x|--batch x|--batch 100001|--graphs none|--threads 0|--threads 1,2,3,4,5,6,7,8,9|--threads 1,|--memory --ranks x|--parity odd
--model none.safetensors|--molecules none.sdf|--molecules words.smi|--molecules boron.smi|--roofline --variants ref|--roofline --svg none/x/
--roofline --molecules none.sdf|--roofline --model none.safetensors|--batch 0|--seconds 3601|--memory --ranks 0|--memory --ranks 1025|--threads 257
--roofline --gpu-roof 1,2,x|--variants nothing --no-reference|--svg a.svg|--roofline --memory"""


def plain(text):
    lines = []
    for line in text.split("\n"):
        cells = line.split("|")
        if line.startswith("Not here: "):
            continue
        if line.startswith("| cpu"):
            line = "|".join([cells[0], cells[1].rstrip(), cells[2].strip()] + [NUMBER.sub("N", c).strip() for c in cells[3:]])
        elif re.match(r"\| (prepare|radial|edges|attention|sum|head|weights)", line):
            shown = [c.strip() for c in cells]
            for i in (2, 3, -6, -5, -4, -3, -2) if "not counted" not in line else (2, 3):
                shown[i] = "N"
            line = "|".join(shown)
        elif re.match("molsieve.*processors|Measured peak|Load average|.*: roof| .load_before", line):
            line = re.sub(r"processors: [^.]*", "processors: N", re.sub(r"commit \S+", "commit KEY", re.sub(r"0\.\d+\.\d+", "VERSION", line)))
            line = NUMBER.sub("N", re.sub(r", bf16 \w+ \d+ GFLOP/s", "", line))
        lines.append(line)
    return "\n".join(lines)


class Modelled(Project):
    def __enter__(self):
        super().__enter__()
        shutil.copy(MODEL, self.path("esol.safetensors"))
        return self


class Bench(Transcript):
    def put(self, text):
        super().put(plain(re.sub(r"! molsieve: warning: the load average is.*\n", "", text)))


def its_tables_have_the_same_words_and_counts_as_before():
    with Modelled() as p:
        t = Bench(p, "bench")
        p.put("words.smi", "C( no\n")
        p.put("boron.smi", "[B]\n[Xe]\n")
        t.say(*QUICK, *EXACT, "--no-reference")
        t.say(*QUICK, *EXACT, "--roofline")
        t.say(*QUICK, "--memory")
        t.say(*QUICK, "--memory", "--ranks", "2")
        t.say(*QUICK, "--memory", "--json")
        t.say("bench", "--memory", "--batch", "3", "--parity", "natural")
        for words in MISTAKES.replace("\n", "|").split("|"):
            t.say(*QUICK, *([] if "--variants" in words else EXACT + ["--no-reference"]), *words.split())
        t.end()


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-3)  # five digits are shown


def what_it_measures_fits_together():
    with Modelled() as p:
        found = json.loads(p.run(*QUICK, *EXACT, "--json")[1])
        table, peak = found["graphs"]["bonds"], found["peak"][0]["fp32_gflops"]
        edges, reference, n_rows = table["edges"], None, 0
        for row in table["rows"]:
            if "train_mol_s" not in row:
                continue
            seconds = {way: 2 / row[way + "_mol_s"] for way in ("forward", "train")}
            if row["variant"].startswith("reference"):
                reference = seconds
            for way, work in (("forward", 0.0631877), ("train", 0.183634)):  # 1e9 operations of the reference formulation: esol, two molecules
                assert near(row[way + "_us_edge_layer"], 1e6 * seconds[way] / (3 * edges)), row
                assert near(row[way + "_gflops_reference_work"] * seconds[way], work), (row, row[way + "_gflops_reference_work"] * seconds[way])
                if reference:
                    assert near(row[way + "_x_reference"], reference[way] / seconds[way]) or "cache" in row["variant"], row
                if row["variant"] == "cpu portable exact fp32":
                    n_rows += 1
                    done = row[way + "_of_peak"] / 100 * peak * seconds[way]
                    assert near(done, {"forward": 0.0250930, "train": 0.0978790}[way]), (way, done)
        assert n_rows == 2, table
        for row in table["rows"]:
            if row["variant"].startswith("reference"):
                assert near(row["forward_of_peak"], 100 * row["forward_gflops_reference_work"] / peak), row
        load = [os.getloadavg()[0]]
        _, text, said = p.run(*QUICK, *EXACT, "--no-reference")
        load.append(os.getloadavg()[0])
        for words, key in (("tiles", "bf16_gflops"), ("pairs", "bf16_pairs_gflops")):  # which other processors do not have
            assert bool(re.search(r"Measured peak: float32 \d+ GFLOP/s.*, bf16 %s [1-9]\d* GFLOP/s" % words, text)) == (found["peak"][0][key] > 0), text
        warned = re.search(r"warning: the load average is \d+\.\d\d: other programs are at work, and the figures will be too low\n", said)
        assert min(load) < 1 and max(load) > 0.3 or bool(warned) == (load[0] > 0.5), (load, said)  # it may change meanwhile


def packets(p, *args):
    """What the program writes, write for write."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = subprocess.Popen(p.command(*args), cwd=p.dir, stdout=its, stderr=subprocess.DEVNULL)
    its.close()
    got = []
    while True:
        one = ours.recv(1 << 20)
        if not one:
            assert child.wait() == 0
            return got
        got.append(one.decode())


def each_row_and_table_is_written_at_once():
    with Modelled() as p:
        got = packets(p, *QUICK, *EXACT, "--no-reference")
        rows = [one for one in got if "| cpu portable" in one]
        assert len(rows) == 2 and all(one.count("\n") == 1 for one in rows), got
        assert [one for one in got if one.endswith("--:|\n")], got
        got = packets(p, *QUICK, *EXACT, "--roofline")
        assert any(one.endswith("` |\n") for one in got), got


if __name__ == "__main__":
    main([its_tables_have_the_same_words_and_counts_as_before, what_it_measures_fits_together, each_row_and_table_is_written_at_once])
