#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""workflows/nextflow without Nextflow: Groovy, its language, reads all files and makes the commands of the processes; these run
in folders as Nextflow's, with staged inputs."""
import glob
import json
import os
import re
import shutil
import subprocess

from sieve import Project, data, lines_of, main, skip
from shards import digest

SOURCE = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/nextflow")
STAGES = """  read: {unit: 10}
  prepare: {conformers: {source: none}}
  rank: {objectives: [{property: mw, goal: maximise}], top: 50, diversity: {by: similarity, threshold: 0.3}}
  write: {csv: hits.csv}
"""

# Reads each file; then evaluates the body between `script:` and `stub:`, the outputs and the error strategy of a process.
GROOVY = r"""
import groovy.json.*
import org.codehaus.groovy.control.*
def asked = new JsonSlurper().parse(System.in)
asked.files.each { name ->
    def unit = new CompilationUnit()
    unit.addSource(name, new File(name).text)
    unit.compile(Phases.CONVERSION)
}
println JsonOutput.toJson(asked.tasks.collect { t ->
    def text = new File(t.file).text
    def shell = new GroovyShell(new Binding(t.given))
    def between = { a, b -> text.substring(text.indexOf(a) + a.length(), text.indexOf(b)) }
    def command = shell.evaluate(between("\n    script:\n", "\n    stub:\n")).toString().stripIndent() // as Nextflow does
    def stub = shell.evaluate(between("\n    stub:\n", "\n}\n")).toString().stripIndent()
    def outputs = (between("\n    output:\n", "\n    when:\n") =~ /path\(?\s*((?:"[^"]*")|(?:'[^']*'))[^\n]*/).collect { it[0].contains("optional: true") ? null : shell.evaluate(it[1]).toString() } - null
    def strategy = (text =~ /errorStrategy (\{.*\})/)[0][1]
    def after = [75, 137, 143, 1, 2, 5].collectEntries { s -> shell.setVariable("task", [exitStatus: s]); [(s.toString()): shell.evaluate("(" + strategy + ")()")] }
    [command: command, stub: stub, outputs: outputs, after: after]
})
"""


def groovy(asked):
    program, java = shutil.which("groovy"), shutil.which("java")
    if program is None or java is None:
        skip("needs groovy (Debian: groovy)")
    env = dict(os.environ, JAVA_HOME=os.path.dirname(os.path.dirname(os.path.realpath(java))))
    done = subprocess.run([program, "-e", GROOVY], input=json.dumps(asked), env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def path(name):
    """What the bodies ask of an input of the kind `path`."""
    return {"name": name, "baseName": os.path.splitext(os.path.basename(name))[0]}


def given(p, **more):
    return dict({"meta": {"id": "my screen"}, "task": {"ext": {"args": ""}, "cpus": 1, "process": "SCREEN:IT"}, "moduleDir": "",
                 "workflow": {"workDir": p.path("work")}, "workflow_file": path("screen.yaml"), "inputs": [path("inputs/a.smi"), path("inputs/b.smi")],
                 "models": path("models/esol.safetensors")}, **more)


def attempt(p, name, command, staged):
    """A new folder with links to the inputs, as Nextflow makes it; the exit status."""
    folder = p.path("work", name)
    os.makedirs(folder)
    for to, path in staged.items():
        os.makedirs(os.path.dirname(os.path.join(folder, to)), exist_ok=True)
        os.symlink(path, os.path.join(folder, to))
    env = dict(os.environ, PATH=os.path.dirname(os.environ["MOLSIEVE"]) + ":" + os.environ["PATH"])
    done = subprocess.run(["bash", "-ue", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode in (0, 75), done.stdout + done.stderr
    return done.returncode, folder


def the_commands_of_the_processes_give_the_digest_of_one_run():
    with Project() as p:
        lines = lines_of(data("library.smi"), 80).splitlines(True)
        os.makedirs(p.path("data"))
        p.put("data/a.smi", b"".join(lines[:50]))
        p.put("data/b.smi", b"".join(lines[40:]))
        model = os.path.join(SOURCE, "../models/esol.safetensors")
        p.workflow(["data/a.smi", "{path: not-here/b.smi}"], STAGES, name="screen.yaml", extra="models: {esol: {path: not-here}}\n")
        shard, merge = (os.path.join(SOURCE, "modules/molsieve", x, "main.nf") for x in ("shard", "merge"))
        tasks = [{"file": shard, "given": given(p, shard=k, shards=2)} for k in range(2)]
        tasks.append({"file": merge, "given": given(p, shard_files=[path("shards/my screen.%d.db" % k) for k in (1, 0)])})
        files = glob.glob(SOURCE + "/**/*.nf", recursive=True) + glob.glob(SOURCE + "/**/*.nf.test", recursive=True) + [SOURCE + "/nextflow.config"]
        assert len(files) == 6, files
        told = groovy({"files": files, "tasks": tasks})
        assert all(t["after"] == {"75": "retry", "137": "retry", "143": "retry", "1": "finish", "2": "finish", "5": "finish"} for t in told), told
        staged = {"screen.yaml": p.path("screen.yaml"), "inputs/a.smi": p.path("data/a.smi"), "inputs/b.smi": p.path("data/b.smi"),
                  "models/esol.safetensors": model}
        # An attempt that gets no time ends with 75; the next one, in another folder, goes on.
        stops = told[0]["command"].replace("--quiet", "--quiet --max-time 0.001s")
        assert attempt(p, "aa/1", stops, staged)[0] == 75
        made = [attempt(p, "aa/%d" % (k + 2), told[k]["command"], staged) for k in range(2)]
        assert p.rows("SELECT exit_code FROM run ORDER BY run_id", workdir="work/molsieve/my screen/shards/00000-of-00002") == [(75,), (0,)]
        for k, (status, folder) in enumerate(made):
            assert status == 0 and told[k]["outputs"] == ["my screen.%d.db" % k, "versions.yml"], told[k]
            assert all(os.path.exists(os.path.join(folder, x)) for x in told[k]["outputs"])
            staged["shards/my screen.%d.db" % k] = os.path.join(folder, told[k]["outputs"][0])
        version = p.run("--version")[1].split()[1]
        assert open(os.path.join(made[0][1], "versions.yml")).read() == '"SCREEN:IT":\n    molsieve: %s\n' % version
        status, folder = attempt(p, "bb/1", told[2]["command"], staged)
        assert status == 0 and all(os.path.exists(os.path.join(folder, x)) for x in told[2]["outputs"]), told[2]
        p.run("run", "screen.yaml", "-q", "workdir=one", "inputs.1.path=" + p.path("data/b.smi"), "models.esol.path=" + model)
        assert digest(p, os.path.join(folder, "my screen")) == digest(p, "one")
        assert open(os.path.join(folder, "my screen/hits.csv")).read() == open(p.path("one/hits.csv")).read()
        assert attempt(p, "cc/1", told[2]["stub"], {})[0] == 0
        assert len(re.findall("molsieve_", "".join(open(f).read() for f in glob.glob(SOURCE + "/modules/*/*/meta.yml")))) == 2


if __name__ == "__main__":
    main([the_commands_of_the_processes_give_the_digest_of_one_run])
